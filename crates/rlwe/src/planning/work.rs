//! Operation counts of key switches, and the rank that orders the ways to switch.
//!
//! A switch at level `l` with `d` digits of `r` rows over `t` targets, `k` of them removed, takes
//!
//! | part | inverse transforms | forward transforms | conversion terms | products | visits |
//! |---|---|---|---|---|---|
//! | decomposition | `l + 1` | `d t - (l + 1)` | each prime of a digit, for each target outside of it | | `l + 1` if primes are merged |
//! | inner product | | | | `r t` | |
//! | ModDown of a half | `k` | `l + 1` | `k (l + 1)` | | `l + 1` |
//! | the permutation of a half | | | | | `l + 1` |
//!
//! Rotations of one ciphertext share the decomposition. The steps of a linear transform divide differently: a baby step
//! leaves ModDown to the transform and visits `2 t + l + 1` limbs. A giant step divides one half first, leaves the
//! other division to the transform, and visits `5 t` more limbs.

use super::layout::SwitchLayout;
use crate::PrimeWidths;

/// Counts of kernels on limbs of `N` words; pairs are counts modulo narrow primes and modulo wider ones.
///
/// Counts are signed, so that the savings of a merged operation can be subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Number-theoretic transforms, forward and inverse.
    pub transforms: [i64; 2],
    /// Products of a digit with both halves of a key row whose uniform half is a seed.
    pub products: [i64; 2],
    /// Terms of conversions: one source prime for one target prime.
    pub conversions: [i64; 2],
    /// Products of a digit with both halves of a stored key row.
    pub stored_products: i64,
    /// Products of a diagonal with both halves of a ciphertext.
    pub diagonals: i64,
    /// Products of two limbs.
    pub multiplications: i64,
    /// Sums, products with a constant, permutations.
    pub visits: i64,
    /// Fourier transforms of encodings.
    pub embeddings: i64,
    /// Operations of the engine.
    pub calls: i64,
}

impl Work {
    /// Adds `times` another one.
    pub fn add(&mut self, other: &Self, times: i64) {
        for width in 0..2 {
            self.transforms[width] += times * other.transforms[width];
            self.products[width] += times * other.products[width];
            self.conversions[width] += times * other.conversions[width];
        }
        self.stored_products += times * other.stored_products;
        self.diagonals += times * other.diagonals;
        self.multiplications += times * other.multiplications;
        self.visits += times * other.visits;
        self.embeddings += times * other.embeddings;
        self.calls += times * other.calls;
    }

    /// All counts in one row, in the order of the fields.
    pub fn row(&self) -> [i64; 12] {
        let ([t0, t1], [p0, p1], [c0, c1]) = (self.transforms, self.products, self.conversions);
        let (stored, diagonals, products) = (self.stored_products, self.diagonals, self.multiplications);
        [t0, t1, p0, p1, c0, c1, stored, diagonals, products, self.visits, self.embeddings, self.calls]
    }

    /// Adds `times` transforms modulo each of some primes.
    pub fn transform(&mut self, widths: &PrimeWidths, primes: impl IntoIterator<Item = usize>, times: i64) {
        add(&mut self.transforms, widths, primes, times);
    }

    /// Adds `times` conversion terms to each of some primes.
    pub fn convert(&mut self, widths: &PrimeWidths, primes: impl IntoIterator<Item = usize>, times: i64) {
        add(&mut self.conversions, widths, primes, times);
    }

    /// Adds `times` products with a seeded key row modulo each of some primes.
    pub fn multiply(&mut self, widths: &PrimeWidths, primes: impl IntoIterator<Item = usize>, times: i64) {
        add(&mut self.products, widths, primes, times);
    }
}

fn add(counts: &mut [i64; 2], widths: &PrimeWidths, primes: impl IntoIterator<Item = usize>, times: i64) {
    for prime in primes {
        counts[usize::from(!widths.is_narrow(prime))] += times;
    }
}

/// The work of the parts of a key switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchWork {
    /// The decomposition and ModUp, which rotations of one ciphertext share.
    pub shared: Work,
    /// The rest of a switch by itself: inner product, ModDown of both halves, their permutation.
    pub whole: Work,
    /// The rest of a baby step of a linear transform.
    pub baby: Work,
    /// The rest of a giant step of a linear transform.
    pub giant: Work,
}

/// Weights of [`SwitchLayout::rank`]: a transform, the product of a digit with a key row, a conversion term. Rounded
/// from a profile of rotations at `N = 2^16` on AVX-512, where transforms and products find limbs in a far cache.
pub const RANK_WEIGHTS: [usize; 3] = [8, 5, 1];

impl SwitchLayout {
    /// The work with a key of which this many rows are used; its uniform half is a seed, or stored.
    pub fn work(&self, widths: &PrimeWidths, rows: usize, seeded: bool) -> SwitchWork {
        let kept = 0..self.level + 1;
        let targets = || kept.clone().chain(self.removed());
        let (target_count, kept_count) = (self.target_count() as i64, self.level as i64 + 1);
        let mut shared = Work { calls: 1, ..Work::default() };
        shared.transform(widths, targets(), self.digits.len() as i64);
        for digit in &self.digits {
            shared.convert(widths, targets().filter(|target| !digit.contains(target)), digit.len() as i64);
        }
        if !self.merged.is_empty() {
            shared.visits += kept_count;
        }
        let mut products = Work { calls: 1, ..Work::default() };
        let rows = rows as i64;
        if seeded {
            products.multiply(widths, targets(), rows);
        } else {
            products.stored_products = rows * target_count;
        }
        let mut half = Work { visits: kept_count, ..Work::default() };
        half.transform(widths, targets(), 1);
        half.convert(widths, kept.clone(), self.removed().count() as i64);
        let with = |half_count: i64, visits: i64| {
            let mut part = products;
            part.add(&half, half_count);
            part.visits += visits;
            part
        };
        SwitchWork {
            shared,
            whole: with(2, 2 * kept_count),
            baby: with(0, 2 * target_count + kept_count),
            giant: with(1, 5 * target_count),
        }
    }

    /// The work of a switch to a smaller ring, in limbs of that ring, with keys of `parts` parts that use this many
    /// rows each: see [`mod@crate::switch::ring_down`]. The components of one half are `parts` products and sums of
    /// neighbours each, those of the other half one sum.
    pub fn ring_down_work(&self, widths: &PrimeWidths, rows: usize, seeded: bool, parts: usize) -> Work {
        let (kept, parts) = (self.level as i64 + 1, parts as i64);
        let SwitchWork { shared, whole, baby, .. } = self.work(widths, rows, seeded);
        let mut out = Work::default();
        out.add(&shared, parts);
        out.add(&baby, parts);
        // Two divisions in all: those of a separate switch that a baby step lacks.
        out.add(&whole, 1);
        out.add(&baby, -1);
        out.calls = 1 + parts;
        out.visits = parts * shared.visits
            + (parts - 1) * 2 * self.target_count() as i64
            + (parts * parts + parts + 3) * kept;
        out.multiplications = parts * (parts - 1) * kept;
        out
    }

    /// The additional work of a switch to a larger ring, in limbs of that ring: both halves are written out.
    pub fn ring_up_work(&self, widths: &PrimeWidths, rows: usize, seeded: bool) -> Work {
        let SwitchWork { shared, whole, .. } = self.work(widths, rows, seeded);
        let mut out = shared;
        out.add(&whole, 1);
        out.visits += 2 * (self.level as i64 + 1);
        out
    }

    /// Orders the ways to switch with a key of which `rows` are used: an estimate of the time, in units of one
    /// conversion term of one target prime, by [`RANK_WEIGHTS`]. Only the order matters. With a rescaling the division
    /// includes `q_level`.
    ///
    /// Terms are the factors of the kernels: two for each wide source prime, and one for the quotient.
    pub fn rank(&self, widths: &PrimeWidths, rows: usize, rescale: bool) -> usize {
        let terms = |primes: &mut dyn Iterator<Item = usize>| {
            1 + primes.map(|i| if widths.is_narrow(i) { 1 } else { 2 }).sum::<usize>()
        };
        let targets = self.target_count();
        let transforms = (self.digits.len() + 2) * targets;
        let raised: usize =
            self.digits.iter().map(|digit| terms(&mut digit.clone()) * (targets - digit.len())).sum();
        let kept = if rescale { self.level } else { self.level + 1 };
        let lowered = 2 * terms(&mut self.removed().chain(kept..self.level + 1)) * kept;
        let products = rows * targets;
        let [transform, product, term] = RANK_WEIGHTS;
        transform * transforms + product * products + term * (raised + lowered)
    }
}
