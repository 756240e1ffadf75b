//! The four layers of distances 8, 4, 2 and 1, on sixteen words in four registers. Comments show eight words
//! `a0 a1 b0 b1 c0 c1 d0 d1` of two registers.

use core::arch::x86_64::*;

use super::super::residues::{Factor, Field, Words, load, load_words, opaque, store};
use super::passes::{butterfly, butterfly_inverse};
use super::twiddles::Twiddles;

/// Words that are transformed in registers.
pub(super) const SIXTEEN: usize = 16;

/// Words of a piece, a part of a run.
const PIECE: usize = 1024;

/// One part of the factors of sixteen words, their values or their quotients: those of distances 8, 4, 2 and 1.
type Levels<'t> = ((&'t f64, &'t [f64; 2]), (&'t [f64; 4], &'t [f64; 8]));

/// The factors of `count` times sixteen words, of which the first sixteen have factor `first`.
fn levels(list: &[f64], first: usize, count: usize) -> impl Iterator<Item = Levels<'_>> {
    let level = |depth: u32| &list[first << depth..(first + count) << depth];
    let (four, two, one) = (level(1).as_chunks().0, level(2).as_chunks().0, level(3).as_chunks().0);
    level(0).iter().zip(four).zip(two.iter().zip(one))
}

/// Sixteen words with their factors.
fn sixteens<'x>(
    t: &'x Twiddles,
    first: usize,
    x: &'x mut [u64],
) -> impl Iterator<Item = (&'x mut [Words; 4], Factors<'x>)> {
    let count = x.len() / SIXTEEN;
    let factors = levels(&t.values, first, count).zip(levels(&t.quotients, first, count));
    x.as_chunks_mut::<4>().0.as_chunks_mut::<4>().0.iter_mut().zip(factors.map(|(v, q)| Factors(v, q)))
}

/// The factors of sixteen words.
struct Factors<'t>(Levels<'t>, Levels<'t>);

impl Factors<'_> {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn eight(&self) -> Factor {
        Factor { value: _mm256_set1_pd(*self.0.0.0), quotient: _mm256_set1_pd(*self.1.0.0) }
    }

    /// Those of both halves.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn four(&self, half: usize) -> Factor {
        Factor { value: _mm256_set1_pd(self.0.0.1[half]), quotient: _mm256_set1_pd(self.1.0.1[half]) }
    }

    /// Those of the quarters of a half, each twice.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn two(&self, half: usize) -> Factor {
        let pair = |list: &[f64; 4]| {
            let [low, high] = [list[2 * half], list[2 * half + 1]];
            _mm256_setr_pd(low, low, high, high)
        };
        Factor { value: pair(self.0.1.0), quotient: pair(self.1.1.0) }
    }

    /// Those of the eighths of a half.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn one(&self, half: usize) -> Factor {
        let load = |list: &[f64; 8]| {
            // SAFETY: a half has 32 bytes of the array's 64; the load needs no alignment.
            unsafe { _mm256_loadu_pd(list.as_ptr().add(4 * half)) }
        };
        Factor { value: load(self.0.1.1), quotient: load(self.1.1.1) }
    }
}

/// The first halves of both registers, and the second halves: `a0 a1 c0 c1`, `b0 b1 d0 d1`, and back.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn swap_halves(p: __m256d, r: __m256d) -> (__m256d, __m256d) {
    (_mm256_permute2f128_pd::<0x20>(p, r), _mm256_permute2f128_pd::<0x31>(p, r))
}

/// `a0 b0 c0 d0`, `a1 b1 c1 d1` from the result of [`swap_halves`], and back.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn swap_neighbours(x: __m256d, y: __m256d) -> (__m256d, __m256d) {
    (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y))
}

/// The last layers of a forward transform, and the reduction to canonical words. The first two layers of a piece come
/// before the other two: instructions that depend on each other are then few enough for a CPU to overlap them with
/// those of other words. Prefetches `upcoming` into the second-level cache, a share at a time, because a burst would
/// stall on memory.
#[target_feature(enable = "avx2,fma")]
pub(super) fn last_layers_forward(
    f: Field,
    t: &Twiddles,
    first: usize,
    x: &mut [u64],
    upcoming: [&[u64]; 2],
) {
    let own = x.as_ptr();
    // Words of this block, which are near already, where there is nothing to fetch.
    let mut next = upcoming.map(|words| if words.is_empty() { own } else { words.as_ptr() });
    for (piece, first) in x.chunks_mut(PIECE).zip((first..).step_by(PIECE / SIXTEEN)) {
        for (words, w) in sixteens(t, first, piece) {
            for next in &mut next {
                _mm_prefetch::<_MM_HINT_T1>(next.cast());
                _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(8).cast());
                *next = next.wrapping_add(SIXTEEN);
            }
            let [p0, p1, p2, p3] = [load(&words[0]), load(&words[1]), load(&words[2]), load(&words[3])];
            let eight = w.eight();
            let (p0, p2) = butterfly(f, p0, p2, eight);
            let (p1, p3) = butterfly(f, p1, p3, eight);
            let (p0, p1) = butterfly(f, p0, p1, w.four(0));
            let (p2, p3) = butterfly(f, p2, p3, w.four(1));
            for (place, value) in words.iter_mut().zip([p0, p1, p2, p3]) {
                store(place, value);
            }
        }
        for (words, w) in sixteens(t, first, piece) {
            for half in 0..2 {
                let (x, y) = swap_halves(load(&words[2 * half]), load(&words[2 * half + 1]));
                let (x, y) = butterfly(f, x, y, w.two(half));
                let (u, v) = swap_neighbours(x, y);
                let (u, v) = butterfly(f, u, v, w.one(half));
                let (x, y) = swap_neighbours(f.reduce(u), f.reduce(v));
                let (p, r) = swap_halves(x, y);
                f.store_canonical(&mut words[2 * half], p);
                f.store_canonical(&mut words[2 * half + 1], r);
            }
        }
    }
}

/// The first layers of an inverse transform of canonical words. Sums of four words are at most 4 in absolute value,
/// differences below 2, and products of these at most 0.57. The next two layers give at most 2.28, which is reduced,
/// and 1.08.
#[target_feature(enable = "avx2,fma")]
pub(super) fn first_layers_inverse(f: Field, t: &Twiddles, first: usize, x: &mut [u64]) {
    for (piece, first) in x.chunks_mut(PIECE).zip((first..).step_by(PIECE / SIXTEEN)) {
        for (words, w) in sixteens(t, first, piece) {
            for half in 0..2 {
                let (x, y) = swap_halves(load_words(&words[2 * half]), load_words(&words[2 * half + 1]));
                // Without `opaque`, horizontal sums and differences.
                let (u, v) = swap_neighbours(x, y);
                let (u, v) = butterfly_inverse(f, opaque(u), v, w.one(half));
                let (x, y) = swap_neighbours(u, v);
                let (x, y) = butterfly_inverse(f, opaque(x), y, w.two(half));
                let (p, r) = swap_halves(f.reduce(x), y);
                store(&mut words[2 * half], p);
                store(&mut words[2 * half + 1], r);
            }
        }
        for (words, w) in sixteens(t, first, piece) {
            let [p0, p1, p2, p3] = [load(&words[0]), load(&words[1]), load(&words[2]), load(&words[3])];
            let (p0, p1) = butterfly_inverse(f, p0, p1, w.four(0));
            let (p2, p3) = butterfly_inverse(f, p2, p3, w.four(1));
            let eight = w.eight();
            let (p0, p2) = butterfly_inverse(f, p0, p2, eight);
            let (p1, p3) = butterfly_inverse(f, p1, p3, eight);
            for (place, value) in words.iter_mut().zip([f.reduce(p0), p1, p2, p3]) {
                store(place, value);
            }
        }
    }
}
