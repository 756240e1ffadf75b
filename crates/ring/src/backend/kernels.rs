//! Arithmetic of polynomials modulo one prime.

use alloc::boxed::Box;

use crate::conversion::{Column, ScaledPart};
use crate::{Automorphism, Modulus, ShoupFactor};

/// Negacyclic transforms modulo one prime.
pub trait NttPlan: Send + Sync {
    /// Transforms coefficients to evaluations, in place; canonical in, canonical out. Prefetches `upcoming`, of any
    /// length, where the CPU has such an instruction.
    fn forward(&self, limb: &mut [u64], upcoming: &[u64]);
    /// The same in the subring of polynomials in `Y = X^(N/M)`, for the `M` coefficients of a limb of `M` words, where
    /// `M` is a power of two of at least `2^`[`crate::MIN_LOG_N`]. Entry `i` is the value at
    /// `Y = (psi^(N/M))^(2 brv(i) + 1)`. It equals each entry `i N/M + k`, `k < N/M`, of the transform in the ring.
    fn forward_subring(&self, limb: &mut [u64]);
    /// The evaluations of integers smaller than the modulus in absolute value, without a branch on them. The result is
    /// that of [`Kernels::lift_small`] and [`Self::forward`] or, for as many integers as a subring's degree, of
    /// [`Self::forward_subring`].
    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]);
    /// Transforms evaluations to coefficients, in place; canonical in, canonical out.
    fn inverse(&self, limb: &mut [u64]);
    /// Transforms evaluations to scaled residues: coefficients times `factor`, canonical, in the back end's order
    /// ([`super::KeySwitching::scaled_layout`]). Leaves unspecified words in `limb`.
    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, out: &mut [u64]);
    /// Converts one part of a polynomial to this prime, as the inner product of its terms with the column, and begins
    /// the transform of the result. `out` is the whole limb.
    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]);
    /// Number of equal blocks in which [`Self::finish_block`] ends the transform of a limb.
    fn blocks(&self) -> usize;
    /// Ends the transform of block `block` of a limb whose parts are all converted: canonical evaluations. Prefetches
    /// `upcoming`, as [`Self::forward`] does.
    fn finish_block(&self, block: usize, words: &mut [u64], upcoming: [&[u64]; 2]);
}

/// The last step of a division: `(dividend - remainder) * factor + addend * addend_factor`.
#[derive(Debug, Clone, Copy)]
pub struct Quotient<'a> {
    /// The dividend.
    pub dividend: &'a [u64],
    /// Its remainder.
    pub remainder: &'a [u64],
    /// The inverse of the divisor.
    pub factor: ShoupFactor,
    /// The addend of the quotient.
    pub addend: Option<&'a [u64]>,
    /// The factor of the addend; `None` for 1.
    pub addend_factor: Option<ShoupFactor>,
}

/// Kernels on limbs. Slices of one call have equal length, a multiple of 128, unless said otherwise.
pub trait Kernels: Send + Sync {
    /// Precomputes the transforms modulo a prime with the primitive `2N`-th root `psi`.
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan>;
    /// `a += b`.
    fn add_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]);
    /// `a -= b`.
    fn sub_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]);
    /// `a = -a`.
    fn neg_assign(&self, m: &Modulus, a: &mut [u64]);
    /// `out = a * b`.
    fn mul(&self, m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]);
    /// `acc += a * b`.
    fn mul_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]);
    /// `a = a * w`.
    fn mul_scalar_assign(&self, m: &Modulus, a: &mut [u64], w: ShoupFactor);
    /// `acc += a * w`.
    fn mul_scalar_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor);
    /// The last step of a division, see [`Quotient`].
    fn quotient(&self, m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]);
    /// Residues of integers smaller than the modulus in absolute value, without a branch on them.
    fn lift_small(&self, m: &Modulus, values: &[i64], out: &mut [u64]);
    /// `out[i] = input[source(i)]`: an automorphism in evaluation form.
    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]);
}
