//! Harvey's lazy butterflies on 64-bit words, two layers per pass (radix 4). Once a block fits the first-level cache,
//! it is finished before the next begins.
//!
//! # Invariant
//! Products by Shoup factors take any word and are below `2q`. Inputs are below `4q`.
//!
//! * Forward, `q < 2^57` (`LAZY`): a layer adds at most `2q`, so 17 layers stay below `(4 + 2 * 17) q = 38q < 2^63`.
//! * Forward, wider: the sum's operand is reduced below `2q` first, so words stay below `4q < 2^63`.
//! * Inverse: words below `2q` in, sums reduced below `2q`, differences below `4q` before the product.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::dot;
use super::kernels::{self, canonical};
use crate::backend::NttPlan;
use crate::conversion::{Column, ScaledLayout, ScaledPart};
use crate::{Modulus, ShoupFactor};

/// Primes of at most this width need no reduction between layers.
const LAZY_BITS: u32 = 57;
/// Words of a block that is finished in the first-level cache (32 KiB).
const LOCAL: usize = 4096;

/// Twiddle factors in bit-reversed order with their Shoup quotients.
pub(crate) struct ScalarPlan {
    modulus: Modulus,
    /// `psi^brv(i)`.
    forward: Vec<ShoupFactor>,
    /// `psi^-brv(i)`; entry 1, the last layer's only factor, times `N^-1`.
    inverse: Vec<ShoupFactor>,
    /// `N^-1`.
    scale: ShoupFactor,
    /// The order of scaled residues.
    layout: ScaledLayout,
}

/// `base^brv(i)` for `i < n`.
pub(crate) fn reversed_powers(m: &Modulus, log_n: u32, base: u64) -> Vec<u64> {
    let n = 1usize << log_n;
    let mut powers = alloc::vec![1; n];
    let mut power = 1;
    for i in 0..n {
        powers[i.reverse_bits() >> (usize::BITS - log_n)] = power;
        power = m.mul(power, base);
    }
    powers
}

impl ScalarPlan {
    pub(crate) fn new(log_n: u32, modulus: &Modulus, psi: u64, layout: ScaledLayout) -> Box<Self> {
        let shoup = |values: Vec<u64>| values.into_iter().map(|v| modulus.shoup(v)).collect::<Vec<_>>();
        let n_inverse = modulus.inv(1 << log_n);
        let mut inverse = reversed_powers(modulus, log_n, modulus.inv(psi));
        inverse[1] = modulus.mul(inverse[1], n_inverse);
        Box::new(Self {
            modulus: *modulus,
            forward: shoup(reversed_powers(modulus, log_n, psi)),
            inverse: shoup(inverse),
            scale: modulus.shoup(n_inverse),
            layout,
        })
    }

    /// Words below `4q` to canonical words.
    fn forward_passes<const LAZY: bool>(&self, x: &mut [u64]) {
        let (m, t) = (&self.modulus, &self.forward[..]);
        let (mut size, mut first) = (x.len(), 1);
        if size.trailing_zeros() % 2 == 1 {
            let (low, high) = x.split_at_mut(size / 2);
            for (u, v) in low.iter_mut().zip(high) {
                (*u, *v) = butterfly::<LAZY>(m, *u, *v, t[1]);
            }
            (size, first) = (size / 2, 2);
        }
        while size > LOCAL {
            radix4_forward::<LAZY>(m, t, first, size, x);
            (size, first) = (size / 4, 4 * first);
        }
        for (block, index) in x.chunks_exact_mut(size).zip(first..) {
            let (mut size, mut first) = (size, index);
            while size > 4 {
                radix4_forward::<LAZY>(m, t, first, size, block);
                (size, first) = (size / 4, 4 * first);
            }
            last_layers_forward::<LAZY>(m, t, first, block);
        }
    }
}

impl NttPlan for ScalarPlan {
    fn forward(&self, x: &mut [u64], _upcoming: &[u64]) {
        if self.modulus.bits() <= LAZY_BITS {
            self.forward_passes::<true>(x);
        } else {
            self.forward_passes::<false>(x);
        }
    }

    fn forward_subring(&self, x: &mut [u64]) {
        // psi^brv(i) for i < M are the powers of psi^(N/M) in the order of degree M, so the subring's factors are the
        // first of the ring's.
        self.forward(x, &[]);
    }

    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]) {
        kernels::lift_small(&self.modulus, values, limb);
        self.forward(limb, upcoming);
    }

    fn inverse(&self, x: &mut [u64]) {
        let (m, t) = (&self.modulus, &self.inverse[..]);
        let n = x.len();
        let odd = n.trailing_zeros() % 2 == 1;
        let end = if odd { n / 2 } else { n / 4 };
        let local = LOCAL.min(end);
        for (index, block) in x.chunks_exact_mut(local).enumerate() {
            let block_number = n / local + index;
            let mut size = 4;
            while size <= local {
                radix4_inverse::<false>(m, t, block_number * (local / size), size, block, self.scale);
                size *= 4;
            }
        }
        let mut size = local;
        while size < end {
            size *= 4;
            radix4_inverse::<false>(m, t, n / size, size, x, self.scale);
        }
        if odd {
            let (low, high) = x.split_at_mut(n / 2);
            for (u, v) in low.iter_mut().zip(high) {
                (*u, *v) = last_butterfly(m, *u, *v, t[1], self.scale);
            }
        } else {
            radix4_inverse::<true>(m, t, 1, n, x, self.scale);
        }
    }

    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, row: &mut [u64]) {
        self.inverse(limb);
        let ScaledLayout { words, .. } = self.layout;
        for (part, places) in row.chunks_exact_mut(self.layout.part_words()).enumerate() {
            for (range, place) in self.layout.ranges(limb.len(), part).zip(places.chunks_exact_mut(words)) {
                place.iter_mut().zip(&limb[range]).for_each(|(y, &x)| *y = self.modulus.mul_shoup(x, factor));
            }
        }
    }

    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
        let terms: Vec<&[u64]> = part.terms().collect();
        let mut words = alloc::vec![0; part.words];
        dot::convert(column, &terms, &mut words);
        let ranges = self.layout.ranges(out.len(), part.part);
        for (range, words) in ranges.zip(words.chunks_exact(self.layout.words)) {
            out[range].copy_from_slice(words);
        }
    }

    fn blocks(&self) -> usize {
        1
    }

    fn finish_block(&self, _block: usize, words: &mut [u64], _upcoming: [&[u64]; 2]) {
        self.forward(words, &[]);
    }
}

/// The four quarters of a block.
#[inline(always)]
fn quarters(block: &mut [u64]) -> impl Iterator<Item = [&mut u64; 4]> {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    a.iter_mut().zip(b).zip(c.iter_mut().zip(d)).map(|((a, b), (c, d))| [a, b, c, d])
}

#[inline(always)]
fn butterfly<const LAZY: bool>(m: &Modulus, u: u64, v: u64, w: ShoupFactor) -> (u64, u64) {
    let two_q = 2 * m.value();
    debug_assert!(u.max(v) < if LAZY { 18 * two_q } else { 2 * two_q });
    let a = if LAZY { u } else { u.min(u.wrapping_sub(two_q)) };
    let t = m.mul_shoup_lazy(v, w);
    (a + t, a + two_q - t)
}

#[inline(always)]
fn radix4<const LAZY: bool>(m: &Modulus, x: [u64; 4], w: [ShoupFactor; 3]) -> [u64; 4] {
    let [a, b, c, d] = x;
    let (a, c) = butterfly::<LAZY>(m, a, c, w[0]);
    let (b, d) = butterfly::<LAZY>(m, b, d, w[0]);
    let (a, b) = butterfly::<LAZY>(m, a, b, w[1]);
    let (c, d) = butterfly::<LAZY>(m, c, d, w[2]);
    [a, b, c, d]
}

/// Two layers over blocks of `size` words; `first` is the twiddle factor of the first block.
fn radix4_forward<const LAZY: bool>(
    m: &Modulus,
    t: &[ShoupFactor],
    first: usize,
    size: usize,
    x: &mut [u64],
) {
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let w = [t[i], t[2 * i], t[2 * i + 1]];
        for [a, b, c, d] in quarters(block) {
            [*a, *b, *c, *d] = radix4::<LAZY>(m, [*a, *b, *c, *d], w);
        }
    }
}

/// The layers of distances 2 and 1, and the reduction to canonical words.
fn last_layers_forward<const LAZY: bool>(m: &Modulus, t: &[ShoupFactor], first: usize, x: &mut [u64]) {
    let count = x.len() / 4;
    let pairs = t[2 * first..2 * (first + count)].as_chunks::<2>().0;
    for ((four, &w), &[w_low, w_high]) in x.as_chunks_mut::<4>().0.iter_mut().zip(&t[first..]).zip(pairs) {
        let words = radix4::<LAZY>(m, *four, [w, w_low, w_high]);
        *four = words.map(|word| if LAZY { m.reduce(word) } else { canonical(m.value(), word) });
    }
}

#[inline(always)]
fn inverse_butterfly(m: &Modulus, u: u64, v: u64, w: ShoupFactor) -> (u64, u64) {
    let two_q = 2 * m.value();
    debug_assert!(u.max(v) < two_q);
    let sum = u + v;
    (sum.min(sum.wrapping_sub(two_q)), m.mul_shoup_lazy(u + two_q - v, w))
}

/// The last layer, with `N^-1` in both factors: canonical.
#[inline(always)]
fn last_butterfly(m: &Modulus, u: u64, v: u64, w: ShoupFactor, scale: ShoupFactor) -> (u64, u64) {
    (m.mul_shoup(u + v, scale), m.mul_shoup(u + 2 * m.value() - v, w))
}

/// Two layers, from distance `size / 4` to `size / 2`. The `LAST` ones also multiply by `scale` and write canonical
/// words.
fn radix4_inverse<const LAST: bool>(
    m: &Modulus,
    t: &[ShoupFactor],
    first: usize,
    size: usize,
    x: &mut [u64],
    scale: ShoupFactor,
) {
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let [w, w_low, w_high] = [t[i], t[2 * i], t[2 * i + 1]];
        for [pa, pb, pc, pd] in quarters(block) {
            let (a, b) = inverse_butterfly(m, *pa, *pb, w_low);
            let (c, d) = inverse_butterfly(m, *pc, *pd, w_high);
            if LAST {
                (*pa, *pc) = last_butterfly(m, a, c, w, scale);
                (*pb, *pd) = last_butterfly(m, b, d, w, scale);
            } else {
                (*pa, *pc) = inverse_butterfly(m, a, c, w);
                (*pb, *pd) = inverse_butterfly(m, b, d, w);
            }
        }
    }
}
