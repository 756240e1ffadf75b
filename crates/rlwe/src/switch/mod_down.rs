//! ModDown: division with rounding by some of the primes of a residue system.

use alloc::vec::Vec;

use keywright_ring::backend::Quotient;
use keywright_ring::{Buffer, Evaluation, Poly, Scaled};

use crate::Parameters;
use crate::parallel::{for_each_item, groups};
use crate::planning::division::ModDown;

impl ModDown {
    /// The scaled residues of a remainder modulo removed prime `i` from its evaluations, which are left unspecified.
    pub(crate) fn scale(&self, parameters: &Parameters, i: usize, limb: &mut [u64], out: &mut [u64]) {
        let factor = self.conversion.decomposer().sources()[i].factor;
        parameters.ring().inverse_scaled(self.removed[i], limb, factor, out);
    }

    /// The remainder, given by its scaled residues, modulo the kept primes from `first` on, with transforms begun;
    /// [`keywright_ring::Ring::finish_limb`] ends them.
    pub(crate) fn begin(
        &self,
        parameters: &Parameters,
        first: usize,
        scaled: &Poly<Scaled>,
        outs: &mut [&mut [u64]],
    ) {
        let targets: Vec<_> = (first..first + outs.len()).map(|i| (i, self.conversion.column(i))).collect();
        let scaled: Vec<&[u64]> = scaled.limbs().collect();
        parameters.ring().convert_parts(self.conversion.decomposer(), &scaled, &targets, outs);
    }

    /// Divides polynomials whose limbs are those of the kept primes, then of the removed ones.
    pub fn divide(&self, parameters: &Parameters, dividends: &[&Poly<Evaluation>]) -> Vec<Poly<Evaluation>> {
        let n = parameters.n();
        let mut scaled: Vec<Poly<Scaled>> =
            dividends.iter().map(|_| Poly::unspecified(n, self.removed.len())).collect();
        let tasks: Vec<_> = scaled
            .iter_mut()
            .zip(dividends)
            .flat_map(|(scaled, poly)| scaled.limbs_mut().zip(poly.limbs().skip(self.kept)).enumerate())
            .collect();
        for_each_item(tasks, |_, (i, (residues, limb))| {
            let mut scratch = Buffer::unspecified(n);
            scratch.copy_from_slice(limb);
            self.scale(parameters, i, &mut scratch, residues);
        });
        let mut quotients: Vec<Poly<Evaluation>> =
            dividends.iter().map(|_| Poly::unspecified(n, self.kept)).collect();
        let tasks: Vec<_> = quotients
            .iter_mut()
            .zip(dividends)
            .zip(&scaled)
            .flat_map(|((out, poly), scaled)| {
                groups(out.limbs_mut().collect())
                    .into_iter()
                    .map(move |(first, outs)| (first, outs, poly, scaled))
            })
            .collect();
        for_each_item(tasks, |_, (first, outs, dividend, scaled): (usize, Vec<&mut [u64]>, &&Poly<_>, _)| {
            let mut scratch = Buffer::unspecified(outs.len() * n);
            let mut remainders: Vec<&mut [u64]> = scratch.chunks_exact_mut(n).collect();
            self.begin(parameters, first, scaled, &mut remainders);
            for ((i, out), remainder) in (first..).zip(outs).zip(remainders) {
                parameters.ring().finish_limb(i, remainder, [dividend.limb(i), out]);
                let quotient = Quotient {
                    dividend: dividend.limb(i),
                    remainder,
                    factor: self.factor(i),
                    addend: None,
                    addend_factor: None,
                };
                parameters.ring().backend().quotient(parameters.modulus(i), &quotient, out);
            }
        });
        quotients
    }
}
