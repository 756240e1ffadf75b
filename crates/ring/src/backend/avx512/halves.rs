//! Real diagonals, of which halves are kept: two become the coefficients of one polynomial, and its values become those
//! of both.

use core::arch::x86_64::*;

use super::arithmetic::lanes::{Lanes, splat_factor};
use crate::backend::diagonals;
use crate::{Modulus, ShoupFactor};

/// The eight words before `p`, the last first.
///
/// # Safety
/// They exist; the CPU has AVX-512 F.
#[inline(always)]
unsafe fn reversed(p: *const u64) -> __m512i {
    // SAFETY: by contract.
    unsafe { reverse(p.sub(8).cast::<__m512i>().read_unaligned()) }
}

/// The lanes in reverse order.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn reverse(x: __m512i) -> __m512i {
    // SAFETY: by contract.
    unsafe { _mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), x) }
}

/// [`crate::backend::Diagonals::join_halves`].
///
/// # Safety
/// `f` and `g` have the same length, a power of two, and `out` has twice that; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn join(f: &[i64], g: Option<&[i64]>, out: &mut [i64]) {
    let half = f.len();
    let (low, high) = out.split_at_mut(half);
    diagonals::join(f, g, 0..half.min(8), low, high);
    let (f, g) = (f.as_ptr().cast::<u64>(), g.map(|g| g.as_ptr().cast::<u64>()));
    let (low, high) = (low.as_mut_ptr(), high.as_mut_ptr());
    // SAFETY: word `i` meets word `half - i` of the other half, from which the eight words `half - i - 7 ..= half - i`
    // are read: these exist, because `8 <= i <= half - 8`.
    unsafe {
        let zero = _mm512_setzero_si512();
        for i in (8..half).step_by(8) {
            let back = half - i + 1;
            let (mut to_low, mut to_high) =
                (f.add(i).cast::<__m512i>().read_unaligned(), _mm512_sub_epi64(zero, reversed(f.add(back))));
            if let Some(g) = g {
                to_low = _mm512_add_epi64(to_low, reversed(g.add(back)));
                to_high = _mm512_add_epi64(to_high, g.add(i).cast::<__m512i>().read_unaligned());
            }
            low.add(i).cast::<__m512i>().write_unaligned(to_low);
            high.add(i).cast::<__m512i>().write_unaligned(to_high);
        }
    }
}

/// [`crate::backend::Diagonals::separate_halves`].
///
/// # Safety
/// `values` has a length that is a multiple of 32; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn separate<L: Lanes>(m: &Modulus, factors: [ShoupFactor; 2], values: &mut [u64]) {
    let half = values.len() / 2;
    let (low, high) = values.split_at_mut(half);
    let (low, high) = (low.as_mut_ptr(), high.as_mut_ptr());
    // SAFETY: `i` and `j` are multiples of 8 below `half`, and all eight vectors of a turn are read before any is
    // written. Sums and differences of canonical residues are lazy words below `2q`, at most a unit.
    unsafe {
        let l = L::new(m);
        let factors = factors.map(|factor| splat_factor::<L>(factor));
        for i in (0..half / 2).step_by(8) {
            let j = half - 8 - i;
            let [low_i, low_j, high_i, high_j] = [low.add(i), low.add(j), high.add(i), high.add(j)]
                .map(|p| p.cast::<__m512i>().read_unaligned());
            for (to, low_value, high_value) in [(i, low_i, reverse(high_j)), (j, low_j, reverse(high_i))] {
                let sum = _mm512_add_epi64(low_value, high_value);
                let difference = _mm512_sub_epi64(_mm512_add_epi64(high_value, l.q()), low_value);
                for (out, value, factor) in [(low, sum, factors[0]), (high, difference, factors[1])] {
                    let product = l.canonical(l.product(value, factor));
                    out.add(to).cast::<__m512i>().write_unaligned(product);
                }
            }
        }
    }
}
