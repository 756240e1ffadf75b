//! AVX-512 with 52-bit fused multiply-add (IFMA) and funnel shifts (VBMI2), both since Ice Lake and Zen 4: eight
//! residues per register.
//!
//! Narrow primes use the 52-bit instructions, wide ones 32-bit products. Lazy ranges are those of [`lanes`].

mod arithmetic;
mod chacha;
mod conversion;
mod fetch;
mod halves;
mod inner_product;
mod ntt;
mod planes;
mod pointwise;
mod sampling;

use alloc::boxed::Box;

use self::arithmetic::narrow::Narrow;
use self::arithmetic::wide::Wide;
use super::methods::{methods, proven};
use super::{
    Backend, BackendKind, Diagonals, Kernels, KeySwitching, NttPlan, Planes, Sampling, UniformRow, avx2,
    require_length, require_planes, require_planes_mut,
};
use crate::conversion::ScaledLayout;
use crate::randomness::expander::CHUNK_WORDS;
use crate::{Modulus, ShoupFactor};

/// The back end for CPUs with AVX-512 F, DQ, VL, IFMA and VBMI2.
///
/// # Invariant
/// Values exist only where [`Avx512::detect`] found the features.
#[derive(Debug)]
pub(super) struct Avx512(());

static AVX512: Avx512 = Avx512(());

impl Avx512 {
    /// The back end, if this CPU (and its operating system) can run it.
    pub(super) fn detect() -> Option<&'static dyn Backend> {
        #[cfg(feature = "std")]
        {
            use std::is_x86_feature_detected as has;
            let base = has!("avx512f") && has!("avx512dq") && has!("avx512vl");
            let all = base && has!("avx512ifma") && has!("avx512vbmi2");
            all.then_some(&AVX512 as &dyn Backend)
        }
        #[cfg(not(feature = "std"))]
        None
    }
}

/// Calls a kernel with the arithmetic of the modulus's width. First checks that all slices have the length of the
/// first, a multiple of eight words.
macro_rules! by_width {
    ($m:expr, $n:expr, [$($length:expr),*]; $module:ident::$kernel:ident($($argument:expr),*)) => {{
        let n: usize = $n;
        assert!(n.is_multiple_of(8) $(&& $length == n)*, "limbs of one length, a multiple of 8; here {n}");
        // SAFETY: the lengths agree, and a value of `Avx512` proves the CPU features.
        unsafe {
            if $m.is_narrow() {
                $module::$kernel::<Narrow>($($argument),*);
            } else {
                $module::$kernel::<Wide>($($argument),*);
            }
        }
    }};
}

impl Backend for Avx512 {
    fn kind(&self) -> BackendKind {
        BackendKind::Avx512
    }
}

impl Kernels for Avx512 {
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
        // SAFETY: `self` proves the CPU features.
        unsafe {
            if modulus.is_narrow() {
                ntt::Plan::<Narrow>::new(log_n, modulus, psi)
            } else {
                ntt::Plan::<Wide>::new(log_n, modulus, psi)
            }
        }
    }

    methods! {
        add_assign(self, m, a, b) => by_width!(m, a.len(), [b.len()]; pointwise::add_assign(m, a, b));
        sub_assign(self, m, a, b) => by_width!(m, a.len(), [b.len()]; pointwise::sub_assign(m, a, b));
        neg_assign(self, m, a) => by_width!(m, a.len(), []; pointwise::neg_assign(m, a));
        mul(self, m, a, b, out) => by_width!(m, out.len(), [a.len(), b.len()]; pointwise::mul(m, out, a, b));
        mul_add_assign(self, m, acc, a, b) =>
            by_width!(m, acc.len(), [a.len(), b.len()]; pointwise::mul_add_assign(m, acc, a, b));
        mul_scalar_assign(self, m, a, w) => by_width!(m, a.len(), []; pointwise::mul_scalar_assign(m, a, w));
        mul_scalar_add_assign(self, m, acc, a, w) =>
            by_width!(m, acc.len(), [a.len()]; pointwise::mul_scalar_add_assign(m, acc, a, w));
        quotient(self, m, quotient, out) => {
            let n = out.len();
            assert!(
                quotient.addend.is_none_or(|addend| addend.len() == n),
                "an addend of the quotient's length, {n}"
            );
            by_width!(m, n, [quotient.dividend.len(), quotient.remainder.len()]; pointwise::quotient(m, quotient, out));
        };
        lift_small(self, m, values, out) => {
            assert!(
                out.len().is_multiple_of(8) && values.len() == out.len(),
                "limbs of one length, a multiple of 8"
            );
            proven!(pointwise::lift_small(m, values, out));
        };
        permute(self, automorphism, input, out) => {
            let n = 8 * automorphism.groups.len();
            assert!(input.len() == n && out.len() == n, "limbs of the automorphism's degree, {n}");
            proven!(pointwise::permute(automorphism, input, out));
        };
    }
}

impl KeySwitching for Avx512 {
    fn scaled_layout(&self, n: usize) -> ScaledLayout {
        ntt::scaled_layout(n)
    }

    methods! {
        derive_terms(self, decomposer, rows, out) => {
            let n = rows.first().map_or(0, |row| row.len());
            assert_eq!(rows.len(), decomposer.sources().len(), "a row for every source");
            assert!(
                n.is_multiple_of(8) && rows.iter().all(|row| row.len() == n),
                "rows of one length, a multiple of 8"
            );
            assert_eq!(out.len(), n * decomposer.derived_count(), "room for every derived term");
            proven!(conversion::derive_terms(decomposer, rows, n, out));
        };
        inner_product(self, m, digits, b, a, out_b, out_a) => {
            let n = out_b.len();
            assert!(digits.len() == b.len() && digits.len() == a.len(), "a row of each half for every digit");
            assert!(
                n.is_multiple_of(CHUNK_WORDS) && out_a.len() == n,
                "results of one length, a multiple of {CHUNK_WORDS}"
            );
            assert!(digits.iter().chain(b).all(|row| row.len() == n), "rows as long as the result");
            let stored = |row: &UniformRow<'_>| !matches!(row, UniformRow::Stored(words) if words.len() != n);
            assert!(a.iter().all(stored), "rows as long as the result");
            by_width!(m, 0, []; inner_product::inner_product(m, digits, b, a, out_b, out_a));
        };
    }
}

impl Diagonals for Avx512 {
    methods! {
        inner_products(self, m, terms, repeat, add, out) => {
            let n = out[0].len();
            assert!(
                n.is_multiple_of(8) && out.iter().all(|out| out.len() == n),
                "results of one length, a multiple of 8"
            );
            let rows = terms.iter().flat_map(|term| &term.rows).all(|row| row.len() == n);
            let factors = terms.iter().flat_map(|term| [term.factor, term.upcoming]);
            assert!(
                rows && factors.into_iter().all(|factor| factor.len() * repeat == n),
                "rows as long as the result"
            );
            assert!(matches!(repeat, 1 | 2 | 4 | 8), "words repeat 1, 2, 4 or 8 times, not {repeat} times");
            by_width!(m, 0, []; inner_product::inner_products(m, terms, repeat, add, out));
        };
        join_halves(self, f, g, out) => {
            let half = f.len();
            assert!(
                half.is_power_of_two() && g.is_none_or(|g| g.len() == half) && out.len() == 2 * half,
                "halves of one length, a power of two, and twice as many coefficients"
            );
            proven!(halves::join(f, g, out));
        };
        separate_halves(self, m, factors, values) => {
            assert!(values.len().is_multiple_of(32), "values in multiples of 32, not {}", values.len());
            by_width!(m, 0, []; halves::separate(m, factors, values));
        };
    }
}

impl Sampling for Avx512 {
    methods! {
        expand_part(self, seed, id, m, start, out) => proven!(chacha::expand_part(seed, id, m, start, out));
        key_stream(self, key, first, out) => proven!(chacha::key_stream(key, first, out));
        gaussian(self, words, out) => proven!(sampling::gaussian(words, out));
        ternary(self, words, out) => proven!(sampling::ternary(words, out));
    }
}

impl Planes for Avx512 {
    methods! {
        add_words(self, planes, sums) => {
            require_planes(planes, 4 * sums.len());
            proven!(avx2::planes::add_words(planes, sums));
        };
        add_bytes(self, planes, sums) => {
            require_planes(planes, sums.len());
            proven!(avx2::planes::add_bytes(planes, sums));
        };
        fold_sums(self, m, high, sums) => {
            require_length(high, sums.len());
            proven!(planes::fold_sums(m, high, sums));
        };
        write_planes(self, words, low, high) => {
            require_planes_mut(words.len(), low, high);
            proven!(planes::write_planes(words, low, high));
        };
    }
}

#[cfg(test)]
mod tests;
