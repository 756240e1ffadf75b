use std::fmt;

use keywright_ring::{Evaluation, Poly, sampling::SecretRng};
use keywright_rlwe::{Parameters, PublicKey, RlweCiphertext, encrypt_zero, noise};

use crate::PoolError;

/// Most bits of a message.
const MAX_BITS: u32 = 128;

/// An acknowledgement by the caller that Chem is not secure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsecureAcknowledged {
    /// Chem's ciphertexts do not hide their messages from an attacker who can request encryptions.
    ChemIsBroken,
}

/// Encodes an integer message into an encryption of zero, the same in every slot.
pub trait ChemScheme {
    /// Its ciphertexts.
    type Ciphertext;
    /// Adds `radix^exponent` to `c_0`.
    ///
    /// # Errors
    /// [`PoolError::Ckks`] if the scheme cannot hold it.
    fn add_power(&self, radix: u64, exponent: u32, c0: &mut Poly<Evaluation>) -> Result<(), PoolError>;
    /// The ciphertext of a message with an error of this variance in each coefficient.
    fn ciphertext(&self, rlwe: RlweCiphertext, variance: f64) -> Self::Ciphertext;
}

/// Protocol 1: a cache of encryptions of `r^0, r^1, ...` and of `n` encryptions of zero. Every ciphertext of an `n`-bit
/// message is a sum of these.
///
/// This follows the paper's text where its listing differs: there are `n` encryptions of zero for any radix, and each
/// is added with probability one half. (The listing caches `floor(log_r (2^n - 1)) + 1` of them and never uses the
/// first.)
pub struct ChemEncryptor<S> {
    scheme: S,
    parameters: Parameters,
    bits: u32,
    radix: u64,
    radixes: Vec<RlweCiphertext>,
    zeros: Vec<RlweCiphertext>,
    /// Variance of the error of the message that adds most, so that no ciphertext states how many entries it is of.
    variance: f64,
    rng: SecretRng,
}

impl<S: ChemScheme> ChemEncryptor<S> {
    /// Fills the cache, lines 1 to 6.
    ///
    /// # Errors
    /// [`PoolError::Range`] for other than 1 to 128 bits or a radix below 2 or above `2^32`, [`PoolError::Rlwe`] for a
    /// level that does not exist, and the scheme's errors for numbers that it cannot hold.
    pub fn new(
        _: InsecureAcknowledged,
        scheme: S,
        key: &PublicKey,
        level: usize,
        bits: u32,
        radix: u64,
        mut rng: SecretRng,
    ) -> Result<Self, PoolError> {
        let range = |what, value, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(PoolError::Range { what, value, min, max })
            }
        };
        range("bits of a Chem message", bits.into(), 1, MAX_BITS.into())?;
        range("the radix of Chem", radix, 2, 1 << 32)?;
        let mut zero = || encrypt_zero(key, level, &mut rng, None);
        let mut radixes = Vec::new();
        let mut left = u128::MAX >> (MAX_BITS - bits);
        // An entry that is added d times contributes d times its error.
        let (mut errors, mut additions) = (f64::from(bits), 0.0);
        while left > 0 {
            let digit = (left.min(u128::from(radix - 1))) as f64;
            errors += digit * digit;
            additions += digit;
            let mut power = zero()?;
            scheme.add_power(radix, radixes.len() as u32, &mut power.polys[0])?;
            radixes.push(power);
            left /= u128::from(radix);
        }
        let zeros = (0..bits).map(|_| zero()).collect::<Result<_, _>>()?;
        // The encoding of a power may have a rounding error of 1/2, always in the same direction.
        let variance = errors * noise::fresh_public(key.parameters()) + additions * additions / 4.0;
        Ok(Self { scheme, parameters: key.parameters().clone(), bits, radix, radixes, zeros, variance, rng })
    }

    /// Encrypts a message of `n` bits, lines 7 to 17.
    ///
    /// # Errors
    /// [`PoolError::ChemMessage`] for a longer one; [`PoolError::Rlwe`] for a generator of given entropy in a forked
    /// child.
    pub fn encrypt(&mut self, message: u128) -> Result<S::Ciphertext, PoolError> {
        if message > u128::MAX >> (MAX_BITS - self.bits) {
            return Err(PoolError::ChemMessage { value: message, bits: self.bits });
        }
        self.rng.begin()?;
        let (n, limbs) = (self.parameters.n(), self.zeros[0].level() + 1);
        let key = self.zeros[0].key;
        let mut sum = RlweCiphertext { polys: vec![Poly::zero(n, limbs), Poly::zero(n, limbs)], key };
        let mut left = message;
        for radix in &self.radixes {
            let digit = left % u128::from(self.radix);
            left /= u128::from(self.radix);
            (0..digit).for_each(|_| sum.add_assign(radix, &self.parameters));
        }
        let mut coins = 0;
        for (j, zero) in self.zeros.iter().enumerate() {
            if j % 64 == 0 {
                coins = self.rng.next_word();
            }
            if coins >> (j % 64) & 1 == 1 {
                sum.add_assign(zero, &self.parameters);
            }
        }
        Ok(self.scheme.ciphertext(sum, self.variance))
    }

    /// Cached ciphertexts.
    pub fn cached(&self) -> usize {
        self.radixes.len() + self.zeros.len()
    }

    /// Bytes of the cache.
    pub fn bytes(&self) -> usize {
        self.radixes.iter().chain(&self.zeros).map(RlweCiphertext::bytes).sum()
    }
}

impl<S> fmt::Debug for ChemEncryptor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChemEncryptor(INSECURE, {} bits, radix {})", self.bits, self.radix)
    }
}
