//! Switching up: from a ring to a larger one.
//!
//! A ciphertext `(c_0(Y), c_1(Y))` under `s'(Y)` in the ring of degree `n` is one of the ring of degree `N` with
//! `Y = X^k`: `c_0(X^k)` and `c_1(X^k)` under `s'(X^k)`, of the message `m(X^k)`. Its value at `x` is the old value at
//! `x^k`, so evaluation form repeats every entry `k` times ([`mod@super::ring_down`]). One ordinary switch with a key
//! of the large ring from `s'(X^k)` ([`crate::KeyElement::RingUp`], [`crate::KeyElement::RingUpToSparse`]) completes
//! it.

use keywright_ring::{Evaluation, Poly};

use super::mod_up::Decomposed;
use super::pipeline::Finish;
use crate::parallel::for_each_item;
use crate::{KeyUse, Parameters, RlweCiphertext, RlweError};

/// A polynomial of a smaller ring in the ring of these parameters.
fn embedded(to: &Parameters, poly: &Poly<Evaluation>) -> Poly<Evaluation> {
    let (n, k) = (to.n(), to.n() / poly.n());
    let mut out = Poly::unspecified(n, poly.limb_count());
    for_each_item(out.limbs_mut().zip(poly.limbs()).collect(), |_, (out, limb): (&mut [u64], &[u64])| {
        out.chunks_exact_mut(k).zip(limb).for_each(|(entries, &value)| entries.fill(value));
    });
    out
}

/// Converts a ciphertext of a smaller ring to the ring `to` of the same primes, under the target secret of the key. Its
/// message is `m(X^k)`.
///
/// # Errors
/// [`RlweError::Level`] for an input at another level than that of the use; as [`Decomposed::rows_of`] and
/// [`crate::KeySource::load`].
///
/// # Panics
/// Unless the input has two polynomials.
pub fn ring_up(
    to: &Parameters,
    input: &RlweCiphertext,
    key_use: &KeyUse,
) -> Result<RlweCiphertext, RlweError> {
    assert_eq!(input.degree(), 1, "a ciphertext of two polynomials");
    let [c0, c1] = [0, 1].map(|i| embedded(to, &input.polys[i]));
    let decomposed = Decomposed::new(to, key_use.plan.clone(), &c1)?;
    let key = key_use.key.load()?;
    let rows = decomposed.rows_of(&key, key_use.coalesce)?;
    let finish = [Finish { addend: [Some(&c0), None], automorphism: None }];
    let mut out = decomposed.switch(&[(&key, rows)], &finish).remove(0);
    out.key = out.key.or(input.key);
    Ok(out)
}
