//! Division with rounding by some of the primes of a residue system.

use alloc::vec::Vec;

use keywright_ring::{Buffer, Conversion, Evaluation, Modulus, Poly, ShoupFactor};

use crate::Parameters;
use crate::parallel::{for_each_item, groups};

/// `x -> round(x / R)`, `R` the product of the removed primes, from the primes `0..kept` and the removed ones to `0..kept`.
///
/// The remainder `r = x mod R`, centred, is converted to the kept primes, and `(x - r) R^-1` is the result: off from `x / R`
/// by at most 1/2 in every coefficient (times `1 + 2^-12`, see [`keywright_ring::conversion`]).
#[derive(Debug)]
pub struct Division {
    /// Primes of the result: `0..kept`.
    pub kept: usize,
    /// Indices of the primes divided by.
    pub removed: Vec<usize>,
    conversion: Conversion,
    /// Per kept prime, `R^-1`.
    factor: Vec<ShoupFactor>,
}

impl Division {
    /// Precomputes the division by the primes `removed`.
    pub fn new(parameters: &Parameters, kept: usize, removed: Vec<usize>) -> Self {
        let sources: Vec<Modulus> = removed.iter().map(|&i| *parameters.modulus(i)).collect();
        let targets: Vec<Modulus> = (0..kept).map(|i| *parameters.modulus(i)).collect();
        let factor = targets.iter().map(|m| m.shoup(m.inv(parameters.product(&removed, m)))).collect();
        Self { kept, conversion: Conversion::new(&sources, &targets), factor, removed }
    }

    /// Conversion rows of a remainder.
    pub fn row_count(&self) -> usize {
        self.conversion.decomposer().row_count()
    }

    /// Index of the prime at a position: the kept primes, then the removed ones.
    pub fn prime(&self, position: usize) -> usize {
        if position < self.kept { position } else { self.removed[position - self.kept] }
    }

    /// Conversion rows of polynomials modulo the removed primes, whose limbs hold coefficients.
    pub(crate) fn rows(&self, parameters: &Parameters, remainders: &[Poly<Evaluation>]) -> Vec<Buffer> {
        let decomposer = self.conversion.decomposer();
        let mut rows: Vec<Buffer> =
            remainders.iter().map(|_| Buffer::unspecified(parameters.n() * decomposer.row_count())).collect();
        for_each_item(rows.iter_mut().zip(remainders).collect(), |_, (rows, remainder): (&mut Buffer, _)| {
            let limbs: Vec<&[u64]> = remainder.limbs().collect();
            decomposer.rows(parameters.ring().backend(), &limbs, rows);
        });
        rows
    }

    /// The remainder, given by its rows, modulo the kept primes from `first` on, in evaluation form.
    pub(crate) fn convert(
        &self,
        parameters: &Parameters,
        first: usize,
        rows: &Buffer,
        outs: &mut [&mut [u64]],
    ) {
        let rows: Vec<&[u64]> = rows.chunks_exact(parameters.n()).collect();
        let targets: Vec<_> = (first..first + outs.len()).map(|i| (i, self.conversion.column(i))).collect();
        parameters.ring().convert_forward(&targets, &rows, outs);
    }

    /// Limb `i` of the quotient from those of the dividend and of the remainder.
    pub(crate) fn finish(
        &self,
        parameters: &Parameters,
        i: usize,
        dividend: &[u64],
        remainder: &[u64],
        out: &mut [u64],
    ) {
        let ring = parameters.ring();
        ring.backend().sub_mul_scalar(ring.modulus(i), dividend, remainder, self.factor[i], out);
    }

    /// Divides polynomials whose limbs are those of the kept primes, then of the removed ones.
    pub fn divide(&self, parameters: &Parameters, dividends: &[&Poly<Evaluation>]) -> Vec<Poly<Evaluation>> {
        let (ring, n) = (parameters.ring(), parameters.n());
        let mut remainders: Vec<Poly<Evaluation>> =
            dividends.iter().map(|_| Poly::unspecified(n, self.removed.len())).collect();
        let tasks: Vec<_> = remainders
            .iter_mut()
            .zip(dividends)
            .flat_map(|(out, poly)| out.limbs_mut().zip(poly.limbs().skip(self.kept)).zip(&self.removed))
            .collect();
        for_each_item(tasks, |_, ((out, limb), &prime)| {
            out.copy_from_slice(limb);
            ring.inverse_limb(prime, out);
        });
        let rows = self.rows(parameters, &remainders);
        let mut quotients: Vec<Poly<Evaluation>> =
            dividends.iter().map(|_| Poly::unspecified(n, self.kept)).collect();
        let tasks: Vec<_> = quotients
            .iter_mut()
            .zip(dividends)
            .zip(&rows)
            .flat_map(|((out, poly), rows)| {
                groups(out.limbs_mut().collect())
                    .into_iter()
                    .map(move |(first, outs)| (first, outs, poly, rows))
            })
            .collect();
        for_each_item(tasks, |_, (first, outs, dividend, rows): (usize, Vec<&mut [u64]>, &&Poly<_>, _)| {
            let mut scratch = Buffer::unspecified(outs.len() * n);
            let mut remainders: Vec<&mut [u64]> = scratch.chunks_exact_mut(n).collect();
            self.convert(parameters, first, rows, &mut remainders);
            for ((i, out), remainder) in (first..).zip(outs).zip(remainders) {
                self.finish(parameters, i, dividend.limb(i), remainder, out);
            }
        });
        quotients
    }
}
