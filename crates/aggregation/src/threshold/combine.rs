//! Operations without a secret: joining public keys, encrypting, adding, and joining partial decryptions.

use keywright_ring::sampling::SecretRng;
use keywright_ring::{Evaluation, Poly, Seed};
use keywright_rlwe::{KeyIdentity, Parameters, PublicKey, RlweCiphertext, encrypt_zero};
use zeroize::Zeroizing;

use super::ThresholdParameters;
use super::party::{require_shape, require_sum};
use crate::AggregationError;
use crate::error::in_range;
use crate::key::require_magnitude;

/// The public key of the sum of all secrets, from the halves that the parties published for one seed.
///
/// # Errors
/// [`AggregationError::Range`] unless every party has one half, in the parameters' ring.
pub fn joint_public_key(
    parameters: &ThresholdParameters,
    seed: Seed,
    halves: &[Poly<Evaluation>],
) -> Result<PublicKey, AggregationError> {
    let parties = u64::from(parameters.parties());
    in_range("number of public halves", halves.len() as u64, parties, parties)?;
    halves.iter().try_for_each(|half| require_shape(parameters, half))?;
    let rlwe = parameters.rlwe();
    let mut sum = Poly::zero(rlwe.n(), rlwe.max_level() + 1);
    halves.iter().for_each(|half| add_poly(rlwe, &mut sum, half));
    Ok(PublicKey::expand(rlwe, KeyIdentity::UNKNOWN, seed, sum))
}

/// Encrypts integers under the joint key, `N` to a ciphertext.
///
/// # Errors
/// [`AggregationError::Magnitude`], [`AggregationError::Range`] as in [`crate::SumKey::encrypt`];
/// [`AggregationError::Rlwe`] for a key of other parameters.
pub fn encrypt(
    parameters: &ThresholdParameters,
    key: &PublicKey,
    values: &[i64],
    rng: &mut SecretRng,
) -> Result<Vec<RlweCiphertext>, AggregationError> {
    let rlwe = parameters.rlwe();
    key.parameters().require_same(rlwe, "the joint key", "the parameters of the sums")?;
    in_range("number of values", values.len() as u64, 1, parameters.max_values().into())?;
    require_magnitude(values, parameters.magnitude())?;
    let encrypt_chunk = |values: &[i64]| {
        encrypt_zero(
            key,
            rlwe.max_level(),
            rng,
            Some(&|i, limb: &mut [u64]| {
                let modulus = rlwe.modulus(i);
                let scale = modulus.shoup(modulus.reduce_u128(1 << parameters.noise_bits()));
                for (word, &value) in limb.iter_mut().zip(values) {
                    *word = modulus.add(*word, modulus.mul_shoup(modulus.reduce_i64(value), scale));
                }
            }),
        )
    };
    Ok(values.chunks(rlwe.n()).map(encrypt_chunk).collect::<Result<_, _>>()?)
}

/// Refuses anything but an update of `count` values.
///
/// # Errors
/// [`AggregationError::Range`].
pub fn require_update(
    parameters: &ThresholdParameters,
    update: &[RlweCiphertext],
    count: usize,
) -> Result<(), AggregationError> {
    require_sum(parameters, update)?;
    let chunks = parameters.chunks(count) as u64;
    in_range("number of ciphertexts of an update", update.len() as u64, chunks, chunks)
}

/// Refuses anything but a partial decryption of a sum of `count` values.
///
/// # Errors
/// [`AggregationError::Range`].
pub fn require_partial(
    parameters: &ThresholdParameters,
    partial: &[Poly<Evaluation>],
    count: usize,
) -> Result<(), AggregationError> {
    let chunks = parameters.chunks(count) as u64;
    in_range("polynomials of a partial decryption", partial.len() as u64, chunks, chunks)?;
    partial.iter().try_for_each(|poly| require_shape(parameters, poly))
}

/// Adds encrypted vectors.
///
/// # Errors
/// [`AggregationError::Range`] for no vector, more than declared, or vectors of another shape.
pub fn add(
    parameters: &ThresholdParameters,
    vectors: &[&[RlweCiphertext]],
) -> Result<Vec<RlweCiphertext>, AggregationError> {
    in_range("number of updates of a sum", vectors.len() as u64, 1, parameters.max_inputs().into())?;
    let length = vectors[0].len() as u64;
    for vector in vectors {
        in_range("number of ciphertexts of an update", vector.len() as u64, length, length)?;
        require_sum(parameters, vector)?;
    }
    let mut sum = vectors[0].to_vec();
    for vector in &vectors[1..] {
        for (sum, ciphertext) in sum.iter_mut().zip(*vector) {
            for (sum, poly) in sum.polys.iter_mut().zip(&ciphertext.polys) {
                add_poly(parameters.rlwe(), sum, poly);
            }
        }
    }
    Ok(sum)
}

/// The `count` integers of a sum of `inputs` updates, exactly, from the partial decryptions of as many parties as the
/// threshold.
///
/// # Errors
/// [`AggregationError::Range`] for other shapes, [`AggregationError::Undecodable`] if a part does not belong to the
/// sum, a party deviated, or the ciphertext is not a sum. Such values are as if uniform modulo Q: one of them passes
/// for a sum with the probability (2 `inputs` * magnitude + 1) (2 error + 1) / Q, which may be a tenth, and all of them
/// with its power.
pub fn finish(
    parameters: &ThresholdParameters,
    sum: &[RlweCiphertext],
    partials: &[&[Poly<Evaluation>]],
    inputs: u32,
    count: usize,
) -> Result<Zeroizing<Vec<i64>>, AggregationError> {
    let rlwe = parameters.rlwe();
    let threshold = u64::from(parameters.threshold());
    in_range("number of updates of a sum", inputs.into(), 1, parameters.max_inputs().into())?;
    in_range("number of partial decryptions", partials.len() as u64, threshold, threshold)?;
    require_sum(parameters, sum)?;
    let chunks = sum.len() as u64;
    in_range("ciphertexts for these values", parameters.chunks(count) as u64, chunks, chunks)?;
    partials.iter().try_for_each(|partial| require_partial(parameters, partial, count))?;
    let (q0, q1) = (rlwe.modulus(0), rlwe.modulus(1));
    let inverse = q1.shoup(q1.inv(q1.reduce(q0.value())));
    let q = u128::from(q0.value()) * u128::from(q1.value());
    let error =
        (parameters.error_bound() + (threshold as u128 * (1 << (parameters.smudging_bits() - 1)))) as i128;
    let largest = i128::from(inputs) * i128::from(parameters.magnitude());
    let d = parameters.noise_bits();
    let mut values = Zeroizing::new(Vec::with_capacity(count));
    let mut outside = false;
    for (chunk, ciphertext) in sum.iter().enumerate() {
        let mut total = ciphertext.polys[0].clone();
        partials.iter().for_each(|partial| add_poly(rlwe, &mut total, &partial[chunk]));
        let total = rlwe.ring().inverse(total);
        for (&x0, &x1) in total.limb(0).iter().zip(total.limb(1)).take(count - values.len()) {
            // Garner: x0 + q0 ((x1 - x0) / q0 mod q1), then its representative around 0.
            let high = q1.mul_shoup(q1.sub(x1, q1.reduce(x0)), inverse);
            let x = u128::from(x0) + u128::from(q0.value()) * u128::from(high);
            let centered = if x > q / 2 { x as i128 - q as i128 } else { x as i128 };
            let rounded = (centered + (1 << (d - 1))) >> d;
            outside |= (centered - (rounded << d)).abs() > error || rounded.abs() > largest;
            values.push(rounded as i64);
        }
    }
    if outside {
        return Err(AggregationError::Undecodable { inputs: inputs as usize });
    }
    Ok(values)
}

fn add_poly(rlwe: &Parameters, sum: &mut Poly<Evaluation>, poly: &Poly<Evaluation>) {
    for (i, (sum, limb)) in sum.limbs_mut().zip(poly.limbs()).enumerate() {
        rlwe.ring().backend().add_assign(rlwe.modulus(i), sum, limb);
    }
}
