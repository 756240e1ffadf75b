//! RLWE ciphertexts, encryptions of zero, decryption.

use alloc::vec::Vec;
use core::fmt;

use keywright_ring::sampling::{Samples, SecretRng};
use keywright_ring::{Buffer, Evaluation, Poly, Ring, Seed, StreamId};
use zeroize::Zeroize;

use crate::parallel::for_each_item;
use crate::{KeyIdentity, Parameters, PublicKey, RlweError, SecretKey};

/// Stream object of the uniform halves of symmetric encryptions.
pub const ENCRYPTION_STREAM: u64 = 4 << 40;

/// `(c_0, c_1, ...)` with `c_0 + c_1 s + c_2 s^2 + ... = m + e` modulo `q_0 ... q_level`.
#[derive(Clone, Debug, PartialEq)]
pub struct RlweCiphertext {
    /// At least two polynomials with equally many limbs.
    pub polys: Vec<Poly<Evaluation>>,
    /// The identity of the secret `s`, or of the secret whose subring secret is `s`.
    pub key: KeyIdentity,
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

/// A symmetric encryption whose uniform half is a seed: half the bytes. It can be stored and sent; expand it before
/// computing with it.
#[derive(Clone)]
pub struct SeededRlweCiphertext {
    /// Seed of `c_1`.
    pub seed: Seed,
    /// `c_0`.
    pub c0: Poly<Evaluation>,
    /// As in [`RlweCiphertext::key`].
    pub key: KeyIdentity,
}

impl SeededRlweCiphertext {
    /// The ciphertext with its uniform half expanded.
    pub fn expand(&self, parameters: &Parameters) -> RlweCiphertext {
        let a = uniform_half(parameters, &self.seed, self.c0.limb_count());
        RlweCiphertext { polys: alloc::vec![self.c0.clone(), a], key: self.key }
    }
}

impl fmt::Debug for SeededRlweCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeededRlweCiphertext({:?})", self.c0)
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

/// Adds the coefficients of a message modulo prime `i` to a limb in coefficient form.
pub type AddMessage<'m> = &'m (dyn Fn(usize, &mut [u64]) + Sync);

/// A fresh encryption of a message under a public key: `(b u + e_0 + m, a u + e_1)` with ternary `u`. Message and error
/// share one transform. Without a message it encrypts zero.
///
/// # Errors
/// [`RlweError::Level`] if `level` is above the key's; [`RlweError::Ring`] for a generator of given entropy in a forked
/// child.
pub fn encrypt_zero(
    key: &PublicKey,
    level: usize,
    rng: &mut SecretRng,
    add_message: Option<AddMessage<'_>>,
) -> Result<RlweCiphertext, RlweError> {
    let parameters = key.parameters();
    parameters.require_level(level)?;
    rng.begin()?;
    let (ring, n) = (parameters.ring(), parameters.n());
    let u = Samples::ternary(n, rng);
    let (e0, e1) = (Samples::gaussian(n, rng), Samples::gaussian(n, rng));
    let (mut c0, mut c1) = (Poly::unspecified(n, level + 1), Poly::unspecified(n, level + 1));
    let limbs: Vec<_> = c0.limbs_mut().zip(c1.limbs_mut()).collect();
    for_each_item(limbs, |i, (c0, c1)| {
        let (m, backend) = (ring.modulus(i), ring.backend());
        let mut mask = Buffer::unspecified(n);
        // Every transform prefetches the limbs that are read or written next.
        ring.forward_small_limb(i, &u, &mut mask, c0);
        // Not the key: every encryption reads it, so it is in some cache. The output is fresh memory.
        forward_noisy(ring, i, &e0, add_message, c0, c1);
        backend.mul_add_assign(m, c0, key.b().limb(i), &mask);
        ring.forward_small_limb(i, &e1, c1, key.a().limb(i));
        backend.mul_add_assign(m, c1, key.a().limb(i), &mask);
        mask.zeroize();
    });
    rng.require_operation()?;
    Ok(RlweCiphertext { polys: alloc::vec![c0, c1], key: key.identity() })
}

/// A fresh symmetric encryption `(-a s + e + m, a)` with `a` from a seed, otherwise as [`encrypt_zero`].
///
/// # Errors
/// [`RlweError::Level`] if `level` is above the highest; [`RlweError::Ring`] as in [`encrypt_zero`].
pub fn encrypt_zero_symmetric(
    secret: &SecretKey,
    level: usize,
    rng: &mut SecretRng,
    add_message: Option<AddMessage<'_>>,
) -> Result<SeededRlweCiphertext, RlweError> {
    let parameters = secret.parameters();
    parameters.require_level(level)?;
    rng.begin()?;
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
        forward_noisy(ring, i, &error, add_message, limb, &[]);
        backend.sub_assign(m, limb, &product);
        product.zeroize();
    });
    rng.require_operation()?;
    Ok(SeededRlweCiphertext { seed, c0, key: secret.identity() })
}

/// The evaluations of an error and a message modulo prime `i`, while prefetching `upcoming`.
fn forward_noisy(
    ring: &Ring,
    i: usize,
    error: &[i64],
    add_message: Option<AddMessage<'_>>,
    limb: &mut [u64],
    upcoming: &[u64],
) {
    match add_message {
        None => ring.forward_small_limb(i, error, limb, upcoming),
        Some(add_message) => {
            ring.lift_small(i, error, limb);
            add_message(i, limb);
            ring.forward_limb_fetching(i, limb, upcoming);
        }
    }
}

/// `c_0 + c_1 s + ...` modulo the first `limbs` primes, in coefficient form. The result is the message with its error;
/// the caller is responsible for what it reveals (see SECURITY.md).
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
