//! Negacyclic transforms modulo a narrow prime in double precision; see [`super::residues`] for the arithmetic.
//!
//! Between passes the words of a limb hold the bits of doubles. A pass does two layers (radix 4). The two layers of
//! distances 2 and 1 work inside registers. Once a block fits the first-level cache, it is finished before the next
//! begins.
//!
//! # Invariant
//! Bounds are in units of `q`. A forward layer takes values up to `B` to `B + (1/2 + B/16)`. If the sum's operand is
//! reduced first, it takes them to `1/2 + (1/2 + B/16)`. Passes are numbered from 0, and odd ones reduce in their first
//! layer:
//!
//! * even pass: at most [`LOW`] = 1.8 in, 2.42 between the layers, at most [`HIGH`] = 3.07 out;
//! * odd pass: at most 3.07 in, 1.20 between the layers, at most 1.78 out;
//! * the pass in registers: at most 3.07 in, 3.77 between its layers (still below 4), at most 4.51 before the
//!   reduction;
//! * a single layer first, where `log N` is odd, takes canonical words to 1.57.
//!
//! An inverse layer reduces its sums. A pass takes at most [`INVERSE`] = 1.5, so differences are at most 3. It gives
//! sums of two reduced sums (1), products of their differences (0.57), sums of two products (2 * 0.69 = 1.38) and
//! products of their differences (0.59).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::arch::x86_64::*;

use super::residues::{Factor, Field, Words, load, load_words, store, store_words};
use super::{dot, pointwise};
use crate::backend::NttPlan;
use crate::backend::portable::ntt::reversed_powers;
use crate::conversion::{Column, ScaledPart};
use crate::{Modulus, ShoupFactor};

/// Words of a block that is finished in the first-level cache (32 KiB).
const LOCAL: usize = 4096;
const LOW: f64 = 1.8;
const HIGH: f64 = 3.07;
const INVERSE: f64 = 1.5;

/// Powers of a root in bit-reversed order, centred, and divided by the prime.
struct Twiddles {
    values: Vec<f64>,
    quotients: Vec<f64>,
}

impl Twiddles {
    fn new(log_n: u32, m: &Modulus, base: u64) -> Self {
        let centred = |w: u64| m.centered(w) as f64;
        let values: Vec<f64> = reversed_powers(m, log_n, base).into_iter().map(centred).collect();
        let quotients = values.iter().map(|w| w / m.value() as f64).collect();
        Self { values, quotients }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn broadcast(&self, i: usize) -> Factor {
        Factor { value: _mm256_set1_pd(self.values[i]), quotient: _mm256_set1_pd(self.quotients[i]) }
    }

    /// The factors of four blocks of distance 1, and those of their two blocks of distance 2, each twice. They serve
    /// eight words, the first of which is in the block of distance 2 with index `i`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn in_register(&self, i: usize) -> (Factor, Factor) {
        let (v, q) = (&self.values, &self.quotients);
        let one = Factor {
            value: _mm256_setr_pd(v[2 * i], v[2 * i + 1], v[2 * i + 2], v[2 * i + 3]),
            quotient: _mm256_setr_pd(q[2 * i], q[2 * i + 1], q[2 * i + 2], q[2 * i + 3]),
        };
        let two = Factor {
            value: _mm256_setr_pd(v[i], v[i], v[i + 1], v[i + 1]),
            quotient: _mm256_setr_pd(q[i], q[i], q[i + 1], q[i + 1]),
        };
        (two, one)
    }
}

/// The transforms of one narrow prime.
pub(super) struct NarrowPlan {
    modulus: Modulus,
    forward: Twiddles,
    inverse: Twiddles,
    /// `N^-1`.
    scale: ShoupFactor,
}

impl NarrowPlan {
    pub(super) fn new(log_n: u32, modulus: &Modulus, psi: u64) -> Box<Self> {
        Box::new(Self {
            modulus: *modulus,
            forward: Twiddles::new(log_n, modulus, psi),
            inverse: Twiddles::new(log_n, modulus, modulus.inv(psi)),
            scale: modulus.shoup(modulus.inv(1 << log_n)),
        })
    }

    fn within(&self, x: &[u64], bound: f64) -> bool {
        x.iter().all(|&bits| f64::from_bits(bits).abs() <= bound * self.modulus.value() as f64)
    }

    /// Transforms canonical words, or doubles of at most `q` if `INTEGERS` is false, to canonical words.
    #[target_feature(enable = "avx2,fma")]
    fn forward_passes<const INTEGERS: bool>(&self, x: &mut [u64]) {
        let (f, t) = (Field::new(&self.modulus), &self.forward);
        let mut size = x.len();
        let mut first = 1;
        let mut pass = 0;
        let mut integers = INTEGERS;
        if size.trailing_zeros() % 2 == 1 {
            layer_forward::<INTEGERS>(f, t, x);
            (size, first, integers) = (size / 2, 2, false);
        }
        while size > LOCAL {
            self.pass_forward(pass, integers, first, size, x);
            (size, first, pass, integers) = (size / 4, 4 * first, pass + 1, false);
        }
        for (index, block) in x.chunks_exact_mut(size).enumerate() {
            let (mut size, mut first, mut pass, mut integers) = (size, first + index, pass, integers);
            while size > 4 {
                self.pass_forward(pass, integers, first, size, block);
                (size, first, pass, integers) = (size / 4, 4 * first, pass + 1, false);
            }
            last_layers_forward(f, t, first, block);
        }
    }

    /// Two layers over blocks of `size` words; `first` is the twiddle factor of the first block.
    #[target_feature(enable = "avx2,fma")]
    fn pass_forward(&self, pass: usize, integers: bool, first: usize, size: usize, x: &mut [u64]) {
        let (f, t) = (Field::new(&self.modulus), &self.forward);
        debug_assert!(integers || self.within(x, if pass.is_multiple_of(2) { LOW } else { HIGH }));
        match (integers, pass % 2) {
            (true, _) => radix4_forward::<true, false>(f, t, first, size, x),
            (false, 0) => radix4_forward::<false, false>(f, t, first, size, x),
            (false, _) => radix4_forward::<false, true>(f, t, first, size, x),
        }
        debug_assert!(self.within(x, if pass.is_multiple_of(2) { HIGH } else { LOW }));
    }

    #[target_feature(enable = "avx2,fma")]
    fn inverse_passes(&self, x: &mut [u64]) {
        let (f, t) = (Field::new(&self.modulus), &self.inverse);
        let n = x.len();
        let scale = Field::factor(&self.modulus, self.scale.value);
        // One layer alone where log N is odd, so that the last pass has two.
        let odd = n.trailing_zeros() % 2 == 1;
        let local = if odd { LOCAL / 2 } else { LOCAL }.min(n / 4);
        for (index, block) in x.chunks_exact_mut(local).enumerate() {
            let count = n / local + index;
            first_layers_inverse(f, t, count * local / 4, block);
            let mut size = 4;
            if odd {
                size = 8;
                layer_inverse(f, t, count * local / 8, block);
            }
            while size < local {
                size *= 4;
                debug_assert!(self.within(block, INVERSE));
                radix4_inverse::<false>(f, t, count * (local / size), size, block, scale);
            }
        }
        let mut size = local;
        while size < n / 4 {
            size *= 4;
            debug_assert!(self.within(x, INVERSE));
            radix4_inverse::<false>(f, t, n / size, size, x, scale);
        }
        debug_assert!(self.within(x, INVERSE));
        radix4_inverse::<true>(f, t, 1, n, x, scale);
    }
}

impl NttPlan for NarrowPlan {
    fn forward(&self, limb: &mut [u64], _upcoming: &[u64]) {
        // SAFETY: a plan is only made by `Avx2`, whose existence proves the features.
        unsafe { self.forward_passes::<true>(limb) }
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
        unsafe { self.inverse_passes(limb) }
    }

    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, row: &mut [u64]) {
        // SAFETY: as above.
        unsafe {
            self.inverse_passes(limb);
            pointwise::mul_scalar_assign(&self.modulus, limb, factor);
        }
        row.copy_from_slice(limb);
    }

    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
        let terms: Vec<&[u64]> = part.terms().collect();
        // SAFETY: as above.
        unsafe {
            dot::convert(column, &terms, &mut out[part.part * part.words..(part.part + 1) * part.words])
        }
    }

    fn blocks(&self) -> usize {
        1
    }

    fn finish_block(&self, _block: usize, words: &mut [u64], _upcoming: [&[u64]; 2]) {
        // SAFETY: as above.
        unsafe { self.forward_passes::<false>(words) }
    }
}

/// The four quarters of a block, four words at a time.
fn quarters(block: &mut [u64]) -> impl Iterator<Item = [&mut Words; 4]> {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    let low = a.as_chunks_mut::<4>().0.iter_mut().zip(b.as_chunks_mut::<4>().0);
    let high = c.as_chunks_mut::<4>().0.iter_mut().zip(d.as_chunks_mut::<4>().0);
    low.zip(high).map(|((a, b), (c, d))| [a, b, c, d])
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn butterfly(f: Field, x: __m256d, y: __m256d, w: Factor) -> (__m256d, __m256d) {
    let t = f.mul(y, w);
    (_mm256_add_pd(x, t), _mm256_sub_pd(x, t))
}

/// Sum, reduced, and product of the difference.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn butterfly_inverse(f: Field, x: __m256d, y: __m256d, w: Factor) -> (__m256d, __m256d) {
    (f.reduce(_mm256_add_pd(x, y)), f.mul(_mm256_sub_pd(x, y), w))
}

#[target_feature(enable = "avx2,fma")]
fn radix4_forward<const INTEGERS: bool, const REDUCE: bool>(
    f: Field,
    t: &Twiddles,
    first: usize,
    size: usize,
    x: &mut [u64],
) {
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let (w, w_low, w_high) = (t.broadcast(i), t.broadcast(2 * i), t.broadcast(2 * i + 1));
        for [pa, pb, pc, pd] in quarters(block) {
            let [mut a, mut b, c, d] = if INTEGERS {
                [load_words(pa), load_words(pb), load_words(pc), load_words(pd)]
            } else {
                [load(pa), load(pb), load(pc), load(pd)]
            };
            if REDUCE {
                (a, b) = (f.reduce(a), f.reduce(b));
            }
            let (a, c) = butterfly(f, a, c, w);
            let (b, d) = butterfly(f, b, d, w);
            let (a, b) = butterfly(f, a, b, w_low);
            let (c, d) = butterfly(f, c, d, w_high);
            store(pa, a);
            store(pb, b);
            store(pc, c);
            store(pd, d);
        }
    }
}

/// The first layer alone.
#[target_feature(enable = "avx2,fma")]
fn layer_forward<const INTEGERS: bool>(f: Field, t: &Twiddles, x: &mut [u64]) {
    let (low, high) = x.split_at_mut(x.len() / 2);
    let w = t.broadcast(1);
    for (pa, pb) in low.as_chunks_mut::<4>().0.iter_mut().zip(high.as_chunks_mut::<4>().0) {
        let (a, b) = if INTEGERS { (load_words(pa), load_words(pb)) } else { (load(pa), load(pb)) };
        let (a, b) = butterfly(f, a, b, w);
        store(pa, a);
        store(pb, b);
    }
}

/// Layers of distances 2 and 1, and the reduction to canonical words. Comments show eight words
/// `a0 a1 b0 b1 c0 c1 d0 d1`.
#[target_feature(enable = "avx2,fma")]
fn last_layers_forward(f: Field, t: &Twiddles, first: usize, x: &mut [u64]) {
    for (number, eight) in x.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (two, one) = t.in_register(first + 2 * number);
        let [p, r] = eight.as_chunks_mut::<4>().0 else { unreachable!("eight words are twice four") };
        let x = _mm256_permute2f128_pd::<0x20>(load(p), load(r)); // a0 a1 c0 c1
        let y = _mm256_permute2f128_pd::<0x31>(load(p), load(r)); // b0 b1 d0 d1
        let (x, y) = butterfly(f, x, y, two);
        let (u, v) = (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y)); // a0 b0 c0 d0, a1 b1 c1 d1
        let (u, v) = butterfly(f, u, v, one);
        let (u, v) = (f.make_positive(f.reduce(u)), f.make_positive(f.reduce(v)));
        let (x, y) = (_mm256_unpacklo_pd(u, v), _mm256_unpackhi_pd(u, v));
        store_words(p, _mm256_permute2f128_pd::<0x20>(x, y));
        store_words(r, _mm256_permute2f128_pd::<0x31>(x, y));
    }
}

/// Layers of distances 1 and 2 of canonical words.
#[target_feature(enable = "avx2,fma")]
fn first_layers_inverse(f: Field, t: &Twiddles, first: usize, x: &mut [u64]) {
    for (number, eight) in x.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (two, one) = t.in_register(first + 2 * number);
        let [p, r] = eight.as_chunks_mut::<4>().0 else { unreachable!("eight words are twice four") };
        let x = _mm256_permute2f128_pd::<0x20>(load_words(p), load_words(r)); // a0 a1 c0 c1
        let y = _mm256_permute2f128_pd::<0x31>(load_words(p), load_words(r)); // b0 b1 d0 d1
        let (u, v) = (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y)); // a0 b0 c0 d0, a1 b1 c1 d1
        let (u, v) = butterfly_inverse(f, u, v, one);
        let (x, y) = (_mm256_unpacklo_pd(u, v), _mm256_unpackhi_pd(u, v));
        let (x, y) = butterfly_inverse(f, x, y, two);
        store(p, _mm256_permute2f128_pd::<0x20>(x, y));
        store(r, _mm256_permute2f128_pd::<0x31>(x, y));
    }
}

/// The layer of distance 4 alone.
#[target_feature(enable = "avx2,fma")]
fn layer_inverse(f: Field, t: &Twiddles, first: usize, x: &mut [u64]) {
    for (eight, i) in x.as_chunks_mut::<8>().0.iter_mut().zip(first..) {
        let [p, r] = eight.as_chunks_mut::<4>().0 else { unreachable!("eight words are twice four") };
        let (a, b) = butterfly_inverse(f, load(p), load(r), t.broadcast(i));
        store(p, a);
        store(r, b);
    }
}

/// Two layers; the `LAST` ones also multiply by `scale` and give canonical words.
#[target_feature(enable = "avx2,fma")]
fn radix4_inverse<const LAST: bool>(
    f: Field,
    t: &Twiddles,
    first: usize,
    size: usize,
    x: &mut [u64],
    scale: Factor,
) {
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let (w, w_low, w_high) = (t.broadcast(i), t.broadcast(2 * i), t.broadcast(2 * i + 1));
        for [pa, pb, pc, pd] in quarters(block) {
            let (a, b) = butterfly_inverse(f, load(pa), load(pb), w_low);
            let (c, d) = butterfly_inverse(f, load(pc), load(pd), w_high);
            let (sum, product) = (_mm256_add_pd(a, c), f.mul(_mm256_sub_pd(a, c), w));
            let (sum_b, product_b) = (_mm256_add_pd(b, d), f.mul(_mm256_sub_pd(b, d), w));
            for (place, value) in [(pa, sum), (pb, sum_b), (pc, product), (pd, product_b)] {
                if LAST {
                    store_words(place, f.make_positive(f.mul(value, scale)));
                } else {
                    store(place, value);
                }
            }
        }
    }
}
