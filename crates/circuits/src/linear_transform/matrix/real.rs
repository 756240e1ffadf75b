//! Real diagonals: half of the words, and two in one transform.
//!
//! A real diagonal of period `p` is a polynomial `f` of `M = 2p` coefficients in the generator `X` of its subring, with
//! `f(X) = f(1/X)`: coefficient `M/2` is 0, and `M - i` is minus coefficient `i`. So the first `M/2` coefficients
//! determine it. The values at a root and at its inverse are equal. Root `i` of the evaluation form is
//! `psi^(2 brv(i) + 1)`, and the inverse of root `i` is root `M - 1 - i`. So the first `M/2` values are enough, too.
//!
//! Two such polynomials need one transform, that of `s = f + X^(M/2) g`. `X^(M/2)` is the same square root `r` of -1 at
//! all roots of the lower half, where `2 brv(i) + 1` is 1 modulo 4, and `-r` at their inverses. With `s_i` and `s'_i`
//! the values at a root of the lower half and at its inverse,
//!
//! ```text
//! f_i = (s_i + s'_i) / 2,    g_i = (s_i - s'_i) / 2r.
//! ```
//!
//! All of this is exact modulo every prime.

use keywright_ckks::CkksParameters;
use keywright_ring::{MIN_LOG_N, ShoupFactor};

/// Coefficients that are transformed are below this in magnitude.
pub(crate) const COEFFICIENT_LIMIT: f64 = (1u64 << 62) as f64;

/// The transforms of pairs of real diagonals modulo one prime.
pub(crate) struct PairTransform<'p> {
    parameters: &'p CkksParameters,
    prime: usize,
    /// `1/2` and `-1/2r`.
    factors: [ShoupFactor; 2],
}

impl<'p> PairTransform<'p> {
    pub(crate) fn new(parameters: &'p CkksParameters, prime: usize) -> Self {
        let ring = parameters.rlwe().ring();
        let m = ring.modulus(prime);
        let mut unit = [0; 1 << MIN_LOG_N];
        unit[1 << (MIN_LOG_N - 1)] = 1;
        ring.forward_subring_limb(prime, &mut unit);
        let half = m.inv(2);
        let factors = [half, m.neg(m.mul(half, m.inv(unit[0])))].map(|factor| m.shoup(factor));
        Self { parameters, prime, factors }
    }

    /// The lower halves of the values of one or two diagonals, each given by the first half of its coefficients, which
    /// are at most `largest`. `out` has as many words as a whole polynomial. The values of the first diagonal are its
    /// first half, those of the second one its second half.
    pub(crate) fn transform(
        &self,
        first: &[i64],
        second: Option<&[i64]>,
        largest: f64,
        whole: &mut [i64],
        out: &mut [u64],
    ) {
        let whole = &mut whole[..2 * first.len()];
        let backend = self.parameters.rlwe().ring().backend();
        backend.join_halves(first, second, whole);
        transform(self.parameters, self.prime, whole, largest, out);
        if second.is_some() {
            let m = self.parameters.rlwe().ring().modulus(self.prime);
            backend.separate_halves(m, self.factors, out);
        }
    }
}

/// The values modulo a prime of the polynomial in a subring with these coefficients, of magnitude at most `largest`:
/// `out.len()` of them, of which each is repeated equally often.
pub(crate) fn transform(
    parameters: &CkksParameters,
    prime: usize,
    words: &[i64],
    largest: f64,
    out: &mut [u64],
) {
    let ring = parameters.rlwe().ring();
    let modulus = ring.modulus(prime);
    // The modulus rounds to f64 by less than half of itself.
    if words.len() == out.len() && 2.0 * largest < modulus.value() as f64 {
        ring.forward_small_limb(prime, words, out, &[]);
    } else {
        parameters.embedding().residues_of_words(words, largest, modulus, out);
        ring.forward_subring_limb(prime, out);
    }
}
