//! A back end that counts the words a program computes, for models of its cost.
//!
//! `KEYWRIGHT_BACKEND=counted` wraps the fastest back end. Results are the same; each kernel adds the number of words
//! it computes to a counter of the process ([`counts`]).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::methods::methods;
use super::{Backend, BackendKind, Diagonals, Kernels, KeySwitching, NttPlan, Planes, Sampling, UniformRow};
use crate::conversion::{Column, ScaledLayout, ScaledPart};
use crate::{Modulus, ShoupFactor};

/// What is counted: words computed modulo primes of at most 50 bits, then modulo wider ones.
pub const COUNTERS: [&str; 7] =
    ["transforms", "conversions", "seeded_products", "stored_products", "products", "visits", "expansions"];

static COUNTS: [[AtomicU64; 2]; COUNTERS.len()] =
    [const { [const { AtomicU64::new(0) }; 2] }; COUNTERS.len()];

/// The counts of all counted back ends of this process, in the order of [`COUNTERS`].
pub fn counts() -> Vec<(&'static str, [u64; 2])> {
    let read = |counter: &[AtomicU64; 2]| [0, 1].map(|width| counter[width].load(Ordering::Relaxed));
    COUNTERS.into_iter().zip(COUNTS.iter().map(read)).collect()
}

#[derive(Clone, Copy)]
enum Counter {
    Transforms,
    Conversions,
    SeededProducts,
    StoredProducts,
    Products,
    Visits,
    Expansions,
}

fn count(counter: Counter, wide: bool, words: usize) {
    COUNTS[counter as usize][usize::from(wide)].fetch_add(words as u64, Ordering::Relaxed);
}

/// A counting wrapper around another back end.
#[derive(Debug)]
pub(super) struct Counted(pub(super) &'static dyn Backend);

struct CountedPlan {
    plan: Box<dyn NttPlan>,
    wide: bool,
}

impl CountedPlan {
    fn counted(&self, counter: Counter, words: usize) -> &dyn NttPlan {
        count(counter, self.wide, words);
        &*self.plan
    }
}

impl NttPlan for CountedPlan {
    fn forward(&self, limb: &mut [u64], upcoming: &[u64]) {
        self.counted(Counter::Transforms, limb.len()).forward(limb, upcoming);
    }

    fn forward_subring(&self, limb: &mut [u64]) {
        self.counted(Counter::Transforms, limb.len()).forward_subring(limb);
    }

    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]) {
        self.counted(Counter::Transforms, limb.len()).forward_small(values, limb, upcoming);
    }

    fn inverse(&self, limb: &mut [u64]) {
        self.counted(Counter::Transforms, limb.len()).inverse(limb);
    }

    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, row: &mut [u64]) {
        self.counted(Counter::Transforms, limb.len()).inverse_scaled(limb, factor, row);
    }

    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
        // A wide prime's scaled residue is two terms, and the quotient is one. Only source primes are counted.
        self.counted(Counter::Conversions, part.sources.len() * part.words).convert_part(column, part, out);
    }

    fn blocks(&self) -> usize {
        self.plan.blocks()
    }

    fn finish_block(&self, block: usize, words: &mut [u64], upcoming: [&[u64]; 2]) {
        self.counted(Counter::Transforms, words.len()).finish_block(block, words, upcoming);
    }
}

impl Counted {
    fn counted(&self, counter: Counter, m: &Modulus, words: usize) -> &dyn Backend {
        count(counter, !m.is_narrow(), words);
        self.0
    }
}

impl Backend for Counted {
    fn kind(&self) -> BackendKind {
        self.0.kind()
    }
}

impl Kernels for Counted {
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
        let plan = self.0.plan_ntt(log_n, modulus, psi);
        Box::new(CountedPlan { plan, wide: !modulus.is_narrow() })
    }

    methods! {
        add_assign(self, m, a, b) => self.counted(Counter::Visits, m, a.len()).add_assign(m, a, b);
        sub_assign(self, m, a, b) => self.counted(Counter::Visits, m, a.len()).sub_assign(m, a, b);
        neg_assign(self, m, a) => self.counted(Counter::Visits, m, a.len()).neg_assign(m, a);
        mul(self, m, a, b, out) => self.counted(Counter::Products, m, a.len()).mul(m, a, b, out);
        mul_add_assign(self, m, acc, a, b) =>
            self.counted(Counter::Products, m, a.len()).mul_add_assign(m, acc, a, b);
        mul_scalar_assign(self, m, a, w) => self.counted(Counter::Visits, m, a.len()).mul_scalar_assign(m, a, w);
        mul_scalar_add_assign(self, m, acc, a, w) =>
            self.counted(Counter::Visits, m, a.len()).mul_scalar_add_assign(m, acc, a, w);
        quotient(self, m, quotient, out) => self.counted(Counter::Visits, m, out.len()).quotient(m, quotient, out);
        lift_small(self, m, values, out) => self.0.lift_small(m, values, out);
        permute(self, automorphism, input, out) => {
            // No arithmetic: the width of the prime is unknown and makes no difference.
            count(Counter::Visits, false, out.len());
            self.0.permute(automorphism, input, out);
        };
    }
}

impl KeySwitching for Counted {
    fn scaled_layout(&self, n: usize) -> ScaledLayout {
        self.0.scaled_layout(n)
    }

    methods! {
        derive_terms(self, decomposer, rows, out) => self.0.derive_terms(decomposer, rows, out);
        inner_product(self, m, digits, b, a, out_b, out_a) => {
            let counter = match a.first() {
                Some(UniformRow::Seeded(..)) => Counter::SeededProducts,
                _ => Counter::StoredProducts,
            };
            self.counted(counter, m, digits.len() * out_b.len()).inner_product(m, digits, b, a, out_b, out_a);
        };
    }
}

impl Diagonals for Counted {
    methods! {
        // A product is a factor with two rows.
        inner_products(self, m, terms, repeat, add, out) =>
            self.counted(Counter::StoredProducts, m, 2 * terms.len() * out[0].len()).inner_products(m, terms, repeat, add, out);
        join_halves(self, f, g, out) => self.0.join_halves(f, g, out);
        // A sum and a product for every value.
        separate_halves(self, m, factors, values) =>
            self.counted(Counter::Visits, m, 2 * values.len()).separate_halves(m, factors, values);
    }
}

impl Sampling for Counted {
    methods! {
        expand_part(self, seed, id, m, start, out) =>
            self.counted(Counter::Expansions, m, out.len()).expand_part(seed, id, m, start, out);
        key_stream(self, key, first, out) => self.0.key_stream(key, first, out);
        gaussian(self, words, out) => self.0.gaussian(words, out);
        ternary(self, words, out) => self.0.ternary(words, out);
    }
}

impl Planes for Counted {
    methods! {
        add_words(self, planes, sums) => self.0.add_words(planes, sums);
        add_bytes(self, planes, sums) => self.0.add_bytes(planes, sums);
        fold_sums(self, m, high, sums) => self.0.fold_sums(m, high, sums);
        write_planes(self, words, low, high) => self.0.write_planes(words, low, high);
    }
}
