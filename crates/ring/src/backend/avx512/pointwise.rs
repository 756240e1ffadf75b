//! Operations on residues at one index, and the permutation of automorphisms.

use core::arch::x86_64::*;

use super::arithmetic::lanes::{self, Lanes, splat_factor};
use crate::backend::Quotient;
use crate::{Automorphism, Modulus, ShoupFactor};

/// A kernel over equally long slices, a multiple of eight words: `out[i] = f(out[i], a[i], ...)`, eight at a time.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident($l:ident, $out:ident $(, $input:ident)*; $($constant:ident: $type:ty),*) $body:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// All slices have the same length, a multiple of 8, and the CPU has the enabled features.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        pub(super) unsafe fn $name<L: Lanes>(m: &Modulus, $out: &mut [u64] $(, $input: &[u64])* $(, $constant: $type)*) {
            debug_assert!($out.len().is_multiple_of(8) $(&& $input.len() == $out.len())*);
            // SAFETY: indices stay below the common length.
            unsafe {
                let $l = L::new(m);
                $(let $constant = splat_factor::<L>($constant);)*
                for i in (0..$out.len()).step_by(8) {
                    let to = $out.as_mut_ptr().add(i).cast::<__m512i>();
                    let $out = to.read_unaligned();
                    $(let $input = $input.as_ptr().add(i).cast::<__m512i>().read_unaligned();)*
                    to.write_unaligned($body);
                }
            }
        }
    };
}

kernel! {
    /// `x += y`.
    add_assign(l, x, y;) l.canonical_once(_mm512_add_epi64(x, y))
}
kernel! {
    /// `x -= y`.
    sub_assign(l, x, y;) l.canonical_once(_mm512_sub_epi64(_mm512_add_epi64(x, l.q()), y))
}
kernel! {
    /// `x = -x`.
    neg_assign(l, x;) l.canonical_once(_mm512_sub_epi64(l.q(), x))
}
kernel! {
    /// `out = x * y`.
    mul(l, out, x, y;) {
        let _ = out;
        l.multiply_add(x, y, _mm512_setzero_si512())
    }
}
kernel! {
    /// `acc += x * y`.
    mul_add_assign(l, acc, x, y;) l.multiply_add(x, y, acc)
}
kernel! {
    /// `x = x * w`.
    mul_scalar_assign(l, x; w: ShoupFactor) l.canonical(l.product(x, w))
}
kernel! {
    /// `acc += x * w`.
    mul_scalar_add_assign(l, acc, x; w: ShoupFactor) {
        l.canonical(l.reduce(_mm512_add_epi64(acc, l.product(x, w))))
    }
}

/// Residues of small integers: `q` is added to the negative ones.
///
/// # Safety
/// Both slices have the same length, a multiple of 8; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn lift_small(m: &Modulus, values: &[i64], out: &mut [u64]) {
    let q = _mm512_set1_epi64(m.value() as i64);
    for (value, place) in values.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        // SAFETY: eight words each.
        unsafe {
            let value = value.as_ptr().cast::<__m512i>().read_unaligned();
            place.as_mut_ptr().cast::<__m512i>().write_unaligned(lanes::lift_small(q, value));
        }
    }
}

/// `out[i] = input[source(i)]`: one load and one permutation for eight words.
///
/// # Safety
/// `input` and `out` have the automorphism's degree; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn permute(automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
    let shifts = _mm512_setr_epi64(0, 3, 6, 9, 12, 15, 18, 21);
    let tables = automorphism.groups.iter().zip(&automorphism.lanes);
    for (eight, (&group, &lanes)) in out.as_chunks_mut::<8>().0.iter_mut().zip(tables) {
        // The permutation reads the low three bits of each index.
        let indices = _mm512_srlv_epi64(_mm512_set1_epi64(i64::from(lanes)), shifts);
        // SAFETY: groups are below an eighth of the degree.
        unsafe {
            let words = input.as_ptr().add(8 * group as usize).cast::<__m512i>().read_unaligned();
            eight.as_mut_ptr().cast::<__m512i>().write_unaligned(_mm512_permutexvar_epi64(indices, words));
        }
    }
}

/// The last step of a division, see [`Quotient`].
///
/// # Safety
/// All slices have the same length, a multiple of 8; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn quotient<L: Lanes>(m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]) {
    let Quotient { dividend, remainder, factor, addend, addend_factor } = *quotient;
    // SAFETY: indices stay below the common length.
    unsafe {
        let l = L::new(m);
        let (factor, addend_factor) =
            (splat_factor::<L>(factor), addend_factor.map(|w| splat_factor::<L>(w)));
        let load = |words: &[u64], i: usize| words.as_ptr().add(i).cast::<__m512i>().read_unaligned();
        for i in (0..out.len()).step_by(8) {
            let difference = _mm512_sub_epi64(_mm512_add_epi64(load(dividend, i), l.q()), load(remainder, i));
            let mut value = l.product(difference, factor);
            if let Some(addend) = addend {
                let addend = load(addend, i);
                let addend = addend_factor.map_or(addend, |w| l.product(addend, w));
                value = l.reduce(_mm512_add_epi64(value, addend));
            }
            out.as_mut_ptr().add(i).cast::<__m512i>().write_unaligned(l.canonical(value));
        }
    }
}
