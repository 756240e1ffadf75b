use std::fmt;

use keywright_ring::{Coefficient, Modulus, Poly};
use keywright_rlwe::{SecretKey, decrypt};
use zeroize::{Zeroize, Zeroizing};

use crate::{BfvError, BfvParameters, Ciphertext, Plaintext, SPARE_BITS};

/// Decrypts, measures noise, and encrypts symmetrically: the operations of the secret's owner.
pub struct Decryptor<'k> {
    parameters: BfvParameters,
    secret: &'k SecretKey,
}

impl<'k> Decryptor<'k> {
    /// A decryptor for one secret.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] if the secret belongs to other parameters.
    pub fn new(parameters: &BfvParameters, secret: &'k SecretKey) -> Result<Self, BfvError> {
        parameters.rlwe().require_same(secret.parameters(), "the decryptor", "the secret key")?;
        Ok(Self { parameters: parameters.clone(), secret })
    }

    pub(crate) fn parameters(&self) -> &BfvParameters {
        &self.parameters
    }

    pub(crate) fn secret(&self) -> &'k SecretKey {
        self.secret
    }

    /// `c(s)` modulo the ciphertext's primes. The caller wipes it.
    fn phase(&self, ciphertext: &Ciphertext) -> Result<Poly<Coefficient>, BfvError> {
        self.parameters.require_same(&ciphertext.parameters, "the decryptor", "the ciphertext")?;
        self.secret.identity().join(ciphertext.key(), "the secret key", "the ciphertext")?;
        Ok(decrypt(self.secret, &ciphertext.rlwe, ciphertext.level() + 1))
    }

    /// Decrypts to a plaintext.
    ///
    /// With `x = c(s)` and `Y = [t x]_Q`, centred, `t x = Q m + Y + t Q k` for an integer polynomial `k`, so that
    /// `m = -Y / Q` modulo `t` and the noise is `Y / Q`. With `y_i = [t x (Q/q_i)^-1]_{q_i}` it is
    /// `Y / Q = sum_i y_i / q_i - v`, `v` the nearest integer, and `m = v - sum_i y_i / q_i` modulo `t` (Halevi,
    /// Polyakov and Shoup, ePrint 2018/117). The sum is taken in fixed point with 64 fractional bits, where each term
    /// has an error below three units: with at most 64 terms less than `2^-56`. So `v` is certain, as the noise is
    /// below 1/4.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] for foreign parameters and a ciphertext of another key; [`BfvError::NoiseOverflow`] if any
    /// coefficient of the noise is above 1/4. This detects noise beyond 1/2, unless a coefficient exceeds 3/4 while all
    /// others avoid the interval from 1/4 to 3/4.
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Plaintext, BfvError> {
        let mut x = self.phase(ciphertext)?;
        let parameters = &self.parameters;
        let (level, t) = (ciphertext.level(), parameters.t());
        let moduli = &parameters.rlwe().ring().moduli()[..=level];
        let constants: Vec<_> = moduli
            .iter()
            .zip(&parameters.level_constants(level).row_factors)
            .enumerate()
            .map(|(i, (m, &factor))| {
                let shift = m.bits() - 1;
                // At least 2^63 and below 2^64.
                let reciprocal = (1u128 << (64 + shift)) / u128::from(m.value());
                (m, factor, shift, reciprocal as u64, parameters.negated_q_inverse(i))
            })
            .collect();
        let limbs: Vec<&[u64]> = x.limbs().collect();
        let mut largest = 0;
        let residues = (0..x.n())
            .map(|j| {
                // Whole numbers are at most 64 2^121 and 64 2^64.
                let (mut whole, mut quotient) = (0u128, 0u128);
                for (limb, &(m, factor, shift, reciprocal, constant)) in limbs.iter().zip(&constants) {
                    let y = m.mul_shoup(limb[j], factor);
                    whole += u128::from(y) * u128::from(constant);
                    quotient += (u128::from(y) * u128::from(reciprocal)) >> shift;
                }
                let rounded = quotient + (1 << 63);
                let noise = (rounded as u64).wrapping_sub(1 << 63) as i64;
                largest = largest.max(noise.unsigned_abs());
                t.reduce_u128(whole + (rounded >> 64))
            })
            .collect();
        // The exact message and error together with the ciphertext reveal the secret.
        x.zeroize();
        let mut residues = Zeroizing::new(residues);
        require_small(largest)?;
        Ok(Plaintext::from_residues(parameters, ciphertext.packing, std::mem::take(&mut *residues)))
    }

    /// The noise budget in bits, `-log2(2 |v|)` for the largest coefficient `v` of the noise, computed exactly: the
    /// bits left before the noise may round to another message. 0 if that has happened or is about to, for any
    /// encrypted message.
    ///
    /// The budget depends on the secret: like a decryption, keep it with the owner.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] for foreign parameters and a ciphertext of another key.
    pub fn noise_budget(&self, ciphertext: &Ciphertext) -> Result<f64, BfvError> {
        let mut x = self.phase(ciphertext)?;
        let rlwe = self.parameters.rlwe();
        let moduli = &rlwe.ring().moduli()[..=ciphertext.level()];
        for (limb, m) in x.limbs_mut().zip(moduli) {
            let t = m.shoup(self.parameters.plaintext_modulus());
            limb.iter_mut().for_each(|x| *x = m.mul_shoup(*x, t));
        }
        let largest = log2_norm_vartime(moduli, &x);
        x.zeroize();
        Ok((rlwe.log2_q(ciphertext.level()) - 1.0 - largest).max(0.0))
    }
}

/// Refuses noise with a coefficient above 1/4, in units of `2^-64`. A function of its own, because it is the only
/// branch on a result of decryption.
#[inline(never)]
fn require_small(largest: u64) -> Result<(), BfvError> {
    if largest >= 1 << (63 - SPARE_BITS) { Err(BfvError::NoiseOverflow) } else { Ok(()) }
}

/// `log2` of the largest absolute value of the centred coefficients, at least 0; accurate to about `2^-40`. Variable
/// time.
fn log2_norm_vartime(moduli: &[Modulus], poly: &Poly<Coefficient>) -> f64 {
    // Mixed radix: x = d_0 + d_1 q_0 + d_2 q_0 q_1 + ...
    let inverses: Vec<Vec<u64>> = moduli
        .iter()
        .enumerate()
        .map(|(i, m)| moduli[..i].iter().map(|q| m.inv(m.reduce(q.value()))).collect())
        .collect();
    let digits = |residues: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
        let mut digits: Vec<u64> = Vec::with_capacity(moduli.len());
        for ((m, inverses), mut residue) in moduli.iter().zip(&inverses).zip(residues) {
            for (&digit, &inverse) in digits.iter().zip(inverses) {
                residue = m.mul(m.sub(residue, m.reduce(digit)), inverse);
            }
            digits.push(residue);
        }
        // The highest first, so that lists compare like the numbers.
        digits.reverse();
        digits
    };
    let limbs: Vec<&[u64]> = poly.limbs().collect();
    let largest = (0..poly.n())
        .map(|j| {
            let positive = digits(&mut limbs.iter().map(|limb| limb[j]));
            positive.min(digits(&mut limbs.iter().zip(moduli).map(|(limb, m)| m.neg(limb[j]))))
        })
        .max()
        .unwrap_or_default();
    let mut bits = 0.0;
    let mut value = 0.0f64;
    for (&digit, m) in largest.iter().zip(moduli.iter().rev()) {
        let q = m.value() as f64;
        value = value * q + digit as f64;
        if value > 2f64.powi(600) {
            value *= 2f64.powi(-500);
            bits += 500.0;
        }
    }
    value.max(1.0).log2() + bits
}

impl fmt::Debug for Decryptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decryptor({:?})", self.parameters)
    }
}
