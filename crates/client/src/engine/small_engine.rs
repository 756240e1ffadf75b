//! The negacyclic transform of a small machine: in place, with twiddle factors from two short tables.
//!
//! # Twiddle factors
//! The transform needs `psi^brv(i)` for `i < N`, where `brv` reverses `log2(N)` bits. With `i = 2^h u + v`, `v < 2^h`,
//! bit reversal gives `brv(i) = brv(v) N / 2^h + brv(u)` with the parts reversed at their own widths. So
//! `psi^brv(i) = (psi^(N/2^h))^brv(v) psi^brv(u)`: tables of `2^h` and `N/2^h` words, and one product for each of the
//! `N` factors in addition to the `N log2(N) / 2` butterflies.
//!
//! # Ranges
//! With the reduction's `b` ([`crate::reduction`]). Forward (Cooley-Tukey): words are below `2b` in and between layers.
//! The first operand is reduced below `b`, and the second times a factor is below `b`, so sum and difference are below
//! `2b`. Inverse (Gentleman-Sande): words are below `b` between layers. The sum, below `2b`, is reduced below `b`, and
//! the difference, below `2b`, times a factor is below `b`.

use keywright_frame::packing::Residue;
use keywright_ring::primes::{is_prime, primitive_root};
use keywright_ring::{MAX_LOG_N, MIN_LOG_N, Modulus, RingError, Seed, StreamId};

use crate::engine::{Engine, residue};
use crate::reduction::Reduction;
use crate::{ClientError, Word};

/// `h`: bits of the lower part of an index.
const LOW_BITS: u32 = 8;
const LOW: usize = 1 << LOW_BITS;
const HIGH: usize = 1 << (MAX_LOG_N - LOW_BITS);

/// `base^brv(i)` for every `i` of `log_n` bits, from two tables.
#[derive(Clone)]
struct Twiddles<F> {
    low: [F; LOW],
    high: [F; HIGH],
}

impl<F: Copy> Twiddles<F> {
    fn new<R: Reduction<Factor = F>>(r: &R, modulus: &Modulus, log_n: u32, base: u64) -> Self {
        let high_bits = log_n - LOW_BITS;
        let one = r.prepare(R::Word::from_u64(1));
        let mut tables = Self { low: [one; LOW], high: [one; HIGH] };
        let fill = |table: &mut [F], bits: u32, base: u64| {
            let mut power = 1;
            for i in 0..1usize << bits {
                let place = i.reverse_bits() >> (usize::BITS - bits);
                table[place] = r.prepare(R::Word::from_u64(power));
                power = modulus.mul(power, base);
            }
        };
        fill(&mut tables.low, LOW_BITS, modulus.pow(base, 1 << high_bits));
        fill(&mut tables.high, high_bits, base);
        tables
    }

    /// Factor `i`, prepared.
    #[inline(always)]
    fn at<R: Reduction<Factor = F>>(&self, r: &R, i: usize) -> F {
        r.compose(self.high[i >> LOW_BITS], self.low[i % LOW])
    }
}

/// The arithmetic of one prime in a few kilobytes, without allocation.
#[derive(Clone)]
pub struct SmallEngine<R: Reduction> {
    log_n: u32,
    modulus: Modulus,
    reduction: R,
    forward: Twiddles<R::Factor>,
    inverse: Twiddles<R::Factor>,
    /// `N^-1`, prepared.
    scale: R::Factor,
}

impl<R: Reduction> SmallEngine<R> {
    /// Prepares the transform of a prime.
    ///
    /// # Errors
    /// [`ClientError::Ring`] for a degree or a modulus that no ring has; [`ClientError::Range`] for a modulus that the
    /// reduction does not support.
    pub fn new(log_n: u32, modulus: u64) -> Result<Self, ClientError> {
        if !(MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
            return Err(RingError::Degree(log_n).into());
        }
        let m = Modulus::new(modulus)?;
        if !is_prime(modulus) {
            return Err(RingError::NotPrime(modulus).into());
        }
        let psi = primitive_root(&m, log_n)?;
        let reduction = R::new(modulus).ok_or(ClientError::Range {
            what: "modulus of this reduction",
            value: modulus,
            min: 3,
            max: (1 << R::BITS) - 1,
        })?;
        Ok(Self {
            log_n,
            reduction,
            forward: Twiddles::new(&reduction, &m, log_n, psi),
            inverse: Twiddles::new(&reduction, &m, log_n, m.inv(psi)),
            scale: reduction.prepare(R::Word::from_u64(m.inv(1 << log_n))),
            modulus: m,
        })
    }
}

impl<R: Reduction> SmallEngine<R> {
    /// `acc += a w` for a canonical `w`.
    pub(crate) fn mul_add_constant(&self, acc: &mut [R::Word], a: &[R::Word], w: R::Word) {
        let (r, w) = (&self.reduction, self.reduction.prepare(w));
        for (acc, &a) in acc.iter_mut().zip(a) {
            *acc = r.canonical(r.halve(r.sum(*acc, r.mul_lazy(a, w))));
        }
    }
}

impl<R: Reduction> Engine for SmallEngine<R> {
    type Word = R::Word;

    fn log_n(&self) -> u32 {
        self.log_n
    }

    fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    fn forward(&self, limb: &mut [R::Word]) {
        let r = &self.reduction;
        let n = limb.len();
        debug_assert_eq!(n, self.n());
        if r.forward(limb, |i| self.forward.at(r, i)) {
            return;
        }
        let mut blocks = 1;
        while blocks < n / 2 {
            for (i, block) in (blocks..).zip(limb.chunks_exact_mut(n / blocks)) {
                let w = self.forward.at(r, i);
                let (low, high) = block.split_at_mut(n / blocks / 2);
                for (x, y) in low.iter_mut().zip(high) {
                    let (a, b) = (r.halve(*x), r.mul_lazy(*y, w));
                    (*x, *y) = (r.sum(a, b), r.difference(a, b));
                }
            }
            blocks *= 2;
        }
        for (i, pair) in (blocks..).zip(limb.as_chunks_mut::<2>().0) {
            let w = self.forward.at(r, i);
            let (a, b) = (r.halve(pair[0]), r.mul_lazy(pair[1], w));
            *pair = [r.sum(a, b), r.difference(a, b)].map(|x| r.canonical(r.halve(x)));
        }
    }

    fn inverse(&self, limb: &mut [R::Word]) {
        let r = &self.reduction;
        let n = limb.len();
        debug_assert_eq!(n, self.n());
        let mut blocks = n / 2;
        while blocks > 1 {
            for (i, block) in (blocks..).zip(limb.chunks_exact_mut(n / blocks)) {
                let w = self.inverse.at(r, i);
                let (low, high) = block.split_at_mut(n / blocks / 2);
                for (x, y) in low.iter_mut().zip(high) {
                    let (a, b) = (*x, *y);
                    (*x, *y) = (r.halve(r.sum(a, b)), r.mul_lazy(r.difference(a, b), w));
                }
            }
            blocks /= 2;
        }
        // The last layer, with N^-1 in both factors.
        let w = r.compose(self.inverse.at(r, 1), self.scale);
        let (low, high) = limb.split_at_mut(n / 2);
        for (x, y) in low.iter_mut().zip(high) {
            let (a, b) = (*x, *y);
            *x = r.canonical(r.mul_lazy(r.sum(a, b), self.scale));
            *y = r.canonical(r.mul_lazy(r.difference(a, b), w));
        }
    }

    fn mul_add(&self, acc: &mut [R::Word], a: &[R::Word], b: &[R::Word]) {
        let r = &self.reduction;
        for ((acc, &a), &b) in acc.iter_mut().zip(a).zip(b) {
            *acc = r.canonical(r.halve(r.sum(*acc, r.mul_lazy(a, r.prepare(b)))));
        }
    }

    fn mul_sub(&self, acc: &mut [R::Word], a: &[R::Word], b: &[R::Word]) {
        let r = &self.reduction;
        for ((acc, &a), &b) in acc.iter_mut().zip(a).zip(b) {
            *acc = r.canonical(r.halve(r.difference(*acc, r.mul_lazy(a, r.prepare(b)))));
        }
    }

    fn lift(&self, values: &[i64], out: &mut [R::Word]) {
        let q = self.modulus.value();
        debug_assert!(values.iter().all(|v| v.unsigned_abs() < q));
        for (word, &value) in out.iter_mut().zip(values) {
            *word = R::Word::from_u64(residue(q, value));
        }
    }

    fn lift_add(&self, values: &[i64], acc: &mut [R::Word]) {
        let (q, r) = (self.modulus.value(), &self.reduction);
        for (word, &value) in acc.iter_mut().zip(values) {
            *word = r.canonical(r.sum(*word, R::Word::from_u64(residue(q, value))));
        }
    }

    fn uniform(&self, seed: &Seed, id: StreamId, start: usize, out: &mut [R::Word]) {
        R::Word::fill_uniform(seed, id, &self.modulus, start, out);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::engine::signed::Signed;
    use crate::reduction::Montgomery;

    /// Two layers at a time equal layer after layer; in a debug build no word overflows. The primes are the largest,
    /// the one with the largest bound in the module documentation, and small ones.
    #[test]
    fn signed_transform_is_the_transform() {
        for log_n in [10, 11, 12, 13] {
            let step = 2 << log_n;
            for below in [1u64 << 30, (1 << 30) / 9 * 8, 1 << 29, 1 << 20, 1 << 17] {
                let q = (1..).map(|k| below / step * step + 1 - k * step).find(|&q| is_prime(q)).unwrap();
                let engine = SmallEngine::<Montgomery<u32>>::new(log_n, q).unwrap();
                let signed = Signed::new(q as u32, engine.reduction.negated_inverse());
                let mut state = q;
                let mut random = || {
                    state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                    (state >> 33) % q
                };
                let extremes = [0, 1, q - 1, q / 2, q / 2 + 1];
                let inputs: [Vec<u32>; 3] = [
                    (0..engine.n()).map(|_| random() as u32).collect(),
                    (0..engine.n()).map(|_| extremes[(random() % 5) as usize] as u32).collect(),
                    (0..engine.n()).map(|_| (q - 1) as u32).collect(),
                ];
                for limb in inputs {
                    let (mut seen, mut expected) = (limb.clone(), limb);
                    engine.forward(&mut expected);
                    signed.forward(&mut seen, |i| engine.forward.at(&engine.reduction, i));
                    assert!(seen == expected, "N = 2^{log_n}, q = {q}");
                }
            }
        }
    }
}
