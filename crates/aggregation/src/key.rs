use keywright_ring::sampling::{GAUSSIAN_BOUND, SecretRng, gaussian};
use keywright_ring::{Buffer, Seed};
use keywright_rlwe::{SecretKey, for_each_item};
use zeroize::{Zeroize, Zeroizing};

use crate::binding::uniform_half;
use crate::error::in_range;
use crate::{AggregationError, Binding, EncryptedSum, EncryptedUpdate, Residues, SumParameters};

/// The secret that clients share and the server does not have. It encrypts updates and decrypts sums.
#[derive(Debug)]
pub struct SumKey {
    parameters: SumParameters,
    secret: SecretKey,
}

impl SumKey {
    /// A new secret.
    ///
    /// # Errors
    /// [`AggregationError::Rlwe`] as in [`SecretKey::sample`].
    pub fn sample(parameters: &SumParameters, rng: &mut SecretRng) -> Result<Self, AggregationError> {
        let secret = SecretKey::sample(parameters.rlwe(), rng)?;
        Ok(Self { parameters: parameters.clone(), secret })
    }

    /// Wraps a stored secret.
    ///
    /// # Errors
    /// [`AggregationError::Rlwe`] if it belongs to another ring.
    pub fn new(parameters: &SumParameters, secret: SecretKey) -> Result<Self, AggregationError> {
        secret.parameters().require_same(parameters.rlwe(), "the secret", "the parameters of the sums")?;
        Ok(Self { parameters: parameters.clone(), secret })
    }

    /// The parameters of the secret.
    pub fn parameters(&self) -> &SumParameters {
        &self.parameters
    }

    /// The secret, for storage by its owner.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// Encrypts integers. The caller knows which of them is too large, so this check may branch.
    ///
    /// # Errors
    /// [`AggregationError::Magnitude`] for an integer above the declared magnitude, [`AggregationError::Range`] for no
    /// value, more than `2^32 - 1`, or a weight of 0; [`AggregationError::Rlwe`] for a generator of given entropy in a
    /// forked child.
    pub fn encrypt(
        &self,
        values: &[i64],
        binding: Binding,
        rng: &mut SecretRng,
    ) -> Result<EncryptedUpdate, AggregationError> {
        let (parameters, rlwe) = (&self.parameters, self.parameters.rlwe());
        in_range("number of values", values.len() as u64, 1, u32::MAX.into())?;
        require_magnitude(values, parameters.magnitude())?;
        let (n, modulus) = (rlwe.n(), parameters.modulus());
        let (ring, backend) = (rlwe.ring(), rlwe.ring().backend());
        rng.begin()?;
        let seed = rng.public_seed();
        let bound = binding.bind(values.len() as u32, &seed);
        let mut residues = Residues::zeros(parameters.value_bytes(), values.len());
        let chunks = residues.runs_mut(n).into_iter().zip(values.chunks(n));
        let work = chunks
            .map(|(run, values)| Ok((run, values, rng.split()?)))
            .collect::<Result<Vec<_>, AggregationError>>()?;
        for_each_item(work, |chunk, (mut run, values, mut rng)| {
            let (mut a, mut product) = (Buffer::unspecified(n), Buffer::unspecified(n));
            uniform_half(rlwe, &bound, chunk, &mut a);
            backend.mul(modulus, &a, self.secret.limb(0), &mut product);
            ring.inverse_limb(0, &mut product);
            // Scaled message plus error: below q / 2, by the invariant of the parameters.
            let mut message = Zeroizing::new(vec![0; n]);
            gaussian(&mut rng, &mut message);
            for (error, &value) in message.iter_mut().zip(values) {
                *error += value << parameters.noise_bits();
            }
            ring.lift_small(0, &message, &mut a);
            backend.sub_assign(modulus, &mut a, &product);
            run.store(backend, &a[..values.len()]);
            product.zeroize();
            // Beyond the values there is only error. With the product it would be a ciphertext of zero, but it is not
            // sent.
            a.zeroize();
        });
        rng.require_operation()?;
        EncryptedUpdate::new(parameters, binding, seed, residues)
    }

    /// Decrypts a sum: exactly the sum of the integers, without any error of the encryption.
    ///
    /// # Errors
    /// [`AggregationError::Undecodable`] if it is not a sum of as many updates as it claims.
    pub fn decrypt(&self, sum: &EncryptedSum) -> Result<Zeroizing<Vec<i64>>, AggregationError> {
        let (parameters, rlwe) = (&self.parameters, self.parameters.rlwe());
        let inputs = sum.contributors().len();
        in_range("number of updates of a sum", inputs as u64, 1, parameters.capacity().into())?;
        let width = parameters.value_bytes() as u64;
        in_range("bytes of a residue", sum.residues().width() as u64, width, width)?;
        let (n, modulus) = (rlwe.n(), parameters.modulus());
        let (ring, backend) = (rlwe.ring(), rlwe.ring().backend());
        let count = sum.count() as u32;
        let seeds: Vec<Seed> =
            sum.contributors().iter().map(|c| sum.binding(c).bind(count, &c.seed)).collect();
        let limits = Limits::new(parameters, inputs as u64);
        let mut values = Zeroizing::new(vec![0; sum.count()]);
        let mut wrong = vec![0; sum.count().div_ceil(n)];
        let work: Vec<_> = values.chunks_mut(n).zip(&mut wrong).collect();
        for_each_item(work, |chunk, (values, wrong)| {
            let (mut total, mut a) = (Buffer::zeroed(n), Buffer::unspecified(n));
            for seed in &seeds {
                uniform_half(rlwe, seed, chunk, &mut a);
                backend.add_assign(modulus, &mut total, &a);
            }
            backend.mul(modulus, &total, self.secret.limb(0), &mut a);
            ring.inverse_limb(0, &mut a);
            let words = &mut total[..values.len()];
            sum.residues().words(chunk * n, words);
            for ((value, &word), &product) in values.iter_mut().zip(words.iter()).zip(a.iter()) {
                let sum = modulus.centered(modulus.add(modulus.reduce(word), product));
                let (rounded, outside) = limits.round(sum);
                *value = rounded;
                *wrong |= outside;
            }
            a.zeroize();
        });
        if wrong.into_iter().fold(0, |any, wrong| any | wrong) != 0 {
            return Err(AggregationError::Undecodable { inputs });
        }
        Ok(values)
    }
}

/// The range of a decrypted sum of some number of updates.
struct Limits {
    noise_bits: u32,
    error: i64,
    value: i64,
}

impl Limits {
    fn new(parameters: &SumParameters, inputs: u64) -> Self {
        Self {
            noise_bits: parameters.noise_bits(),
            error: inputs as i64 * GAUSSIAN_BOUND,
            // At most (q - 1) / 2, so no overflow.
            value: (inputs * parameters.magnitude()) as i64,
        }
    }

    /// The nearest integer, and a number that is nonzero if it or its error is out of range.
    fn round(&self, sum: i64) -> (i64, u64) {
        let rounded = (sum + (1 << (self.noise_bits - 1))) >> self.noise_bits;
        let error = (sum - (rounded << self.noise_bits)).abs();
        // Negative if a limit is exceeded; no branch on secret data.
        let outside = (self.error - error) | (self.value - rounded.abs());
        (rounded, (outside as u64) >> 63)
    }
}

pub(crate) fn require_magnitude(values: &[i64], magnitude: u64) -> Result<(), AggregationError> {
    match values.iter().position(|value| value.unsigned_abs() > magnitude) {
        Some(index) => Err(AggregationError::Magnitude { index, value: values[index], magnitude }),
        None => Ok(()),
    }
}
