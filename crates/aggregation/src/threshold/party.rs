use keywright_ring::sampling::SecretRng;
use keywright_ring::{Buffer, Evaluation, Modulus, Poly, Seed};
use keywright_rlwe::{PublicKey, RlweCiphertext, SecretKey, for_each_item};
use zeroize::{Zeroize, Zeroizing};

use super::ThresholdParameters;
use crate::AggregationError;
use crate::error::in_range;

/// One party during the set-up: its own secret.
#[derive(Debug)]
pub struct Party {
    parameters: ThresholdParameters,
    secret: SecretKey,
}

impl Party {
    /// Samples the party's secret.
    ///
    /// # Errors
    /// [`AggregationError::Rlwe`] as of [`SecretKey::sample`].
    pub fn sample(parameters: &ThresholdParameters, rng: &mut SecretRng) -> Result<Self, AggregationError> {
        Ok(Self { parameters: parameters.clone(), secret: SecretKey::sample(parameters.rlwe(), rng)? })
    }

    /// `b_i = -a s_i + e_i`, to be published once: a second one for the same seed would show differences of errors.
    pub fn public_half(&self, seed: Seed, rng: &mut SecretRng) -> Poly<Evaluation> {
        PublicKey::from_seed(&self.secret, seed, rng).b().clone()
    }

    /// Shamir shares of the secret for parties `1, 2, ...`: the values there of a polynomial whose constant term is the secret
    /// and whose other `threshold - 1` coefficients are uniform ring elements. Secret: for one party each; the caller wipes them.
    pub fn deal(&self, rng: &mut SecretRng) -> Vec<Poly<Evaluation>> {
        let rlwe = self.parameters.rlwe();
        let (n, limbs) = (rlwe.n(), rlwe.max_level() + 1);
        let mut coefficients: Vec<Poly<Evaluation>> = (1..self.parameters.threshold())
            .map(|_| {
                let mut poly = Poly::unspecified(n, limbs);
                for (i, limb) in poly.limbs_mut().enumerate() {
                    uniform(rlwe.modulus(i), rng, limb);
                }
                poly
            })
            .collect();
        let shares = (1..=self.parameters.parties()).map(|point| {
            let mut share = Poly::zero(n, limbs);
            for (i, limb) in share.limbs_mut().enumerate() {
                let (modulus, backend) = (rlwe.modulus(i), rlwe.ring().backend());
                let point = modulus.shoup(point.into());
                // Horner, from the highest coefficient.
                for coefficient in coefficients.iter().rev() {
                    backend.add_assign(modulus, limb, coefficient.limb(i));
                    backend.mul_scalar_assign(modulus, limb, point);
                }
                backend.add_assign(modulus, limb, self.secret.limb(i));
            }
            share
        });
        let shares = shares.collect();
        coefficients.iter_mut().for_each(Zeroize::zeroize);
        shares
    }
}

/// What a party keeps of the set-up: its share of the joint secret. Wiped when dropped.
pub struct KeyShare {
    parameters: ThresholdParameters,
    party: u32,
    share: Poly<Evaluation>,
}

impl KeyShare {
    /// The share of party `party` from what all parties dealt to it, its own included.
    ///
    /// # Errors
    /// [`AggregationError::Range`] unless `1 <= party <= parties` and there is one share of every party, in the parameters' ring.
    pub fn combine(
        parameters: &ThresholdParameters,
        party: u32,
        dealt: &[Poly<Evaluation>],
    ) -> Result<Self, AggregationError> {
        let parties = u64::from(parameters.parties());
        in_range("number of a party", party.into(), 1, parties)?;
        in_range("number of dealt shares", dealt.len() as u64, parties, parties)?;
        dealt.iter().try_for_each(|share| require_shape(parameters, share))?;
        let rlwe = parameters.rlwe();
        let mut share = Poly::zero(rlwe.n(), rlwe.max_level() + 1);
        for (i, limb) in share.limbs_mut().enumerate() {
            for dealt in dealt {
                rlwe.ring().backend().add_assign(rlwe.modulus(i), limb, dealt.limb(i));
            }
        }
        Self::new(parameters, party, share)
    }

    /// A share that was stored.
    ///
    /// # Errors
    /// [`AggregationError::Range`] as of [`Self::combine`].
    pub fn new(
        parameters: &ThresholdParameters,
        party: u32,
        share: Poly<Evaluation>,
    ) -> Result<Self, AggregationError> {
        in_range("number of a party", party.into(), 1, parameters.parties().into())?;
        require_shape(parameters, &share)?;
        Ok(Self { parameters: parameters.clone(), party, share })
    }

    /// What it belongs to.
    pub fn parameters(&self) -> &ThresholdParameters {
        &self.parameters
    }

    /// The party's number.
    pub fn party(&self) -> u32 {
        self.party
    }

    /// The share itself. Secret: for storage by its owner.
    pub fn share(&self) -> &Poly<Evaluation> {
        &self.share
    }

    /// The party's part of a decryption by the parties `active`: `lambda f(j) c_1 + u` for every ciphertext of a sum.
    ///
    /// Whether the sum is one of enough updates cannot be seen from it: a party answers once per round, to whom it trusts to add.
    ///
    /// # Errors
    /// [`AggregationError::Range`] unless `active` are as many distinct parties as the threshold, this one among them, and the sum
    /// has the parameters' shape.
    pub fn partial(
        &self,
        sum: &[RlweCiphertext],
        active: &[u32],
        rng: &mut SecretRng,
    ) -> Result<Vec<Poly<Evaluation>>, AggregationError> {
        let parameters = &self.parameters;
        require_active(parameters, active, self.party)?;
        require_sum(parameters, sum)?;
        let rlwe = parameters.rlwe();
        let work = sum
            .iter()
            .map(|ciphertext| Ok((ciphertext, rng.split()?)))
            .collect::<Result<Vec<_>, AggregationError>>()?;
        let mut out: Vec<_> = sum.iter().map(|_| Poly::unspecified(rlwe.n(), rlwe.max_level() + 1)).collect();
        for_each_item(out.iter_mut().zip(work).collect(), |_, (out, (ciphertext, mut rng))| {
            let smudging = smudging(parameters, &mut rng);
            let mut product = Buffer::unspecified(rlwe.n());
            for (i, limb) in out.limbs_mut().enumerate() {
                let (modulus, ring) = (rlwe.modulus(i), rlwe.ring());
                let lambda = modulus.shoup(lagrange(modulus, active, self.party));
                ring.backend().mul(modulus, ciphertext.polys[1].limb(i), self.share.limb(i), &mut product);
                ring.backend().mul_scalar_assign(modulus, &mut product, lambda);
                let half = modulus.reduce_u128(1 << (parameters.smudging_bits() - 1));
                for (word, &value) in limb.iter_mut().zip(smudging.iter()) {
                    *word = modulus.sub(modulus.reduce_u128(value), half);
                }
                ring.forward_limb(i, limb);
                ring.backend().add_assign(modulus, limb, &product);
                product.zeroize();
            }
        });
        Ok(out)
    }
}

impl Drop for KeyShare {
    fn drop(&mut self) {
        self.share.zeroize();
    }
}

impl core::fmt::Debug for KeyShare {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "KeyShare(party {}, ..)", self.party)
    }
}

/// Uniform numbers of `smudging_bits` bits, at most 122.
fn smudging(parameters: &ThresholdParameters, rng: &mut SecretRng) -> Zeroizing<Vec<u128>> {
    let shift = 128 - parameters.smudging_bits();
    let mut values = Zeroizing::new(vec![0; parameters.rlwe().n()]);
    for value in values.iter_mut() {
        *value = (u128::from(rng.next_word()) << 64 | u128::from(rng.next_word())) >> shift;
    }
    values
}

/// Uniform residues: 128 bits reduced, biased by less than `2^-66`.
fn uniform(modulus: &Modulus, rng: &mut SecretRng, limb: &mut [u64]) {
    for word in limb {
        *word = modulus.reduce_u128(u128::from(rng.next_word()) << 64 | u128::from(rng.next_word()));
    }
}

/// `prod_{k != j} k / (k - j)` over the active parties `k`. Public.
fn lagrange(modulus: &Modulus, active: &[u32], party: u32) -> u64 {
    let (mut above, mut below) = (1, 1);
    for &other in active.iter().filter(|&&other| other != party) {
        above = modulus.mul(above, other.into());
        below = modulus.mul(below, modulus.reduce_i64(i64::from(other) - i64::from(party)));
    }
    // Party numbers are distinct and far below the primes, so this is no inverse of 0.
    modulus.mul(above, modulus.inv(below))
}

pub(super) fn require_shape(
    parameters: &ThresholdParameters,
    poly: &Poly<Evaluation>,
) -> Result<(), AggregationError> {
    let rlwe = parameters.rlwe();
    let (n, limbs) = (rlwe.n() as u64, rlwe.max_level() as u64 + 1);
    in_range("ring degree", poly.n() as u64, n, n)?;
    in_range("number of limbs", poly.limb_count() as u64, limbs, limbs)
}

pub(super) fn require_sum(
    parameters: &ThresholdParameters,
    sum: &[RlweCiphertext],
) -> Result<(), AggregationError> {
    let most = parameters.chunks(parameters.max_values() as usize) as u64;
    in_range("number of ciphertexts", sum.len() as u64, 1, most)?;
    for ciphertext in sum {
        in_range("polynomials of a ciphertext", ciphertext.polys.len() as u64, 2, 2)?;
        ciphertext.polys.iter().try_for_each(|poly| require_shape(parameters, poly))?;
    }
    Ok(())
}

fn require_active(
    parameters: &ThresholdParameters,
    active: &[u32],
    party: u32,
) -> Result<(), AggregationError> {
    let threshold = u64::from(parameters.threshold());
    in_range("number of decrypting parties", active.len() as u64, threshold, threshold)?;
    for &other in active {
        in_range("number of a party", other.into(), 1, parameters.parties().into())?;
    }
    let distinct: std::collections::BTreeSet<_> = active.iter().collect();
    in_range("number of distinct parties", distinct.len() as u64, threshold, threshold)?;
    let present = u64::from(distinct.contains(&party));
    in_range("times this party is among them", present, 1, 1)
}
