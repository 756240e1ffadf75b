use keywright_ring::sampling::SecretRng;
use keywright_ring::{Buffer, Evaluation, Modulus, Poly, Seed};
use keywright_rlwe::{PublicKey, RlweCiphertext, SecretKey, for_each_item};
use zeroize::{Zeroize, Zeroizing};

use super::ThresholdParameters;
use super::question::{MaskKey, Question, fill_uniform, mask_generator, smudging_generator};
use crate::AggregationError;
use crate::error::in_range;

/// One party during the set-up: its own secret, and its published half of the joint key.
#[derive(Debug)]
pub struct Party {
    parameters: ThresholdParameters,
    secret: SecretKey,
    half: Poly<Evaluation>,
}

impl Party {
    /// Samples the party's secret for a joint key whose uniform half has that seed.
    ///
    /// # Errors
    /// [`AggregationError::Rlwe`] as in [`SecretKey::sample`].
    pub fn sample(
        parameters: &ThresholdParameters,
        seed: Seed,
        rng: &mut SecretRng,
    ) -> Result<Self, AggregationError> {
        let secret = SecretKey::sample(parameters.rlwe(), rng)?;
        let half = PublicKey::from_seed(&secret, seed, rng).b().clone();
        Ok(Self { parameters: parameters.clone(), secret, half })
    }

    /// `b_i = -a s_i + e_i`, for publication. Make one per secret: a second one would reveal differences of errors.
    pub fn public_half(&self) -> &Poly<Evaluation> {
        &self.half
    }

    /// Shamir shares of the secret for parties `1, 2, ...`: the values of a polynomial whose constant term is the
    /// secret and whose other `threshold - 1` coefficients are uniform ring elements. Secret: each is for one party
    /// only. The caller wipes them.
    pub fn deal(&self, rng: &mut SecretRng) -> Vec<Poly<Evaluation>> {
        let rlwe = self.parameters.rlwe();
        let (n, limbs) = (rlwe.n(), rlwe.max_level() + 1);
        let mut coefficients: Vec<Poly<Evaluation>> = (1..self.parameters.threshold())
            .map(|_| {
                let mut poly = Poly::unspecified(n, limbs);
                for (i, limb) in poly.limbs_mut().enumerate() {
                    fill_uniform(rlwe.modulus(i), rng, limb);
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

/// The data that a party keeps from the set-up: its share of the joint secret, and the keys of its masks. Wiped when
/// dropped.
pub struct KeyShare {
    parameters: ThresholdParameters,
    party: u32,
    share: Poly<Evaluation>,
    /// By the number of the other party, from 1; the party's own entry is the key of its smudging.
    keys: Vec<MaskKey>,
}

impl KeyShare {
    /// The share of party `party` from the values that all parties dealt to it, including itself, and the keys that it
    /// shares with each of them; its own entry is a fresh key that no other party has.
    ///
    /// # Errors
    /// [`AggregationError::Range`] unless `1 <= party <= parties` and there is one share and one key of every party,
    /// with shares in the parameters' ring; [`AggregationError::RepeatedKey`] if two keys are equal.
    pub fn combine(
        parameters: &ThresholdParameters,
        party: u32,
        dealt: &[Poly<Evaluation>],
        keys: Vec<MaskKey>,
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
        Self::new(parameters, party, share, keys)
    }

    /// Wraps a stored share.
    ///
    /// # Errors
    /// As in [`Self::combine`].
    pub fn new(
        parameters: &ThresholdParameters,
        party: u32,
        share: Poly<Evaluation>,
        keys: Vec<MaskKey>,
    ) -> Result<Self, AggregationError> {
        let parties = u64::from(parameters.parties());
        in_range("number of a party", party.into(), 1, parties)?;
        in_range("number of mask keys", keys.len() as u64, parties, parties)?;
        require_shape(parameters, &share)?;
        let mut order: Vec<_> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&i| &keys[i][..]);
        if let Some(pair) = order.windows(2).find(|pair| keys[pair[0]] == keys[pair[1]]) {
            return Err(AggregationError::RepeatedKey { parties: [pair[0] as u32 + 1, pair[1] as u32 + 1] });
        }
        Ok(Self { parameters: parameters.clone(), party, share, keys })
    }

    /// The party's number.
    pub fn party(&self) -> u32 {
        self.party
    }

    /// The share itself. Secret: for the owner's storage only.
    pub fn share(&self) -> &Poly<Evaluation> {
        &self.share
    }

    /// The party's answer. For every ciphertext `j` of the sum, with `lambda` the Lagrange coefficient of the active
    /// parties `T` at 0, it is
    ///
    /// `lambda f(j) c_1 + u + sum_(k in T, k > j) m_jk - sum_(k in T, k < j) m_kj`
    ///
    /// where `u` is smudging and `m_jk` a uniform ring element that only parties `j` and `k` know. The masks of all of
    /// `T` cancel. So the answers are a fresh additive sharing of `S c_1` for every question and set, and if one is
    /// missing, the others are uniform.
    ///
    /// An answer is a function of the share, the keys and the question: asked again, in a copy of the process or after
    /// a crash, a party gives the same bytes. An answer does not show whether the sum has enough updates: a party
    /// answers for one sum per round, and only to a server that it trusts to add.
    ///
    /// # Errors
    /// [`AggregationError::Range`] unless the active parties are distinct, as many as the threshold, and include this
    /// one, and the sum has the parameters' shape.
    pub fn partial(
        &self,
        sum: &[RlweCiphertext],
        question: &Question<'_>,
    ) -> Result<Vec<Poly<Evaluation>>, AggregationError> {
        let parameters = &self.parameters;
        require_active(parameters, question.active, self.party)?;
        require_sum(parameters, sum)?;
        let rlwe = parameters.rlwe();
        let digest = question.digest(sum);
        let mut out: Vec<_> = sum.iter().map(|_| Poly::unspecified(rlwe.n(), rlwe.max_level() + 1)).collect();
        for_each_item(out.iter_mut().zip(sum).collect(), |chunk, (out, ciphertext)| {
            let chunk = chunk as u32;
            let smudging =
                smudging(parameters, &mut smudging_generator(self.key(self.party), &digest, chunk));
            let others = question.active.iter().filter(|&&other| other != self.party);
            let mut masks: Vec<_> =
                others.map(|&other| (other, mask_generator(self.key(other), &digest, chunk))).collect();
            let mut product = Buffer::unspecified(rlwe.n());
            for (i, limb) in out.limbs_mut().enumerate() {
                let (modulus, ring) = (rlwe.modulus(i), rlwe.ring());
                let half = modulus.reduce_u128(1 << (parameters.smudging_bits() - 1));
                for (word, &value) in limb.iter_mut().zip(smudging.iter()) {
                    *word = modulus.sub(modulus.reduce_u128(value), half);
                }
                ring.forward_limb(i, limb);
                let lambda = modulus.shoup(lagrange(modulus, question.active, self.party));
                ring.backend().mul(modulus, ciphertext.polys[1].limb(i), self.share.limb(i), &mut product);
                ring.backend().mul_scalar_assign(modulus, &mut product, lambda);
                ring.backend().add_assign(modulus, limb, &product);
                // Uniform in evaluation form as in any other form.
                for (other, rng) in &mut masks {
                    fill_uniform(modulus, rng, &mut product);
                    if *other > self.party {
                        ring.backend().add_assign(modulus, limb, &product);
                    } else {
                        ring.backend().sub_assign(modulus, limb, &product);
                    }
                }
            }
            product.zeroize();
        });
        Ok(out)
    }

    /// The key shared with a party whose number was checked.
    fn key(&self, party: u32) -> &MaskKey {
        &self.keys[party as usize - 1]
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
    let mut words = Zeroizing::new(vec![0; 2 * parameters.rlwe().n()]);
    rng.fill_words(&mut words);
    let pairs = words.as_chunks::<2>().0.iter();
    Zeroizing::new(pairs.map(|&[high, low]| (u128::from(high) << 64 | u128::from(low)) >> shift).collect())
}

/// `prod_{k != j} k / (k - j)` over the active parties `k`. Public.
fn lagrange(modulus: &Modulus, active: &[u32], party: u32) -> u64 {
    let (mut above, mut below) = (1, 1);
    for &other in active.iter().filter(|&&other| other != party) {
        above = modulus.mul(above, other.into());
        below = modulus.mul(below, modulus.reduce_i64(i64::from(other) - i64::from(party)));
    }
    // Party numbers are distinct and far below the primes, so the inverted number is not 0.
    modulus.mul(above, modulus.inv(below))
}

/// Refuses a polynomial of another ring, such as a public half of other parameters.
///
/// # Errors
/// [`AggregationError::Range`].
pub fn require_shape(
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
