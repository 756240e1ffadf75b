//! Evaluations from coefficients.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::super::conversion;
use super::super::fetch::Fetch;
use super::passes::{Rows, butterfly, butterfly_signed, layer, layers, rows};
use super::tables::{HEAD, TAIL_WORDS, pass_words};
use super::{RUN, TAIL, pass_log_radix, tail};
use crate::Modulus;
use crate::backend::avx512::arithmetic::lanes::{Lanes, broadcast_factor, lift_small};
use crate::conversion::{Column, ScaledPart};

/// The inner product of one part of terms with a column, fused with the first pass over that part. The pass's operands
/// are converted just before it runs, so the converted limb is written once. `C` converts and `L` transforms; both use
/// the same factors.
///
/// # Safety
/// As for [`transform`]; the part has the words of [`super::scaled_layout`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn convert_part<C: Lanes, L: Lanes>(
    column: &Column,
    part: ScaledPart<'_>,
    x: *mut u64,
    length: usize,
    table: &[u64],
) {
    #[repr(align(64))]
    struct Operands([MaybeUninit<u64>; 16 * RUN]);
    let mut operands = Operands([MaybeUninit::uninit(); 16 * RUN]);
    let words = operands.0.as_mut_ptr().cast::<u64>();
    // SAFETY: a part has as many runs as the pass has operands, at most 16; runs begin `stride` words apart in the
    // limb, a multiple of their length; the pass reads the words that were just written.
    unsafe {
        let (c, l) = (C::new(&column.modulus), L::new(&column.modulus));
        let log_radix = pass_log_radix(length);
        let to = Rows { start: x.add(part.part * RUN), stride: length >> log_radix };
        let next = (part.part + 1) * part.words;
        conversion::words::<C>(c, column, part.terms(), part.words, words, |run| {
            for line in (0..RUN).step_by(8) {
                for row in &part.residues[part.fetch.0..part.fetch.1] {
                    _mm_prefetch::<_MM_HINT_T1>(row.as_ptr().wrapping_add(next + run * RUN + line).cast());
                }
                // Prefetches what the next part's pass writes to.
                _mm_prefetch::<_MM_HINT_T1>(to.start.wrapping_add(run * to.stride + RUN + line).cast());
            }
        });
        let from = Rows { start: words.cast_const(), stride: RUN };
        pass::<L, LAZY>(l, log_radix, from, to, RUN, table.as_ptr().add(HEAD));
    }
}

/// Number of blocks below the first pass.
pub(super) const fn blocks(length: usize) -> usize {
    1 << pass_log_radix(length)
}

/// The passes after the first, over one block of a limb of `length` words whose parts are all converted. Prefetches
/// `upcoming` into the second-level cache, a share for every [`TAIL`] words.
///
/// # Safety
/// As for [`transform`]; `words` has the length of a block.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn finish<L: Lanes>(
    m: &Modulus,
    number: usize,
    words: &mut [u64],
    upcoming: [&[u64]; 2],
    length: usize,
    table: &[u64],
) {
    let log_radix = pass_log_radix(length);
    // After the first pass, the stream has equal parts for the blocks.
    let streams = &table[HEAD + pass_words(log_radix)..];
    let stream = &streams[number * (streams.len() >> log_radix)..];
    let mut fetch = upcoming.map(|upcoming| Fetch::new(upcoming, words.len() / TAIL));
    // SAFETY: by contract.
    unsafe {
        block::<L, LAZY>(
            L::new(m),
            words.as_mut_ptr(),
            words.len(),
            table.as_ptr(),
            stream.as_ptr(),
            &mut fetch,
        );
    }
}

/// What a pass reads: lazy words below `2U`.
const LAZY: u8 = 0;
/// Canonical words.
const CANONICAL: u8 = 1;
/// Integers smaller than the modulus in absolute value, which become canonical.
const SMALL: u8 = 2;

/// Operands of a pass.
///
/// # Safety
/// `at` addresses eight words; the CPU has the features of [`Lanes`].
#[inline(always)]
unsafe fn input<L: Lanes, const INPUT: u8>(l: L, at: *const __m512i) -> __m512i {
    // SAFETY: by contract.
    unsafe {
        let words = at.read_unaligned();
        if INPUT == SMALL { lift_small(l.q(), words) } else { words }
    }
}

/// The transform of small integers, as many as `x` has words; otherwise the same as [`transform`].
///
/// # Safety
/// As for [`transform`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn transform_small<L: Lanes>(
    m: &Modulus,
    values: &[i64],
    x: *mut u64,
    table: &[u64],
    upcoming: &[u64],
) {
    // SAFETY: by contract; the traversal reads the table as it was written.
    unsafe {
        let (l, length, head) = (L::new(m), values.len(), table.as_ptr());
        let log_radix = pass_log_radix(length);
        let part = length >> log_radix;
        let from = Rows { start: values.as_ptr().cast(), stride: part };
        pass::<L, SMALL>(l, log_radix, from, Rows { start: x, stride: part }, part, head.add(HEAD));
        let mut fetch = [Fetch::new(upcoming, length / TAIL), Fetch::NOTHING];
        let stream = head.add(HEAD + pass_words(log_radix));
        let end = children(l, x, log_radix, part, head, stream, &mut fetch);
        debug_assert_eq!(end, table.as_ptr_range().end);
    }
}

/// Transforms `length` canonical words in place; the output is canonical. Prefetches `upcoming` into the second-level
/// cache, a share for every [`TAIL`] words.
///
/// # Safety
/// `x` addresses `length` words, `table` is that of [`super::tables::forward`] for this length, and the CPU has the
/// enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn transform<L: Lanes>(
    m: &Modulus,
    x: *mut u64,
    length: usize,
    table: &[u64],
    upcoming: &[u64],
) {
    // SAFETY: by contract; the traversal reads the table as it was written.
    unsafe {
        let head = table.as_ptr();
        let mut fetch = [Fetch::new(upcoming, length / TAIL), Fetch::NOTHING];
        let end = block::<L, CANONICAL>(L::new(m), x, length, head, head.add(HEAD), &mut fetch);
        debug_assert_eq!(end, table.as_ptr_range().end);
    }
}

/// Transforms a block: a pass, then its children. Returns the position in the stream after the block.
///
/// # Safety
/// As for [`transform`]; `stream` is the block's part of the table.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn block<L: Lanes, const INPUT: u8>(
    l: L,
    x: *mut u64,
    length: usize,
    head: *const u64,
    stream: *const u64,
    fetch: &mut [Fetch; 2],
) -> *const u64 {
    // SAFETY: the rows are the parts of the block.
    unsafe {
        if length == TAIL {
            fetch.iter_mut().for_each(|fetch| fetch.share());
            tail::forward::<L>(l, x, head, stream);
            return stream.add(TAIL_WORDS);
        }
        let log_radix = pass_log_radix(length);
        let part = length >> log_radix;
        let (from, to) = (Rows { start: x.cast_const(), stride: part }, Rows { start: x, stride: part });
        pass::<L, INPUT>(l, log_radix, from, to, part, stream);
        children(l, x, log_radix, part, head, stream.add(pass_words(log_radix)), fetch)
    }
}

/// One pass of a given radix over `columns` words of each row.
///
/// # Safety
/// `from` and `to` address as many rows as the radix, the same or disjoint; `stream` is the pass's part of the table;
/// the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn pass<L: Lanes, const INPUT: u8>(
    l: L,
    log_radix: u32,
    from: Rows<*const u64>,
    to: Rows<*mut u64>,
    columns: usize,
    stream: *const u64,
) {
    // SAFETY: by contract.
    unsafe {
        match log_radix {
            2 => radix_4::<L, INPUT>(l, from, to, columns, stream),
            3 => radix_8::<L, INPUT>(l, from, to, columns, stream),
            _ => radix_16::<L, INPUT>(l, from, to, columns, stream),
        }
    }
}

/// The blocks below a pass. Returns the position in the stream after all of them.
///
/// # Safety
/// As for [`transform`]; `x` addresses `2^log_radix` blocks of `part` words.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn children<L: Lanes>(
    l: L,
    x: *mut u64,
    log_radix: u32,
    part: usize,
    head: *const u64,
    mut stream: *const u64,
    fetch: &mut [Fetch; 2],
) -> *const u64 {
    // SAFETY: children are disjoint parts of the block, and the stream advances as the table was written.
    unsafe {
        for child in 0..1 << log_radix {
            stream = block::<L, LAZY>(l, x.add(child * part), part, head, stream, fetch);
        }
        stream
    }
}

/// All layers from some rows of `columns` words to as many. `INPUT` names the form of the input.
///
/// # Safety
/// `from` and `to` address the rows, which are the same or disjoint; `w` addresses a factor less than rows; the CPU has
/// the enabled features.
macro_rules! radix {
    ($name:ident: $rows:tt rows, $half:tt reduced) => {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        unsafe fn $name<L: Lanes, const INPUT: u8>(
            l: L,
            from: Rows<*const u64>,
            to: Rows<*mut u64>,
            columns: usize,
            w: *const u64,
        ) {
            // SAFETY: rows and factors by contract.
            unsafe {
                for column in (0..columns).step_by(8) {
                    let source = |row: usize| from.start.add(row * from.stride + column).cast::<__m512i>();
                    let at = |row: usize| to.start.add(row * to.stride + column).cast::<__m512i>();
                    let mut v = rows!($rows, ROW => input::<L, INPUT>(l, source(ROW)));
                    if INPUT == LAZY {
                        rows!($half, ROW => v[ROW] = l.reduce(v[ROW]));
                    }
                    layers!($rows, l, v, broadcast_factor(w), w);
                    rows!($rows, ROW => at(ROW).write_unaligned(v[ROW]));
                }
            }
        }
    };
}

radix!(radix_4: 4 rows, 2 reduced);
radix!(radix_8: 8 rows, 4 reduced);
radix!(radix_16: 16 rows, 8 reduced);
