//! The machine's own rates, and the limits that follow.
//!
//! An operation is counted in butterflies, modular multiply-adds and bytes that must come from memory. The limit is the
//! larger of two times: that of the arithmetic at the rates of data in the nearest cache, and that of the bytes at the
//! rate of a plain read. No program on this machine is faster with this many operations.

use std::time::Instant;

use keywright_ring::backend::UniformRow;
use keywright_ring::{Backend, Buffer, MIN_LOG_N, Ring, RingError, ntt_primes};
use keywright_rlwe::SwitchPlan;

use crate::NTT_LOG_Q;

/// Rates of one thread, per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineRates {
    /// Butterflies of a narrow prime: those of the smallest transform, whose data and factors stay in the first cache.
    pub butterflies: f64,
    /// Multiply-adds of an inner product whose operands stay in the first cache.
    pub products: f64,
    /// Bytes read from memory in order.
    pub bytes: f64,
}

/// Words of each operand of the measured inner product; 38 operands are 38 KiB.
const PROBE_WORDS: usize = 128;
/// Digits of the measured inner product: as many as are summed without a reduction, whose cost is then small.
const PROBE_DIGITS: usize = 12;
/// Calls per try.
const PROBE_CALLS: usize = 1000;
/// Bytes read to measure memory: more than the caches hold.
const STREAM_BYTES: usize = 1 << 28;

impl MachineRates {
    /// Measures the rates of a back end: the best of several tries, since they define a limit. Takes about half a
    /// second.
    ///
    /// # Errors
    /// [`RingError`] if the smallest ring cannot be made.
    pub fn measure(backend: &'static dyn Backend) -> Result<Self, RingError> {
        let ring = Ring::new(MIN_LOG_N, &ntt_primes(MIN_LOG_N, NTT_LOG_Q, 1, &[])?, backend)?;
        let mut limb = Buffer::zeroed(ring.n());
        limb.iter_mut().zip(1..).for_each(|(w, i)| *w = i);
        let butterflies = best(9, || {
            (0..PROBE_CALLS).for_each(|_| ring.forward_limb(0, &mut limb));
            KernelCounts::transforms(MIN_LOG_N, PROBE_CALLS).butterflies
        });
        let operands: Vec<Buffer> = (0..3 * PROBE_DIGITS)
            .map(|k| {
                let mut operand = Buffer::unspecified(PROBE_WORDS);
                operand.copy_from_slice(&limb[k % 8 * PROBE_WORDS..][..PROBE_WORDS]);
                operand
            })
            .collect();
        let slices: Vec<&[u64]> = operands.iter().map(|b| &b[..]).collect();
        let (digits, rows) = slices.split_at(PROBE_DIGITS);
        let (b, a) = rows.split_at(PROBE_DIGITS);
        let a: Vec<UniformRow<'_>> = a.iter().map(|row| UniformRow::Stored(row)).collect();
        let (mut out_b, mut out_a) = (Buffer::zeroed(PROBE_WORDS), Buffer::zeroed(PROBE_WORDS));
        let products = best(9, || {
            for _ in 0..PROBE_CALLS {
                backend.inner_product(ring.modulus(0), digits, b, &a, &mut out_b, &mut out_a);
            }
            (2 * PROBE_DIGITS * PROBE_WORDS * PROBE_CALLS) as f64
        });
        let stream = Buffer::zeroed(STREAM_BYTES / 8);
        let bytes = best(4, || {
            let sums = stream.as_chunks::<32>().0.iter().fold([0u64; 32], |mut sums, words| {
                sums.iter_mut().zip(words).for_each(|(s, w)| *s = s.wrapping_add(*w));
                sums
            });
            std::hint::black_box(sums);
            STREAM_BYTES as f64
        });
        Ok(Self { butterflies, products, bytes })
    }

    /// The least seconds for these operations on this many threads. Memory is shared, and two threads read little
    /// faster than one, so bytes are not divided.
    pub fn limit(&self, counts: KernelCounts, threads: usize) -> f64 {
        let arithmetic = counts.butterflies / self.butterflies + counts.products / self.products;
        (arithmetic / threads as f64).max(counts.bytes / self.bytes)
    }
}

fn best(tries: usize, mut work: impl FnMut() -> f64) -> f64 {
    (0..tries)
        .map(|_| {
            let start = Instant::now();
            let count = work();
            count / start.elapsed().as_secs_f64()
        })
        .fold(0.0, f64::max)
}

/// The content of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct KernelCounts {
    /// Butterflies.
    pub butterflies: f64,
    /// Multiply-adds.
    pub products: f64,
    /// Bytes from memory.
    pub bytes: f64,
}

impl KernelCounts {
    /// `count` transforms.
    pub fn transforms(log_n: u32, count: usize) -> Self {
        let butterflies = (f64::from(log_n) * f64::from(1u32 << (log_n - 1))) * count as f64;
        Self { butterflies, ..Self::default() }
    }

    /// A switch with `count` keys that share a decomposition: transforms, conversions, inner products, and the bytes of
    /// keys and of the ciphertexts in and out.
    pub fn switches(log_n: u32, plan: &SwitchPlan, key_bytes: usize, count: usize) -> Self {
        let n = f64::from(1u32 << log_n);
        let targets = plan.layout.target_count();
        let (kept, removed) = (plan.mod_down.kept, plan.mod_down.removed.len());
        let input = plan.layout.level + 1;
        let raised = plan.layout.digits.len() * targets - input;
        let transforms = input + raised + 2 * count * (removed + kept);
        // Conversion: each raised limb sums its digit's rows, plus one for the quotient; the same for the division.
        let rows: usize =
            plan.layout.digits.iter().map(|digit| (digit.len() + 1) * (targets - digit.len())).sum();
        let conversions = rows + 2 * count * (removed + 1) * kept;
        let inner = 2 * count * plan.layout.digits.len() * targets;
        let limbs = 2 * input + 2 * count * kept;
        Self {
            products: n * (conversions + inner) as f64,
            bytes: (count * key_bytes) as f64 + 8.0 * n * limbs as f64,
            ..Self::transforms(log_n, transforms)
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            butterflies: self.butterflies + other.butterflies,
            products: self.products + other.products,
            bytes: self.bytes + other.bytes,
        }
    }
}
