//! Negacyclic transforms modulo a narrow prime in double precision; see [`super::residues`] for the arithmetic.
//!
//! Between passes the words of a limb hold the bits of doubles. A pass does two layers (radix 4), or one where `log N`
//! is odd. The four layers of distances 8, 4, 2 and 1 work on sixteen words in registers. A limb of more than [`LOCAL`]
//! words consists of runs of [`LOCAL`] words. Its layers between runs work on a part of every run at a time, which a
//! basis conversion has just written, and its other layers on one run at a time. Both stay in the first-level cache.
//!
//! # Forward
//! Bounds are in units of `q`, and `g = q 2^-55` is the growth of [`super::residues`]. A layer takes values up to `B`
//! to `B + (1/2 + B g)`. If the sum's operand is reduced first, it takes them to `1/2 + (1/2 + B g)`. [`passes`]
//! chooses the passes that reduce in their first layer, so that no product has an operand of `2^52`. Primes below
//! `2^48` never reduce. At `2^50`, `B <= 4` before a product, and every third pass reduces.
//!
//! # Inverse
//! A pass takes at most [`INVERSE`] = 1.2. The sum of its four words, at most 4.8, is reduced. The product of the
//! difference of their sums is at most `3/4 + 4.8/32 = 0.9` ([`Field::mul_far`]). The sum of two products is at most
//! `2 (1/2 + 2.4/32) = 1.15`, the product of their difference `1/2 + 1.15/32 = 0.54`. The layers in registers take
//! canonical words, and give at most 1.08.

mod passes;
mod sixteen;
mod twiddles;

use alloc::boxed::Box;
use core::ops::Range;

use super::residues::Field;
use super::{dot, pointwise};
use crate::backend::NttPlan;
use crate::conversion::{Column, ScaledLayout, ScaledPart};
use crate::{Modulus, ShoupFactor};
use passes::{last_layers_inverse, layer_forward, radix4_forward, radix4_inverse};
use sixteen::{SIXTEEN, first_layers_inverse, last_layers_forward};
use twiddles::{LOCAL, Twiddles};

/// Words of a part of a limb: with six rows of terms they fill the first-level cache.
const PART: usize = 1024;
/// Largest value of an inverse transform between passes.
const INVERSE: f64 = 1.2;
/// Slightly above the largest result of [`Field::reduce`].
const REDUCED: f64 = 0.502;

/// The order of scaled residues: a part has equally many words of every run.
pub(super) const fn scaled_layout(n: usize) -> ScaledLayout {
    let runs = if n > LOCAL { n / LOCAL } else { 1 };
    ScaledLayout { runs, words: if n < PART { n } else { PART / runs } }
}

/// A pass over blocks of `size` words.
#[derive(Debug, Clone, Copy)]
struct Pass {
    size: usize,
    /// Whether it has two layers, not one.
    double: bool,
    reduce: bool,
    /// The largest value after it.
    bound: f64,
}

impl Pass {
    /// The distance of the words that it works on together.
    fn step(self) -> usize {
        self.size / if self.double { 4 } else { 2 }
    }
}

/// The passes of a forward transform of `n` words before the layers in registers.
fn passes(m: &Modulus, n: usize) -> impl Iterator<Item = Pass> + Clone {
    let q = m.value() as f64;
    let (room, growth) = ((1u64 << 52) as f64 / q, q / (1u64 << 55) as f64);
    let (mut size, mut bound) = (n, 1.0);
    core::iter::from_fn(move || {
        let layers = 2 - size.trailing_zeros() % 2;
        let limit = match size >> layers {
            ..SIXTEEN => return None,
            // As `room g = 1/8`, a layer adds at most 1/2 + 1/8.
            SIXTEEN => room - 3.0 * 0.625,
            _ => room,
        };
        let grow = |x: f64, y: f64| x + 0.5 + y * growth;
        // After the first layer, and after all.
        let grown = |x: f64| {
            let between = grow(x, bound);
            (between, if layers == 2 { grow(between, between) } else { between })
        };
        let (between, after) = grown(bound);
        let reduce = between > room || after > limit;
        bound = if reduce { grown(REDUCED).1 } else { after };
        let pass = Pass { size, double: layers == 2, reduce, bound };
        size >>= layers;
        Some(pass)
    })
}

/// The transforms of one narrow prime.
pub(super) struct NarrowPlan {
    modulus: Modulus,
    forward: Twiddles,
    inverse: Twiddles,
    /// `N^-1`, and its product with the factor of the last layer of the inverse.
    last: [u64; 2],
}

impl NarrowPlan {
    pub(super) fn new(log_n: u32, modulus: &Modulus, psi: u64) -> Box<Self> {
        let (scale, inverse) = (modulus.inv(1 << log_n), modulus.inv(psi));
        // The factor 1 of the list is the root's power N/2.
        let root = modulus.pow(inverse, 1 << (log_n - 1));
        Box::new(Self {
            modulus: *modulus,
            forward: Twiddles::new(log_n, modulus, psi),
            inverse: Twiddles::new(log_n, modulus, inverse),
            last: [scale, modulus.mul(scale, root)],
        })
    }

    /// Whether every value is an integer of at most `bound q`.
    fn within(&self, x: &[u64], bound: f64) -> bool {
        let bound = bound * self.modulus.value() as f64;
        x.iter().all(|&bits| {
            let value = f64::from_bits(bits);
            value.abs() <= bound && value as i64 as f64 == value
        })
    }

    /// The layers between runs, on words `columns` of every run. `WORDS` tells that the limb has canonical words, not
    /// doubles of at most `q`.
    #[target_feature(enable = "avx2,fma")]
    fn top_layers<const WORDS: bool>(&self, columns: Range<usize>, x: &mut [u64]) {
        let n = x.len();
        let top = passes(&self.modulus, n).take_while(|pass| pass.size > LOCAL);
        for (number, pass) in top.enumerate() {
            if WORDS && number == 0 {
                self.pass::<true>(pass, n / pass.size, columns.clone(), x);
            } else {
                self.pass::<false>(pass, n / pass.size, columns.clone(), x);
            }
        }
    }

    /// The other layers of run `run` of a limb of `n` words: canonical words.
    #[target_feature(enable = "avx2,fma")]
    fn local_layers<const WORDS: bool>(&self, n: usize, run: usize, x: &mut [u64], upcoming: [&[u64]; 2]) {
        let words = x.len();
        let number = |size: usize| (n + run * words) / size;
        let (all, integers) = (passes(&self.modulus, n), WORDS && n <= LOCAL);
        debug_assert!({
            let top = all.clone().take_while(|pass| pass.size > LOCAL).last();
            integers || self.within(x, top.map_or(1.0, |pass| pass.bound))
        });
        for (k, pass) in all.skip_while(|pass| pass.size > LOCAL).enumerate() {
            let (first, columns) = (number(pass.size), 0..pass.step());
            if integers && k == 0 {
                self.pass::<true>(pass, first, columns, x);
            } else {
                self.pass::<false>(pass, first, columns, x);
            }
            debug_assert!(self.within(x, pass.bound));
        }
        let first = number(SIXTEEN);
        last_layers_forward(Field::new(&self.modulus), &self.forward, first, x, upcoming);
    }

    #[target_feature(enable = "avx2,fma")]
    fn pass<const WORDS: bool>(&self, pass: Pass, first: usize, columns: Range<usize>, x: &mut [u64]) {
        let (f, t) = (Field::new(&self.modulus), &self.forward);
        if !pass.double {
            layer_forward::<WORDS>(f, t, columns, x);
        } else if pass.reduce {
            radix4_forward::<WORDS, true>(f, t, first, columns, pass.size, x);
        } else {
            radix4_forward::<WORDS, false>(f, t, first, columns, pass.size, x);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn forward_passes(&self, x: &mut [u64]) {
        let n = x.len();
        if n > LOCAL {
            let words = scaled_layout(n).words;
            for start in (0..LOCAL).step_by(words) {
                self.top_layers::<true>(start..start + words, x);
            }
        }
        for (run, words) in x.chunks_mut(LOCAL).enumerate() {
            self.local_layers::<true>(n, run, words, [&[]; 2]);
        }
    }

    /// Coefficients times `factor`, in place, and if `row` is given, there in the order of scaled residues.
    #[target_feature(enable = "avx2,fma")]
    fn inverse_passes(&self, factor: u64, x: &mut [u64], mut row: Option<&mut [u64]>) {
        let (f, t, m, n) = (Field::new(&self.modulus), &self.inverse, &self.modulus, x.len());
        let last = self.last.map(|w| Field::factor(m, m.mul(w, factor)));
        let radix = if n.trailing_zeros() % 2 == 1 { 2 } else { 4 };
        let local = LOCAL.min(n / radix);
        for (index, block) in x.chunks_exact_mut(local).enumerate() {
            let number = |size: usize| (n + index * local) / size;
            first_layers_inverse(f, t, number(SIXTEEN), block);
            let mut size = SIXTEEN;
            while size < local {
                size *= 4;
                debug_assert!(self.within(block, INVERSE));
                radix4_inverse(f, t, number(size), 0..size / 4, size, block);
            }
        }
        let layout = scaled_layout(n);
        let mut order = |part: usize, x: &[u64]| {
            if let Some(row) = &mut row {
                let places = row[part * layout.part_words()..].chunks_exact_mut(layout.words);
                layout.ranges(n, part).zip(places).for_each(|(range, to)| to.copy_from_slice(&x[range]));
            }
        };
        let words = if n > LOCAL { layout.words } else { local };
        for (part, start) in (0..local).step_by(words).enumerate() {
            let columns = start..start + words;
            let mut size = local;
            while size < n / radix {
                size *= 4;
                radix4_inverse(f, t, n / size, columns.clone(), size, x);
            }
            last_layers_inverse(f, t, last, columns, radix, x);
            if n > LOCAL {
                order(part, x);
            }
        }
        if n <= LOCAL {
            (0..n / layout.part_words()).for_each(|part| order(part, x));
        }
    }
}

impl NttPlan for NarrowPlan {
    fn forward(&self, limb: &mut [u64], _upcoming: &[u64]) {
        // SAFETY: a plan is only made by `Avx2`, whose existence proves the features.
        unsafe { self.forward_passes(limb) }
    }

    fn forward_subring(&self, x: &mut [u64]) {
        // The subring's factors are the first of the ring's, as in the portable back end.
        self.forward(x, &[]);
    }

    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]) {
        // SAFETY: as above.
        unsafe { pointwise::lift_small(&self.modulus, values, limb) }
        self.forward(limb, upcoming);
    }

    fn inverse(&self, limb: &mut [u64]) {
        // SAFETY: as above.
        unsafe { self.inverse_passes(1, limb, None) }
    }

    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, row: &mut [u64]) {
        // SAFETY: as above.
        unsafe { self.inverse_passes(factor.value, limb, Some(row)) }
    }

    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
        let n = out.len();
        let layout = scaled_layout(n);
        // SAFETY: as above.
        unsafe {
            dot::convert(column, part, layout, out);
            if n > LOCAL {
                let start = part.part * layout.words;
                self.top_layers::<false>(start..start + layout.words, out);
            }
        }
    }

    fn blocks(&self) -> usize {
        scaled_layout(self.forward.values.len()).runs
    }

    fn finish_block(&self, block: usize, words: &mut [u64], upcoming: [&[u64]; 2]) {
        // SAFETY: as above.
        unsafe { self.local_layers::<false>(self.forward.values.len(), block, words, upcoming) }
    }
}
