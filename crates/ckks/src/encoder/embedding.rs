//! The canonical embedding restricted to the orbit of 5, and its inverse.

use std::cell::RefCell;
use std::mem::swap;

use keywright_ring::{BackendKind, MAX_LOG_N, MIN_LOG_N, backend};
use num_complex::Complex64;
use zeroize::Zeroize;

use super::dispatch::Isa;
use super::fft::passes::{Factors, forward_radix2, forward_radix4, inverse_radix2, inverse_radix4};
use super::fft::roots::{Root, Roots};

/// Transforms between the `2n` real coefficients of a polynomial of `R[Y]/(Y^2n + 1)` and its `n` slots, its values at
/// `exp(2 pi i 5^j / 4n)`, for every power of two `n` up to `N/2`.
///
/// As `Y^n` is `i` at every slot, the slots are the values of `sum_k w_k Y^k` with `w_k = c_k + i c_(k+n)`: a transform
/// of `n` complex numbers instead of `2n`. Both sides are passed as `n` complex numbers.
///
/// # Accuracy
/// With `u = 2^-53`, the relative error of the result is at most `4 u log2(n)` in Euclidean norm, to first order.
/// Factors are rounded once from double-double (`0.71 u`), a complex product is within `sqrt(5) u` (Brent, Percival and
/// Zimmermann, 2007), and each addition of two complex numbers within `u`. So a radix-4 pass adds `4.95 u` and the
/// radix-2 pass `3.95 u`. The result has the same bits on every machine.
#[derive(Debug, Clone)]
pub struct Embedding {
    log_n: u32,
    isa: Isa,
    /// Entry `s` is for the radix-4 pass from `2^s` rows.
    factors: Vec<Factors>,
}

impl Embedding {
    /// Precomputes the roots of unity for ring degree `N = 2^log_n`: `12 N` bytes, in milliseconds. Runs on the
    /// instruction set of [`backend::default`].
    ///
    /// # Panics
    /// If `log_n` is not the degree of a ring: outside [`MIN_LOG_N`]`..=`[`MAX_LOG_N`].
    pub fn new(log_n: u32) -> Self {
        Self::with_isa(log_n, default_isa())
    }

    pub(super) fn with_isa(log_n: u32, isa: Isa) -> Self {
        assert!(
            (MIN_LOG_N..=MAX_LOG_N).contains(&log_n),
            "log_n = {log_n} is outside {MIN_LOG_N}..={MAX_LOG_N}"
        );
        let roots = Roots::new(log_n + 1);
        let factors = (0..=log_n - 3).map(|log_rows| factors(&roots, log_n, log_rows)).collect();
        Self { log_n, isa, factors }
    }

    /// `log2(N)`.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// `N/2`.
    pub fn max_slots(&self) -> usize {
        1 << (self.log_n - 1)
    }

    /// The slots of the polynomial given by `w_k`, in place. `values.len()` is `2^log_slots`.
    ///
    /// # Panics
    /// If the length differs, or exceeds `N/2`.
    pub fn to_slots(&self, log_slots: u32, values: &mut [Complex64]) {
        self.in_place(log_slots, values, 1.0, Self::coefficients_to_slots);
    }

    /// The `w_k` of the polynomial with the given slots, in place. `values.len()` is `2^log_slots`.
    ///
    /// # Panics
    /// If the length differs, or exceeds `N/2`.
    pub fn to_coefficients(&self, log_slots: u32, values: &mut [Complex64]) {
        self.in_place(log_slots, values, 1.0 / values.len() as f64, Self::slots_to_coefficients);
    }

    fn in_place(&self, log_slots: u32, values: &mut [Complex64], factor: f64, transform: Transform) {
        let n = values.len();
        assert!(
            log_slots < self.log_n && n == 1 << log_slots,
            "{n} values are not the 2^{log_slots} slots of N = 2^{}",
            self.log_n
        );
        with_buffers(2 * n, |[first, second]| {
            let (re, im) = first.split_at_mut(n);
            for ((re, im), z) in re.iter_mut().zip(im).zip(values.iter()) {
                (*re, *im) = (z.re * factor, z.im * factor);
            }
            let (re, im) = transform(self, first, second).split_at(n);
            for ((re, im), z) in re.iter().zip(im).zip(values) {
                *z = Complex64::new(*re, *im);
            }
        });
    }

    pub(super) fn isa(&self) -> Isa {
        self.isa
    }

    /// The slots of the polynomial with the given `2n` coefficients, as `n` real parts followed by `n` imaginary ones.
    /// Overwrites both buffers and returns the one that holds the result.
    ///
    /// # Panics
    /// If the two lengths differ or are not twice a power of two `n <= N/2`.
    pub(super) fn coefficients_to_slots<'a>(
        &self,
        coefficients: &'a mut [f64],
        spare: &'a mut [f64],
    ) -> &'a mut [f64] {
        let n = self.check_lengths(coefficients, spare);
        let (mut from, mut to) = (coefficients, spare);
        let mut log_rows = 0;
        if n.trailing_zeros() % 2 == 1 {
            forward_radix2(self.isa, self.eighth_root(), parts(from), parts_mut(to));
            swap(&mut from, &mut to);
            log_rows = 1;
        }
        while 1 << log_rows < n {
            forward_radix4(self.isa, &self.factors[log_rows], 1 << log_rows, parts(from), parts_mut(to));
            swap(&mut from, &mut to);
            log_rows += 2;
        }
        from
    }

    /// `n` times the inverse of [`Self::coefficients_to_slots`]. Overwrites both buffers and returns the one that holds
    /// the result.
    ///
    /// # Panics
    /// If the two lengths differ or are not twice a power of two `n <= N/2`.
    pub(super) fn slots_to_coefficients<'a>(
        &self,
        slots: &'a mut [f64],
        spare: &'a mut [f64],
    ) -> &'a mut [f64] {
        let n = self.check_lengths(slots, spare);
        let (mut from, mut to) = (slots, spare);
        let mut log_rows = n.trailing_zeros() as usize;
        while log_rows >= 2 {
            log_rows -= 2;
            inverse_radix4(self.isa, &self.factors[log_rows], 1 << log_rows, parts(from), parts_mut(to));
            swap(&mut from, &mut to);
        }
        if log_rows == 1 {
            inverse_radix2(self.isa, self.eighth_root(), parts(from), parts_mut(to));
            swap(&mut from, &mut to);
        }
        from
    }

    fn check_lengths(&self, a: &[f64], b: &[f64]) -> usize {
        let n = a.len() / 2;
        assert!(
            a.len() == b.len() && a.len() == 2 * n && n.is_power_of_two() && n <= self.max_slots(),
            "buffers of {} and {} numbers are not both twice a power of two up to {}",
            a.len(),
            b.len(),
            self.max_slots()
        );
        n
    }

    fn eighth_root(&self) -> [f64; 2] {
        [self.factors[0].half[0][0], self.factors[0].half[1][0]]
    }
}

/// The factors `exp(2 pi i 5^j / 8 l)`, `j < l = 2^log_rows`, of the radix-2 layer that joins sequences of `l` slots to
/// sequences of `2 l`: both parts rounded once, from double-double. Layer `l` maps each pair of values `a`, `b` at
/// positions `j` and `j + l` modulo `2 l` to `a + w_j b` and `a - w_j b`; the layers `l = 1, 2, 4, ..., n/2`, in this
/// order, on the `n` complex numbers `w_k` in bit-reversed order, are [`Embedding::to_slots`].
pub fn twiddles(log_rows: u32) -> Vec<Complex64> {
    let log_order = log_rows + 3;
    let roots = Roots::new(log_order);
    powers_of_5(1 << log_rows, 1 << log_order)
        .map(|e| roots.get(e))
        .map(|r| Complex64::new(r.re.hi, r.im.hi))
        .collect()
}

/// `5^j` modulo `order` for `j < count`.
fn powers_of_5(count: usize, order: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1), move |e| Some(e * 5 % order)).take(count)
}

type Transform = for<'a> fn(&Embedding, &'a mut [f64], &'a mut [f64]) -> &'a mut [f64];

/// The instruction set of the back end of this process.
pub(super) fn default_isa() -> Isa {
    Isa::at_most(backend::default().map_or(BackendKind::Portable, |b| b.kind()))
}

/// Runs `f` on two buffers of unspecified content that begin at a cache line, since a vector across two lines costs
/// twice. The thread keeps them, because touching fresh memory costs more than a transform. They are wiped after use,
/// because they held a message.
pub(super) fn with_buffers<T>(length: usize, f: impl FnOnce([&mut [f64]; 2]) -> T) -> T {
    const LINE: usize = 64;
    const SLACK: usize = LINE / size_of::<f64>();
    thread_local! {
        static MEMORY: RefCell<[Vec<f64>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
    }
    MEMORY.with_borrow_mut(|memory| {
        let [first, second] = memory.each_mut().map(|memory| {
            if memory.len() < length + SLACK {
                memory.resize(length + SLACK, 0.0);
            }
            let start = memory.as_ptr().align_offset(LINE).min(SLACK);
            &mut memory[start..start + length]
        });
        let out = f([&mut *first, &mut *second]);
        first.zeroize();
        second.zeroize();
        out
    })
}

/// For the radix-4 pass from `2^log_rows` rows, from the roots of order `2^(log_n + 1)`.
fn factors(roots: &Roots, log_n: u32, log_rows: u32) -> Factors {
    let step = 1u64 << (log_n + 1 - (log_rows + 4));
    let order = 2u64 << log_n;
    let exponents: Vec<u64> = powers_of_5(1 << log_rows, order).collect();
    let table = |multiple: u64| {
        let root = |e: &u64| roots.get(e * multiple * step);
        let part = |f: fn(Root) -> f64| exponents.iter().map(root).map(f).collect();
        [part(|r| r.re.hi), part(|r| r.im.hi)]
    };
    Factors { half: table(2), quarter: table(1), product: table(3) }
}

fn parts(x: &[f64]) -> [&[f64]; 2] {
    x.split_at(x.len() / 2).into()
}

fn parts_mut(x: &mut [f64]) -> [&mut [f64]; 2] {
    x.split_at_mut(x.len() / 2).into()
}
