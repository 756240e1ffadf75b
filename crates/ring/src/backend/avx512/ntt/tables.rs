//! Twiddle factors in the order of use.
//!
//! A table starts with the constants of the tail: [`LANE_FACTORS`] factors by lane for the layers inside a vector, then
//! one per group of eight words for the twist. A stream follows, in the order of the depth-first traversal. For a pass
//! of radix `2^k` it has `2^k - 1` factors, each with its quotient, padded to a cache line. For a tail of 128 words it
//! has the twist, the twist times the factor of distance 64 (both by lane), and the fourteen factors of distances 32,
//! 16 and 8.
//!
//! # The twist
//! Layers of distance 4, 2 and 1 evaluate, for group `g` of eight words, a polynomial modulo `X^8 - z^8` at
//! `z w^brv(k)`, where `z = psi^(2 brv(8g) + 1)` and `w = psi^(N/4)`. Once word `j` is multiplied by `z^j`, their
//! factors are powers of `w` for every group. With `g = 16 h + l`, `z = psi^(2 brv(128 h) + 1) psi^(2 brv(8 l))`: the
//! first factor joins the layer of distance 64, the second takes sixteen vectors. Without the twist, tables for the
//! last three layers would take seven eighths of a limb.

use alloc::vec::Vec;

use super::{TAIL, pass_log_radix};
use crate::backend::avx512::arithmetic::lanes::{Lanes, quotient};
use crate::backend::portable::ntt::reversed_powers;
use crate::{Buffer, Modulus};

/// Factors by lane in front of the twist: distances 2 and 1.
pub(super) const LANE_FACTORS: usize = 2;
/// Words before the stream.
pub(super) const HEAD: usize = 16 * (LANE_FACTORS + TAIL / 8);
/// Words of the stream that a tail reads.
pub(super) const TAIL_WORDS: usize = 64;

/// Words of the stream that a pass reads.
pub(super) const fn pass_words(log_radix: u32) -> usize {
    2 << log_radix
}

struct Builder<'a> {
    modulus: &'a Modulus,
    /// `root^brv(i)`.
    powers: Vec<u64>,
    root: u64,
    log_n: u32,
    /// Multiplies every twist.
    scale: u64,
    words: Vec<u64>,
    /// [`quotient`] of the width.
    quotient: fn(&Modulus, u64) -> u64,
}

impl Builder<'_> {
    fn reverse(&self, i: usize) -> u64 {
        (i as u64).reverse_bits() >> (64 - self.log_n)
    }

    fn push_lanes(&mut self, lanes: [u64; 8]) {
        self.words.extend_from_slice(&lanes);
        self.words.extend(lanes.map(|w| (self.quotient)(self.modulus, w)));
    }

    fn push(&mut self, w: u64) {
        self.words.extend_from_slice(&[w, (self.quotient)(self.modulus, w)]);
    }

    /// `root^(exponent j)` for `j < 8`, times `factor`.
    fn ladder(&self, exponent: u64, factor: u64) -> [u64; 8] {
        let z = self.modulus.pow(self.root, exponent);
        let mut value = factor;
        core::array::from_fn(|_| {
            let current = value;
            value = self.modulus.mul(value, z);
            current
        })
    }

    fn head(&mut self) {
        let w = self.modulus.pow(self.root, 1 << (self.log_n - 2));
        let [one, w1, w2, w3] = core::array::from_fn(|k| self.modulus.pow(w, k as u64));
        self.push_lanes([one, one, one, one, w2, w2, w2, w2]);
        self.push_lanes([one, w2, one, w2, w1, w3, w1, w3]);
        for group in 0..TAIL / 8 {
            self.push_lanes(self.ladder(2 * self.reverse(8 * group), 1));
        }
        debug_assert_eq!(self.words.len(), HEAD);
    }

    /// The factors of `layers` layers below block `block` of `blocks`, in order.
    fn push_layers(&mut self, blocks: usize, block: usize, layers: core::ops::Range<u32>) {
        for s in layers {
            for t in 0..1 << s {
                self.push(self.powers[(blocks << s) + (block << s) + t]);
            }
        }
    }

    fn tail(&mut self, blocks: usize, block: usize) {
        let start = self.words.len();
        let exponent = 2 * self.reverse(TAIL * block) + 1;
        self.push_lanes(self.ladder(exponent, self.scale));
        self.push_lanes(self.ladder(exponent, self.modulus.mul(self.scale, self.powers[blocks + block])));
        self.push_layers(blocks, block, 1..4);
        self.words.resize(start + TAIL_WORDS, 0);
    }

    fn pass(&mut self, blocks: usize, block: usize, log_radix: u32) {
        let start = self.words.len();
        self.push_layers(blocks, block, 0..log_radix);
        self.words.resize(start + pass_words(log_radix), 0);
    }

    fn stream(&mut self, blocks: usize, block: usize, post_order: bool) {
        let length = (1 << self.log_n) / blocks;
        if length == TAIL {
            return self.tail(blocks, block);
        }
        let log_radix = pass_log_radix(length);
        if !post_order {
            self.pass(blocks, block, log_radix);
        }
        for child in 0..1 << log_radix {
            self.stream(blocks << log_radix, (block << log_radix) + child, post_order);
        }
        if post_order {
            self.pass(blocks, block, log_radix);
        }
    }
}

fn build<L: Lanes>(m: &Modulus, log_n: u32, root: u64, scale: u64, post_order: bool) -> Buffer {
    let powers = reversed_powers(m, log_n, root);
    let mut builder =
        Builder { modulus: m, powers, root, log_n, scale, words: Vec::new(), quotient: quotient::<L> };
    builder.head();
    builder.stream(1, 0, post_order);
    let mut buffer = Buffer::unspecified(builder.words.len());
    buffer.copy_from_slice(&builder.words);
    buffer
}

/// The table of [`super::forward`].
pub(super) fn forward<L: Lanes>(m: &Modulus, log_n: u32, psi: u64) -> Buffer {
    build::<L>(m, log_n, psi, 1, false)
}

/// The table of [`super::inverse`]: inverse factors, children before their parent, `N^-1` in the twist.
pub(super) fn inverse<L: Lanes>(m: &Modulus, log_n: u32, psi: u64) -> Buffer {
    build::<L>(m, log_n, m.inv(psi), m.inv(1 << log_n), true)
}
