//! Key switching as a pipeline over target primes.
//!
//! For each target prime: every digit is converted to it and transformed while its limb is in cache, then multiplied
//! into both halves of every key that shares the decomposition. Primes to divide by come first; with their result at
//! hand each kept prime is finished in the same visit, and written once. Targets run in parallel; keys are read once.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::{Automorphism, Buffer, Evaluation, Poly};

use crate::parallel::{for_each_item, groups};
use crate::{Parameters, RlweCiphertext, RlweError, SwitchPlan, SwitchingKey};

/// A polynomial cut into digits, ready to be raised to any target: what hoisted switches share.
pub struct Decomposed<'c> {
    parameters: Parameters,
    plan: Arc<SwitchPlan>,
    /// The input (times `D`, when primes are merged) in evaluation form: a digit's residues modulo its own primes.
    own: Cow<'c, Poly<Evaluation>>,
    /// Conversion rows of each digit.
    rows: Vec<Buffer>,
}

/// The digits raised to one target prime.
pub struct RaisedDigits<'r> {
    /// Evaluation form, one per coarse digit.
    pub digits: Vec<&'r [u64]>,
    /// Index of the prime.
    pub prime: usize,
}

/// What happens to the result of one switch before it is written: `out = phi(switched + addend)`.
pub struct Finish<'f> {
    /// Addends of the two halves, modulo the ciphertext's own primes.
    pub addend: [Option<&'f Poly<Evaluation>>; 2],
    /// Automorphism `phi`.
    pub automorphism: Option<&'f Automorphism>,
}

impl<'c> Decomposed<'c> {
    /// Cuts `input`, at the plan's level, into the plan's digits.
    ///
    /// # Errors
    /// [`RlweError::Level`] if the input is not at the plan's level.
    pub fn new(parameters: &Parameters, plan: Arc<SwitchPlan>, input: &'c Poly<Evaluation>) -> Result<Self, RlweError> {
        if input.limb_count() != plan.level + 1 {
            return Err(RlweError::Level { level: input.limb_count() - 1, max: plan.level, object: "the switching plan" });
        }
        let (ring, n) = (parameters.ring(), parameters.n());
        let mut own = Cow::Borrowed(input);
        if let Some(factors) = &plan.input_factor {
            let limbs: Vec<_> = own.to_mut().limbs_mut().zip(factors).collect();
            for_each_item(limbs, |i, (limb, &w)| ring.backend().mul_scalar_assign(ring.modulus(i), limb, w));
        }
        let mut coefficients = Poly::<Evaluation>::unspecified(n, plan.level + 1);
        for_each_item(coefficients.limbs_mut().collect(), |i, limb: &mut [u64]| {
            limb.copy_from_slice(own.limb(i));
            ring.inverse_limb(i, limb);
        });
        let mut rows: Vec<Buffer> =
            plan.raise.iter().map(|c| Buffer::unspecified(n * c.decomposer().row_count())).collect();
        for_each_item(rows.iter_mut().collect(), |j, rows: &mut Buffer| {
            let limbs: Vec<&[u64]> = plan.digits[j].clone().map(|i| coefficients.limb(i)).collect();
            plan.raise[j].decomposer().rows(ring.backend(), &limbs, rows);
        });
        Ok(Self { parameters: parameters.clone(), plan, own, rows })
    }

    /// The plan it was cut by.
    pub fn plan(&self) -> &Arc<SwitchPlan> {
        &self.plan
    }

    /// Words of scratch that [`Self::raise`] needs for each target.
    pub fn scratch_words(&self) -> usize {
        self.plan.digits.len() * self.parameters.n()
    }

    /// All digits modulo each of the targets at `positions`, in evaluation form. The conversion rows of a digit come from
    /// memory once for all of them.
    pub fn raise<'r>(&'r self, positions: Range<usize>, scratch: &'r mut [u64]) -> Vec<RaisedDigits<'r>> {
        let (ring, n) = (self.parameters.ring(), self.parameters.n());
        let primes: Vec<usize> = positions.clone().map(|position| self.plan.target(position)).collect();
        let mut raised: Vec<_> = primes
            .iter()
            .map(|&prime| RaisedDigits { digits: Vec::with_capacity(self.plan.digits.len()), prime })
            .collect();
        let mut limbs = scratch.chunks_exact_mut(n);
        for (j, digit) in self.plan.digits.iter().enumerate() {
            let rows: Vec<&[u64]> = self.rows[j].chunks_exact(n).collect();
            let foreign: Vec<usize> = (0..primes.len()).filter(|&k| !digit.contains(&primes[k])).collect();
            let mut outs: Vec<&mut [u64]> = limbs.by_ref().take(foreign.len()).collect();
            let targets: Vec<_> = foreign
                .iter()
                .map(|&k| (primes[k], self.plan.raise[j].column(positions.start + k)))
                .collect();
            ring.convert_forward(&targets, &rows, &mut outs);
            let mut outs = outs.into_iter();
            for (k, target) in raised.iter_mut().enumerate() {
                let converted = if foreign.contains(&k) { outs.next() } else { None };
                target.digits.push(converted.map_or_else(|| self.own.limb(target.prime), |limb| &*limb));
            }
        }
        raised
    }

    /// Checks that a key can be multiplied with these digits, and says which digit each of its rows takes.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`]; [`RlweError::KeyUse`] if the key was made for another decomposition.
    pub fn rows_of(&self, key: &SwitchingKey, coalesce: usize) -> Result<Vec<usize>, RlweError> {
        self.parameters.require_same(key.parameters(), "the ciphertext", "the key")?;
        let rescale = self.plan.addend_lift.is_some();
        let plan = self.parameters.switch_plan(key.spec(), self.plan.level, coalesce, rescale)?;
        if !Arc::ptr_eq(&plan, &self.plan) && (plan.digits != self.plan.digits || plan.division.removed != self.plan.division.removed) {
            return Err(RlweError::KeyUse {
                element: key.spec().element,
                key_level: key.spec().level,
                alpha: key.spec().alpha,
                level: self.plan.level,
                coalesce,
                reason: "the ciphertext was decomposed with other digits or special primes",
            });
        }
        Ok(self.plan.rows(key))
    }

    /// `out_b, out_a = sum_j d_j (b_j, a_j)` modulo the target's prime.
    pub fn multiply(&self, raised: &RaisedDigits<'_>, key: &SwitchingKey, rows: &[usize], out_b: &mut [u64], out_a: &mut [u64]) {
        let ring = self.parameters.ring();
        let Some(position) = key.limb_position(raised.prime) else {
            unreachable!("rows_of checked that the key has all primes of the plan")
        };
        let digits: Vec<&[u64]> = rows.iter().map(|&j| raised.digits[j]).collect();
        let b: Vec<&[u64]> = (0..rows.len()).map(|row| key.b_limb(row, position)).collect();
        let a: Vec<_> = (0..rows.len()).map(|row| key.a_row(row, position, raised.prime)).collect();
        ring.backend().inner_product(ring.modulus(raised.prime), &digits, &b, &a, out_b, out_a);
    }

    /// Switches with several keys at once and finishes each result. `keys` are the key and the rows that
    /// [`Self::rows_of`] gave.
    pub fn switch(&self, keys: &[(&SwitchingKey, Vec<usize>)], finish: &[Finish<'_>]) -> Vec<RlweCiphertext> {
        assert_eq!(keys.len(), finish.len(), "one finish per key");
        let (ring, n, plan) = (self.parameters.ring(), self.parameters.n(), &*self.plan);
        let backend = ring.backend();
        let halves = 2 * keys.len();
        let division = &plan.division;
        let removed = division.removed.len();

        // The primes to divide by: both halves of every key, in coefficient form.
        let mut remainders: Vec<Poly<Evaluation>> = (0..halves).map(|_| Poly::unspecified(n, removed)).collect();
        for_each_item(groups(transpose(&mut remainders)), |_, (first, mut outs)| {
            let mut scratch = Buffer::unspecified(outs.len() * self.scratch_words());
            let start = division.kept + first;
            for (raised, limbs) in self.raise(start..start + outs.len(), &mut scratch).iter().zip(&mut outs) {
                let prime = raised.prime;
                for (((key, rows), finish), out) in keys.iter().zip(finish).zip(limbs.as_chunks_mut::<2>().0) {
                    let [out_b, out_a] = out;
                    self.multiply(raised, key, rows, out_b, out_a);
                    for (addend, out) in finish.addend.iter().zip([out_b, out_a]) {
                        // Only q_level, when rescaling: P D is zero modulo all other removed primes.
                        if let (Some(addend), Some(lift), true) = (addend, plan.addend_lift, prime == plan.level) {
                            backend.mul_scalar_add_assign(ring.modulus(prime), out, addend.limb(prime), lift);
                        }
                        ring.inverse_limb(prime, out);
                    }
                }
            }
        });
        let down_rows = division.rows(&self.parameters, &remainders);

        // The kept primes, each finished in one visit.
        let mut out: Vec<Poly<Evaluation>> = (0..halves).map(|_| Poly::unspecified(n, division.kept)).collect();
        for_each_item(groups(transpose(&mut out)), |_, (first, mut outs)| {
            let count = outs.len();
            let mut scratch = Buffer::unspecified(count * self.scratch_words());
            let raised = self.raise(first..first + count, &mut scratch);
            let mut work = Buffer::unspecified((3 * count + 1) * n);
            let (products, rest) = work.split_at_mut(2 * count * n);
            let (quotients, unpermuted) = rest.split_at_mut(count * n);
            for (k, ((key, rows), finish)) in keys.iter().zip(finish).enumerate() {
                for (raised, product) in raised.iter().zip(products.chunks_exact_mut(2 * n)) {
                    let (product_b, product_a) = product.split_at_mut(n);
                    self.multiply(raised, key, rows, product_b, product_a);
                }
                for half in 0..2 {
                    let mut converted: Vec<&mut [u64]> = quotients.chunks_exact_mut(n).collect();
                    division.convert(&self.parameters, first, &down_rows[2 * k + half], &mut converted);
                    for (position, limbs) in outs.iter_mut().enumerate() {
                        let (i, m) = (first + position, ring.modulus(first + position));
                        let product = &products[(2 * position + half) * n..][..n];
                        let out = &mut *limbs[2 * k + half];
                        let result = if finish.automorphism.is_some() { &mut *unpermuted } else { &mut *out };
                        division.finish(&self.parameters, i, product, &quotients[position * n..][..n], result);
                        match (finish.addend[half], &plan.addend_factor) {
                            (Some(addend), None) => backend.add_assign(m, result, addend.limb(i)),
                            (Some(addend), Some(w)) => backend.mul_scalar_add_assign(m, result, addend.limb(i), w[i]),
                            (None, _) => {}
                        }
                        if let Some(automorphism) = finish.automorphism {
                            backend.permute(automorphism, unpermuted, out);
                        }
                    }
                }
            }
        });
        let mut out = out.into_iter();
        core::iter::from_fn(|| Some(RlweCiphertext { polys: alloc::vec![out.next()?, out.next()?] })).collect()
    }
}

/// Limb `i` of every polynomial, for each `i`: what a task that owns one prime writes to.
fn transpose(polys: &mut [Poly<Evaluation>]) -> Vec<Vec<&mut [u64]>> {
    let count = polys.first().map_or(0, Poly::limb_count);
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    (0..count).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect()
}
