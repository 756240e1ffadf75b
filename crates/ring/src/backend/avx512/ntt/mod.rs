//! Negacyclic transforms.
//!
//! Layers between vectors run depth first, in passes of radix 4, 8 or 16 held in registers. A limb thus passes through
//! the second-level cache once, and the rest of the work stays in the first-level cache. The last seven layers of a
//! forward transform are one visit to 128 words, see [`tail`]. Twiddle factors lie in the order in which they are read
//! ([`tables`]).

mod forward;
mod inverse;
mod passes;
mod tables;
mod tail;

use alloc::boxed::Box;
use core::marker::PhantomData;

use super::arithmetic::lanes::Lanes;
use super::arithmetic::short::is_short;
#[cfg(feature = "std")]
use crate::RaceOnce;
use crate::backend::NttPlan;
use crate::conversion::{Column, ScaledLayout, ScaledPart};
use crate::{Buffer, Modulus, ShoupFactor};

/// Words that are transformed without leaving registers.
const TAIL: usize = 128;

/// `log2` of the radix of the pass over a block of `length` words. For limbs of `2^10` to `2^17` words, `length` is
/// always `TAIL` times a power of two of at least 4.
const fn pass_log_radix(length: usize) -> u32 {
    match (length / TAIL).trailing_zeros() {
        2 => 2,
        3 | 5 | 6 => 3,
        _ => 4,
    }
}

/// Words of a run. The runs of a part are the operands of the first pass; sixteen runs are 8 KiB.
const RUN: usize = 32;

/// A part of a row is what one step of the first forward pass reads, and what one step of the last inverse pass writes.
pub(super) const fn scaled_layout(length: usize) -> ScaledLayout {
    ScaledLayout { runs: 1 << pass_log_radix(length), words: RUN }
}

/// Transforms modulo one prime.
///
/// # Invariant
/// The tables are those of [`tables`] for `length` and `L`; a value exists only where the CPU has the features of
/// [`super::Avx512`].
pub(super) struct Plan<L> {
    modulus: Modulus,
    length: usize,
    forward: Buffer,
    inverse: Buffer,
    psi: u64,
    /// Tables of forward transforms in subrings of degree `2^MIN_LOG_N` and above, made at first use. Factors lie in
    /// the order of the passes, which differs between degrees.
    #[cfg(feature = "std")]
    subrings: [RaceOnce<Buffer>; SUBRINGS],
    lanes: PhantomData<fn() -> L>,
}

impl<L: Lanes + 'static> Plan<L> {
    /// # Safety
    /// The CPU has the features of [`super::Avx512`].
    pub(super) unsafe fn new(log_n: u32, modulus: &Modulus, psi: u64) -> Box<Self> {
        let length = 1 << log_n;
        Box::new(Self {
            modulus: *modulus,
            length,
            forward: tables::forward::<L>(modulus, log_n, psi),
            inverse: tables::inverse::<L>(modulus, log_n, psi),
            psi,
            #[cfg(feature = "std")]
            subrings: core::array::from_fn(|_| RaceOnce::new()),
            lanes: PhantomData,
        })
    }

    /// Calls `f` with the table of the forward transform in the ring or the subring of degree `length`.
    fn with_table(&self, length: usize, f: impl FnOnce(&[u64])) {
        let log_m = length.trailing_zeros();
        assert!(
            length.is_power_of_two() && log_m >= crate::MIN_LOG_N && length <= self.length,
            "a limb of this plan's degree or of a subring"
        );
        if length == self.length {
            return f(&self.forward);
        }
        let make = || {
            let root = self.modulus.pow(self.psi, (self.length >> log_m) as u64);
            tables::forward::<L>(&self.modulus, log_m, root)
        };
        #[cfg(feature = "std")]
        f(self.subrings[(log_m - crate::MIN_LOG_N) as usize].get_or_init(make));
        #[cfg(not(feature = "std"))]
        f(&make());
    }
}

/// Degrees that are below the largest.
#[cfg(feature = "std")]
const SUBRINGS: usize = (crate::MAX_LOG_N - crate::MIN_LOG_N) as usize;

/// A part of the forward transform of a plan, with the arithmetic of its prime.
macro_rules! forward {
    ($plan:ident, $part:ident [$($conversion:ty)?] ($($argument:expr),*)) => {
        if is_short(&$plan.modulus) {
            forward::$part::<$($conversion,)? L::Forward>($($argument),*)
        } else {
            forward::$part::<$($conversion,)? L>($($argument),*)
        }
    };
}

impl<L: Lanes + 'static> NttPlan for Plan<L> {
    fn forward(&self, limb: &mut [u64], upcoming: &[u64]) {
        assert_eq!(limb.len(), self.length, "a limb of this plan's degree");
        // SAFETY: length and tables agree, and the CPU features are there, by the invariant.
        unsafe {
            forward!(self, transform[](&self.modulus, limb.as_mut_ptr(), limb.len(), &self.forward, upcoming));
        }
    }

    fn forward_subring(&self, limb: &mut [u64]) {
        self.with_table(limb.len(), |table| {
            // SAFETY: length and table agree, and the CPU features are there, by the invariant.
            unsafe { forward!(self, transform[](&self.modulus, limb.as_mut_ptr(), limb.len(), table, &[])) }
        });
    }

    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]) {
        assert_eq!(limb.len(), values.len(), "as many integers as residues");
        self.with_table(values.len(), |table| {
            // SAFETY: lengths and table agree, and the CPU features are there, by the invariant.
            unsafe {
                forward!(self, transform_small[](&self.modulus, values, limb.as_mut_ptr(), table, upcoming));
            }
        });
    }

    fn inverse(&self, limb: &mut [u64]) {
        assert_eq!(limb.len(), self.length, "a limb of this plan's degree");
        // SAFETY: length and tables agree, and the CPU features are there, by the invariant.
        unsafe { inverse::transform::<L>(&self.modulus, limb.as_mut_ptr(), limb.len(), &self.inverse) }
    }

    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, row: &mut [u64]) {
        assert!(limb.len() == self.length && row.len() == self.length, "limbs of this plan's degree");
        // SAFETY: lengths and tables agree, and the CPU features are there, by the invariant.
        unsafe {
            inverse::transform_to_row::<L>(
                &self.modulus,
                limb.as_mut_ptr(),
                limb.len(),
                &self.inverse,
                factor,
                row,
            );
        }
    }

    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
        let words = scaled_layout(self.length).part_words();
        assert_eq!(out.len(), self.length, "a limb of this plan's degree");
        assert!(part.words == words && part.part < self.length / words, "a part of this plan's rows");
        assert!(part.residues.iter().all(|row| row.len() == self.length), "rows of this plan's degree");
        assert_eq!(column.modulus, self.modulus, "a column of this plan's prime");
        // SAFETY: lengths and tables agree, and the CPU features are there, by the invariant.
        unsafe { forward!(self, convert_part[L](column, part, out.as_mut_ptr(), out.len(), &self.forward)) }
    }

    fn blocks(&self) -> usize {
        forward::blocks(self.length)
    }

    fn finish_block(&self, block: usize, words: &mut [u64], upcoming: [&[u64]; 2]) {
        let count = self.blocks();
        assert!(block < count && words.len() == self.length / count, "a block of this plan's limbs");
        // SAFETY: lengths and tables agree, and the CPU features are there, by the invariant.
        unsafe { forward!(self, finish[](&self.modulus, block, words, upcoming, self.length, &self.forward)) }
    }
}
