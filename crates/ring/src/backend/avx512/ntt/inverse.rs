//! Coefficients from evaluations.

use core::arch::x86_64::*;

use super::super::fetch::Fetch;
use super::passes::{Rows, butterfly_inverse, layer_inverse, layers_inverse, rows};
use super::tables::{HEAD, TAIL_WORDS, pass_words};
use super::{RUN, TAIL, pass_log_radix, scaled_layout, tail};
use crate::backend::avx512::arithmetic::lanes::{Lanes, broadcast_factor, splat_factor};
use crate::{Modulus, ShoupFactor};

/// Transforms `length` canonical words in place; the output is canonical.
///
/// # Safety
/// `x` addresses `length` words, `table` is that of [`super::tables::inverse`] for this length, and the CPU has the
/// enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn transform<L: Lanes>(m: &Modulus, x: *mut u64, length: usize, table: &[u64]) {
    // SAFETY: by contract.
    unsafe {
        let l = L::new(m);
        let stream = all_children(l, x, length, table, Fetch::NOTHING);
        let log_radix = pass_log_radix(length);
        let rows = Rows { start: x, stride: length >> log_radix };
        pass(l, log_radix, rows.read(), rows, rows.stride, stream, |v| l.canonical(v));
    }
}

/// Computes the same transform times `factor` into `row`, in the order of [`scaled_layout`]. Leaves unspecified words
/// in `x`.
///
/// # Safety
/// As for [`transform`]; `row` has `length` words.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn transform_to_row<L: Lanes>(
    m: &Modulus,
    x: *mut u64,
    length: usize,
    table: &[u64],
    factor: ShoupFactor,
    row: &mut [u64],
) {
    // SAFETY: by contract; a part of the row takes as many words of every operand of the pass as a run has.
    unsafe {
        let l = L::new(m);
        let stream = all_children(l, x, length, table, Fetch::new(row, length / TAIL));
        let factor = splat_factor::<L>(factor);
        let log_radix = pass_log_radix(length);
        let stride = length >> log_radix;
        for (part, words) in row.chunks_exact_mut(scaled_layout(length).part_words()).enumerate() {
            let from = Rows { start: x.cast_const().add(part * RUN), stride };
            let to = Rows { start: words.as_mut_ptr(), stride: RUN };
            pass(l, log_radix, from, to, RUN, stream, |v| l.canonical(l.product(v, factor)));
        }
    }
}

/// All passes but the last. Prefetches what the last pass writes to. Returns the position of the last pass's factors in
/// the stream.
///
/// # Safety
/// As for [`transform`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn all_children<L: Lanes>(
    l: L,
    x: *mut u64,
    length: usize,
    table: &[u64],
    mut fetch: Fetch,
) -> *const u64 {
    // SAFETY: by contract; the traversal reads the table as it was written.
    unsafe {
        let head = table.as_ptr();
        let stream = children(l, x, length, head, head.add(HEAD), &mut fetch);
        debug_assert_eq!(stream.add(pass_words(pass_log_radix(length))), table.as_ptr_range().end);
        stream
    }
}

/// The blocks below a pass over `length` words. Returns the position in the stream after them.
///
/// # Safety
/// As for [`transform`]; `stream` is the block's part of the table.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn children<L: Lanes>(
    l: L,
    x: *mut u64,
    length: usize,
    head: *const u64,
    mut stream: *const u64,
    fetch: &mut Fetch,
) -> *const u64 {
    // SAFETY: children are disjoint parts of the block, and the stream advances as the table was written.
    unsafe {
        let log_radix = pass_log_radix(length);
        let part = length >> log_radix;
        for child in 0..1 << log_radix {
            stream = block::<L>(l, x.add(child * part), part, head, stream, fetch);
        }
        stream
    }
}

/// Transforms a block in place, words below `U` in and out: its children, then a pass. Returns the position in the
/// stream after the block.
///
/// # Safety
/// As for [`transform`]; `stream` is the block's part of the table.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn block<L: Lanes>(
    l: L,
    x: *mut u64,
    length: usize,
    head: *const u64,
    stream: *const u64,
    fetch: &mut Fetch,
) -> *const u64 {
    // SAFETY: by contract; the traversal reads the table as it was written.
    unsafe {
        if length == TAIL {
            fetch.share();
            tail::inverse::<L>(l, x, head, stream);
            return stream.add(TAIL_WORDS);
        }
        let stream = children(l, x, length, head, stream, fetch);
        let log_radix = pass_log_radix(length);
        let rows = Rows { start: x, stride: length >> log_radix };
        pass(l, log_radix, rows.read(), rows, rows.stride, stream, |v| v);
        stream.add(pass_words(log_radix))
    }
}

/// One pass of a given radix over `columns` words of each row. Applies `finish` to the resulting words below `U`.
///
/// # Safety
/// `from` and `to` address as many rows as the radix, the same or disjoint; `stream` is the pass's part of the table;
/// the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn pass<L: Lanes>(
    l: L,
    log_radix: u32,
    from: Rows<*const u64>,
    to: Rows<*mut u64>,
    columns: usize,
    stream: *const u64,
    finish: impl Fn(__m512i) -> __m512i,
) {
    // SAFETY: by contract.
    unsafe {
        match log_radix {
            2 => radix_4(l, from, to, columns, stream, finish),
            3 => radix_8(l, from, to, columns, stream, finish),
            _ => radix_16(l, from, to, columns, stream, finish),
        }
    }
}

/// All layers over some rows of `columns` words below `U`. Writes the result of `finish` on each.
///
/// # Safety
/// `from` and `to` address the rows, the same or disjoint; `w` addresses a factor less than rows; the CPU has the
/// enabled features.
macro_rules! radix {
    ($name:ident: $rows:tt rows, $($pair:literal $other:literal),*) => {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        unsafe fn $name<L: Lanes>(
            l: L,
            from: Rows<*const u64>,
            to: Rows<*mut u64>,
            columns: usize,
            w: *const u64,
            finish: impl Fn(__m512i) -> __m512i,
        ) {
            // SAFETY: rows and factors by contract.
            unsafe {
                for column in (0..columns).step_by(8) {
                    let source = |row: usize| from.start.add(row * from.stride + column).cast::<__m512i>();
                    let at = |row: usize| to.start.add(row * to.stride + column).cast::<__m512i>();
                    let mut v = rows!($rows, ROW => source(ROW).read_unaligned());
                    layers_inverse!($rows, l, v, w);
                    layer_inverse!(l, v, broadcast_factor(w); $($pair $other),*);
                    rows!($rows, ROW => at(ROW).write_unaligned(finish(v[ROW])));
                }
            }
        }
    };
}

radix!(radix_4: 4 rows, 0 2, 1 3);
radix!(radix_8: 8 rows, 0 4, 1 5, 2 6, 3 7);
radix!(radix_16: 16 rows, 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15);
