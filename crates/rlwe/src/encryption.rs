//! RLWE ciphertexts, encryptions of zero, decryption.

use alloc::vec::Vec;
use core::fmt;

use keywright_ring::sampling::{Samples, SecretRng};
use keywright_ring::{Buffer, Evaluation, Poly, Seed, StreamId};
use zeroize::Zeroize;

use crate::parallel::for_each_item;
use crate::{Parameters, PublicKey, RlweError, SecretKey};

/// Stream object of the uniform halves of symmetric encryptions.
pub const ENCRYPTION_STREAM: u64 = 4 << 40;

/// `(c_0, c_1, ...)` with `c_0 + c_1 s + c_2 s^2 + ... = m + e` modulo `q_0 ... q_level`.
#[derive(Clone, Debug, PartialEq)]
pub struct RlweCiphertext {
    /// At least two polynomials with equally many limbs.
    pub polys: Vec<Poly<Evaluation>>,
}

impl RlweCiphertext {
    /// Level: number of limbs less one.
    pub fn level(&self) -> usize {
        self.polys[0].limb_count() - 1
    }

    /// Highest power of the secret.
    pub fn degree(&self) -> usize {
        self.polys.len() - 1
    }

    /// Bytes of its residues.
    pub fn bytes(&self) -> usize {
        self.polys.iter().map(|p| p.words().len() * 8).sum()
    }
}

/// A symmetric encryption whose uniform half is a seed: half the bytes. It can be stored and sent; to compute with it,
/// expand it.
#[derive(Clone)]
pub struct SeededCiphertext {
    /// Seed of `c_1`.
    pub seed: Seed,
    /// `c_0`.
    pub c0: Poly<Evaluation>,
}

impl SeededCiphertext {
    /// The ciphertext with its uniform half expanded.
    pub fn expand(&self, parameters: &Parameters) -> RlweCiphertext {
        let a = uniform_half(parameters, &self.seed, self.c0.limb_count());
        RlweCiphertext { polys: alloc::vec![self.c0.clone(), a] }
    }
}

impl fmt::Debug for SeededCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeededCiphertext({:?})", self.c0)
    }
}

fn uniform_half(parameters: &Parameters, seed: &Seed, limbs: usize) -> Poly<Evaluation> {
    let ring = parameters.ring();
    let mut a = Poly::unspecified(parameters.n(), limbs);
    for_each_item(a.limbs_mut().collect(), |i, limb: &mut [u64]| {
        let id = StreamId { object: ENCRYPTION_STREAM, digit: 0, limb: i as u16 };
        ring.backend().expand_uniform(seed, id, ring.modulus(i), limb);
    });
    a
}

/// A fresh encryption of `message` under a public key: `(b u + e_0 + m, a u + e_1)` with ternary `u`.
///
/// `add_message(i, limb)` adds the coefficients of the message modulo prime `i` to a limb in coefficient form, so that
/// message and error share one transform.
///
/// # Errors
/// [`RlweError::Level`] if `level` is above the key's.
pub fn encrypt_zero(
    key: &PublicKey,
    level: usize,
    rng: &mut SecretRng,
    add_message: impl Fn(usize, &mut [u64]) + Sync + Send,
) -> Result<RlweCiphertext, RlweError> {
    let parameters = key.parameters();
    parameters.require_level(level)?;
    let (ring, n) = (parameters.ring(), parameters.n());
    let u = Samples::ternary(n, rng);
    let (e0, e1) = (Samples::gaussian(n, rng), Samples::gaussian(n, rng));
    let (mut c0, mut c1) = (Poly::unspecified(n, level + 1), Poly::unspecified(n, level + 1));
    let limbs: Vec<_> = c0.limbs_mut().zip(c1.limbs_mut()).collect();
    for_each_item(limbs, |i, (c0, c1)| {
        let (m, backend) = (ring.modulus(i), ring.backend());
        let mut mask = Buffer::unspecified(n);
        // Every transform fetches what is needed next: what is to be written counts as well.
        ring.lift_small(i, &u, &mut mask);
        ring.forward_limb_fetching(i, &mut mask, c0);
        ring.lift_small(i, &e0, c0);
        add_message(i, c0);
        // Not the key: it is in some cache, as what every encryption reads. What is made is fresh memory.
        ring.forward_limb_fetching(i, c0, c1);
        backend.mul_add_assign(m, c0, key.b().limb(i), &mask);
        ring.lift_small(i, &e1, c1);
        ring.forward_limb_fetching(i, c1, key.a().limb(i));
        backend.mul_add_assign(m, c1, key.a().limb(i), &mask);
        mask.zeroize();
    });
    Ok(RlweCiphertext { polys: alloc::vec![c0, c1] })
}

/// A fresh symmetric encryption `(-a s + e + m, a)` with `a` from a seed. `add_message` as in [`encrypt_zero`].
///
/// # Errors
/// [`RlweError::Level`] if `level` is above the highest.
pub fn encrypt_zero_symmetric(
    secret: &SecretKey,
    level: usize,
    rng: &mut SecretRng,
    add_message: impl Fn(usize, &mut [u64]) + Sync + Send,
) -> Result<SeededCiphertext, RlweError> {
    let parameters = secret.parameters();
    parameters.require_level(level)?;
    let (ring, n) = (parameters.ring(), parameters.n());
    let seed = rng.public_seed();
    let error = Samples::gaussian(n, rng);
    let mut c0 = Poly::unspecified(n, level + 1);
    for_each_item(c0.limbs_mut().collect(), |i, limb: &mut [u64]| {
        let (m, backend) = (ring.modulus(i), ring.backend());
        let (mut a, mut product) = (Buffer::unspecified(n), Buffer::unspecified(n));
        let id = StreamId { object: ENCRYPTION_STREAM, digit: 0, limb: i as u16 };
        backend.expand_uniform(&seed, id, m, &mut a);
        backend.mul(m, &a, secret.limb(i), &mut product);
        ring.lift_small(i, &error, limb);
        add_message(i, limb);
        ring.forward_limb(i, limb);
        backend.sub_assign(m, limb, &product);
        product.zeroize();
    });
    Ok(SeededCiphertext { seed, c0 })
}

/// `c_0 + c_1 s + ...` modulo the first `limbs` primes, in coefficient form. The result is the message with its error:
/// what it reveals is the caller's responsibility (see SECURITY.md).
pub fn decrypt(
    secret: &SecretKey,
    ciphertext: &RlweCiphertext,
    limbs: usize,
) -> Poly<keywright_ring::Coefficient> {
    let parameters = secret.parameters();
    let (ring, n) = (parameters.ring(), parameters.n());
    let mut out = Poly::unspecified(n, limbs.min(ciphertext.level() + 1));
    for_each_item(out.limbs_mut().collect(), |i, limb: &mut [u64]| {
        let (m, backend) = (ring.modulus(i), ring.backend());
        // Horner in s, from the highest power.
        let mut polys = ciphertext.polys.iter().rev();
        if let Some(last) = polys.next() {
            limb.copy_from_slice(last.limb(i));
        }
        let mut product = Buffer::unspecified(n);
        for poly in polys {
            backend.mul(m, limb, secret.limb(i), &mut product);
            limb.copy_from_slice(poly.limb(i));
            backend.add_assign(m, limb, &product);
        }
        product.zeroize();
        ring.inverse_limb(i, limb);
    });
    out
}
