//! Passes of one or two layers over blocks of a limb. A pass works on words `columns` of every quarter or half, and if
//! these are longer than a run, of every run in them.

use core::arch::x86_64::*;
use core::ops::Range;

use super::super::residues::{Factor, Field, Words, load, load_words, store};
use super::twiddles::{LOCAL, Twiddles};

/// `x + y w` and `x - y w`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn butterfly(f: Field, x: __m256d, y: __m256d, w: Factor) -> (__m256d, __m256d) {
    let t = f.mul(y, w);
    (_mm256_add_pd(x, t), _mm256_sub_pd(x, t))
}

/// The sum, and the product of the difference.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn butterfly_inverse(f: Field, x: __m256d, y: __m256d, w: Factor) -> (__m256d, __m256d) {
    (_mm256_add_pd(x, y), f.mul(_mm256_sub_pd(x, y), w))
}

/// The words of a pass in the `R` parts of a block, four of each at a time.
#[inline]
fn places<const R: usize>(block: &mut [u64], columns: Range<usize>) -> impl Iterator<Item = [&mut Words; R]> {
    let step = block.len() / R;
    let whole = columns.start.is_multiple_of(4) && columns.len().is_multiple_of(4) && !columns.is_empty();
    assert!(whole && columns.end <= step.min(LOCAL), "words of every run");
    let base = block.as_mut_ptr();
    let (mut run, mut at, mut end) = (0, columns.start, columns.end);
    core::iter::from_fn(move || {
        if at == end {
            run += LOCAL;
            if run >= step {
                return None;
            }
            (at, end) = (run + columns.start, run + columns.end);
        }
        let word = at;
        at += 4;
        // SAFETY: `word + 4 <= step`, as runs have equally many words; every four words are given once.
        Some(core::array::from_fn(|part| unsafe { &mut *base.add(part * step + word).cast() }))
    })
}

/// Two layers of a forward transform over blocks of `size` words, the first of which has factor `first`. `WORDS` takes
/// canonical words, `REDUCE` reduces in the first layer.
#[target_feature(enable = "avx2,fma")]
pub(super) fn radix4_forward<const WORDS: bool, const REDUCE: bool>(
    f: Field,
    t: &Twiddles,
    first: usize,
    columns: Range<usize>,
    size: usize,
    x: &mut [u64],
) {
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let [w, w_low, w_high] = t.radix4(i);
        for [pa, pb, pc, pd] in places(block, columns.clone()) {
            let [mut a, mut b, c, d] = if WORDS {
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
pub(super) fn layer_forward<const WORDS: bool>(f: Field, t: &Twiddles, columns: Range<usize>, x: &mut [u64]) {
    let w = t.broadcast(1);
    for [pa, pb] in places(x, columns) {
        let (a, b) = if WORDS { (load_words(pa), load_words(pb)) } else { (load(pa), load(pb)) };
        let (a, b) = butterfly(f, a, b, w);
        store(pa, a);
        store(pb, b);
    }
}

/// Two layers of an inverse transform, as [`radix4_forward`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn radix4_inverse(
    f: Field,
    t: &Twiddles,
    first: usize,
    columns: Range<usize>,
    size: usize,
    x: &mut [u64],
) {
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let [w, w_low, w_high] = t.radix4(i);
        for [pa, pb, pc, pd] in places(block, columns.clone()) {
            let (a, b) = butterfly_inverse(f, load(pa), load(pb), w_low);
            let (c, d) = butterfly_inverse(f, load(pc), load(pd), w_high);
            store(pa, f.reduce(_mm256_add_pd(a, c)));
            store(pc, f.mul_far(_mm256_sub_pd(a, c), w));
            let (b, d) = butterfly_inverse(f, b, d, w);
            store(pb, b);
            store(pd, d);
        }
    }
}

/// The last layer or the last two: canonical words. `last` are the factors of its sums and of its differences.
#[target_feature(enable = "avx2,fma")]
pub(super) fn last_layers_inverse(
    f: Field,
    t: &Twiddles,
    last: [Factor; 2],
    columns: Range<usize>,
    radix: usize,
    x: &mut [u64],
) {
    if radix == 2 {
        for [pa, pb] in places(x, columns) {
            let (a, b) = (load(pa), load(pb));
            f.store_canonical(pa, f.mul(_mm256_add_pd(a, b), last[0]));
            f.store_canonical(pb, f.mul(_mm256_sub_pd(a, b), last[1]));
        }
        return;
    }
    let [_, w_low, w_high] = t.radix4(1);
    for [pa, pb, pc, pd] in places(x, columns) {
        let (a, b) = butterfly_inverse(f, load(pa), load(pb), w_low);
        let (c, d) = butterfly_inverse(f, load(pc), load(pd), w_high);
        f.store_canonical(pa, f.mul_far(_mm256_add_pd(a, c), last[0]));
        f.store_canonical(pc, f.mul_far(_mm256_sub_pd(a, c), last[1]));
        f.store_canonical(pb, f.mul(_mm256_add_pd(b, d), last[0]));
        f.store_canonical(pd, f.mul(_mm256_sub_pd(b, d), last[1]));
    }
}
