//! Negacyclic transforms modulo a narrow prime in double precision; see [`super::residues`] for the arithmetic.
//!
//! Between passes the words of the limb hold the bits of doubles. A pass does three layers (radix 8) or two. The four
//! layers of distances 8, 4, 2 and 1 work on sixteen words in registers. Once a block fits into the first-level cache,
//! all its layers are done before the next block.
//!
//! # Forward
//! A butterfly is `x + y w, x - y w` and takes eight instructions, one of which rounds the product to an integer. For
//! `q < 2^46` ([`LAZY_BITS`]) this one is omitted. Values then have a multiple of `q` added, `C = q floor(2^52 / q)`,
//! so sums are in `[2^51, 2^53)`, where doubles are multiples of 1/2 or 1. The product before rounding is within `1/64`
//! of its integer, so the sum, which is rounded in any case, is the exact one. Factors may multiply values with `C`
//! added, because `C` is a multiple of `q`.
//!
//! # Invariant
//! In units of `q`, without `C`:
//!
//! * Lazy: a product is at most 1, so a canonical word is at most `1 + 17 = 18` after 17 layers, and
//!   `|x - C| <= 18 q < 2^51`. Nothing is reduced before the end.
//! * Rounded: a layer takes values up to `B` to values up to `17 B / 16 + 1/2`, and with `x` reduced first to
//!   `1/2 + 1/2 + B/16`. Values stay below 7.6, and so below `2^53`: a pass that would exceed [`LARGEST`] reduces in
//!   its first layer. The last four layers take at most [`LAST`] = 4.7. The first two give 5.5 and 6.35. The third
//!   reduces and gives 1.40, and the fourth gives at most 1.99.
//!
//! # Inverse
//! A butterfly is `x + y, (x - y) w`. The input of a pass is at most 1. Its sums have up to eight terms, and
//! `8 q < 2^53`. Its products are at most 1, and outputs that end in a sum are reduced. The first four layers reduce
//! the sums of eight words and the outputs that are sums.

mod passes;
mod sixteen;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::residues::{Factor, Field, Quotient, quotient};
use super::{conversion, pointwise};
use crate::backend::NttPlan;
use crate::backend::portable::kernels::lift_small;
use crate::backend::portable::ntt::reversed_powers;
use crate::conversion::{Column, ScaledPart};
use crate::{Modulus, ShoupFactor};
use passes::{Input, pass_forward, pass_inverse};

/// Primes of at most this width need neither rounding nor reduction between layers.
const LAZY_BITS: u32 = 46;
/// Words of a block whose layers are all done in the first-level cache (32 KiB).
const LOCAL: usize = 4096;
/// Words that the last layers of a forward transform hold in registers.
const SIXTEEN: usize = 16;
/// The largest value after a pass that does not reduce, in units of `q`.
const LARGEST: f64 = 7.6;
/// The largest value that the last four layers take.
const LAST: f64 = 4.7;
/// Slightly above the largest result of [`Field::reduce`].
const REDUCED: f64 = 0.502;

/// Layers of every pass before the last four layers of a transform of `n` words, from the largest distance on: as few
/// twos as possible, then threes.
fn pass_layers(n: usize) -> impl DoubleEndedIterator<Item = u32> + Clone {
    let layers = n.trailing_zeros() - SIXTEEN.trailing_zeros();
    let twos = (3 - layers % 3) % 3;
    (0..twos + (layers - 2 * twos) / 3).map(move |pass| if pass < twos { 2 } else { 3 })
}

/// The bound after `layers` layers that take values up to `bound`, in the rounded form.
fn grown(bound: f64, layers: u32, reduce: bool) -> f64 {
    (0..layers).fold(bound, |bound, layer| {
        let x = if reduce && layer == 0 { REDUCED } else { bound };
        x + 0.5 + bound / 16.0
    })
}

/// The transforms of one narrow prime.
pub(super) struct NarrowPlan {
    modulus: Modulus,
    /// `psi^brv(i)`.
    forward: Vec<Quotient>,
    /// `psi^-brv(i)`; entry 0 is `N^-1`, entry 1, the last layer's only factor, times `N^-1`.
    inverse: Vec<Quotient>,
}

impl NarrowPlan {
    pub(super) fn new(log_n: u32, modulus: &Modulus, psi: u64) -> Box<Self> {
        let quotients = |powers: Vec<u64>| powers.into_iter().map(|w| quotient(modulus, w)).collect();
        let scale = modulus.inv(1 << log_n);
        let mut inverse = reversed_powers(modulus, log_n, modulus.inv(psi));
        (inverse[0], inverse[1]) = (scale, modulus.mul(inverse[1], scale));
        Box::new(Self {
            modulus: *modulus,
            forward: quotients(reversed_powers(modulus, log_n, psi)),
            inverse: quotients(inverse),
        })
    }

    fn is_lazy(&self) -> bool {
        self.modulus.bits() <= LAZY_BITS
    }

    /// The multiple of `q` that is added to the values of a lazy transform.
    fn center(&self) -> f64 {
        let q = self.modulus.value();
        ((1 << 52) / q * q) as f64
    }

    /// Whether every value is an integer of at most `bound q`, without the added multiple of `q`.
    fn within(&self, x: &[u64], center: f64, bound: f64) -> bool {
        let bound = bound * self.modulus.value() as f64;
        x.iter().all(|&bits| {
            let value = f64::from_bits(bits) - center;
            value.abs() <= bound && value as i64 as f64 == value
        })
    }

    /// Turns canonical words, or doubles of at most `q`, into canonical words.
    #[target_feature(enable = "neon")]
    fn forward_passes<const LAZY: bool>(&self, mut input: Input, x: &mut [u64]) {
        let f = Field::new(&self.modulus);
        let center = if LAZY { self.center() } else { 0.0 };
        let passes = pass_layers(x.len());
        let last = passes.clone().count() - 1;
        let (mut size, mut first, mut bound) = (x.len(), 1, 1.0);
        // The work of a pass depends only on its number.
        let step = |number: usize, layers: u32, bound: f64| {
            let limit = if number == last { LAST } else { LARGEST };
            let reduce = !LAZY && grown(bound, layers, false) > limit;
            (reduce, if LAZY { bound + f64::from(layers) } else { grown(bound, layers, reduce) })
        };
        let mut remaining = passes.enumerate();
        while size > LOCAL {
            let Some((number, layers)) = remaining.next() else { break };
            let reduce;
            (reduce, bound) = step(number, layers, bound);
            pass_forward::<LAZY>(f, center, &self.forward, (input, layers, reduce), first, size, x);
            debug_assert!(self.within(x, center, bound));
            (size, first, input) = (size >> layers, first << layers, Input::Values);
        }
        for (index, block) in x.chunks_exact_mut(size).enumerate() {
            let (mut size, mut first, mut bound, mut input) = (size, first + index, bound, input);
            for (number, layers) in remaining.clone() {
                let reduce;
                (reduce, bound) = step(number, layers, bound);
                pass_forward::<LAZY>(f, center, &self.forward, (input, layers, reduce), first, size, block);
                debug_assert!(self.within(block, center, bound));
                (size, first, input) = (size >> layers, first << layers, Input::Values);
            }
            debug_assert!(LAZY || bound <= LAST);
            sixteen::last_layers_forward::<LAZY>(f, center, &self.forward, first, block);
            debug_assert!(block.iter().all(|&word| word < self.modulus.value()));
        }
    }

    fn forward_from(&self, input: Input, x: &mut [u64]) {
        // SAFETY: a plan is only made by `Neon`, whose existence proves the features.
        unsafe {
            if self.is_lazy() {
                self.forward_passes::<true>(input, x);
            } else {
                self.forward_passes::<false>(input, x);
            }
        }
    }

    #[target_feature(enable = "neon")]
    fn inverse_passes(&self, x: &mut [u64]) {
        let (f, t) = (Field::new(&self.modulus), &self.inverse[..]);
        let n = x.len();
        let passes = pass_layers(n);
        let count = passes.clone().count();
        // The last passes of the list, as many as work on local blocks.
        let mut local = SIXTEEN;
        let mut inner = 0;
        for layers in passes.clone().rev().take(count - 1) {
            if local << layers > LOCAL {
                break;
            }
            (local, inner) = (local << layers, inner + 1);
        }
        let mut remaining = passes.rev();
        for (index, block) in x.chunks_exact_mut(local).enumerate() {
            let number = n / local + index;
            sixteen::first_layers_inverse(f, t, number * (local / SIXTEEN), block);
            let mut size = SIXTEEN;
            for layers in remaining.clone().take(inner) {
                debug_assert!(self.within(block, 0.0, 1.0));
                size <<= layers;
                pass_inverse::<false>(f, t, layers, number * (local / size), size, block);
            }
        }
        let mut size = local;
        let last = remaining.next_back();
        for layers in remaining.skip(inner) {
            debug_assert!(self.within(x, 0.0, 1.0));
            size <<= layers;
            pass_inverse::<false>(f, t, layers, n / size, size, x);
        }
        debug_assert!(self.within(x, 0.0, 1.0));
        pass_inverse::<true>(f, t, last.unwrap_or(3), 1, n, x);
        debug_assert!(x.iter().all(|&word| word < self.modulus.value()));
    }
}

impl NttPlan for NarrowPlan {
    fn forward(&self, limb: &mut [u64], _upcoming: &[u64]) {
        self.forward_from(Input::Words, limb);
    }

    fn forward_subring(&self, x: &mut [u64]) {
        // The subring's factors are the first of the ring's, as in the portable back end.
        self.forward(x, &[]);
    }

    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]) {
        lift_small(&self.modulus, values, limb);
        self.forward(limb, upcoming);
    }

    fn inverse(&self, limb: &mut [u64]) {
        // SAFETY: as above.
        unsafe { self.inverse_passes(limb) }
    }

    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, row: &mut [u64]) {
        self.inverse(limb);
        row.copy_from_slice(limb);
        // SAFETY: as above.
        unsafe { pointwise::mul_scalar_assign(&self.modulus, row, factor) }
    }

    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
        let place = &mut out[part.part * part.words..(part.part + 1) * part.words];
        // SAFETY: as above.
        unsafe { conversion::convert(column, part, place) }
    }

    fn blocks(&self) -> usize {
        1
    }

    fn finish_block(&self, _block: usize, words: &mut [u64], _upcoming: [&[u64]; 2]) {
        self.forward_from(Input::Centered, words);
    }
}
