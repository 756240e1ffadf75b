//! Key switching as a pipeline over target primes.
//!
//! For each target prime: every digit is converted to it and transformed while its limb is in cache, then multiplied
//! into both halves of every key that shares the decomposition. Primes to divide by come first; with their result at
//! hand each kept prime is finished in the same visit, and written once. Targets run in parallel; keys are read once.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::backend::Quotient;
use keywright_ring::{Automorphism, Buffer, Domain, Evaluation, Poly, Rows};

use crate::parallel::{for_each_item, groups};
use crate::{KeyUse, Parameters, RlweCiphertext, RlweError, StoredKey, SwitchPlan, SwitchingKey};

/// A polynomial cut into digits, ready to be raised to any target: what hoisted switches share.
pub struct Decomposed<'c> {
    parameters: Parameters,
    plan: Arc<SwitchPlan>,
    /// The input (times `D`, when primes are merged) in evaluation form: a digit's residues modulo its own primes.
    own: Cow<'c, Poly<Evaluation>>,
    /// The conversion row of every prime.
    rows: Poly<Rows>,
}

/// A digit modulo one target prime.
enum Limb<'r> {
    /// A prime of the digit itself.
    Own(&'r [u64]),
    /// Converted, its transform begun.
    Begun(&'r mut [u64]),
}

impl Limb<'_> {
    fn words(&self) -> &[u64] {
        match self {
            Self::Own(limb) => limb,
            Self::Begun(limb) => limb,
        }
    }
}

/// The digits converted to one target prime, their transforms begun.
struct Begun<'r> {
    prime: usize,
    limbs: Vec<Limb<'r>>,
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
    /// Cuts `input`, at the plan's input level, into the plan's digits.
    ///
    /// # Errors
    /// [`RlweError::Level`] if the input is not at the plan's level.
    pub fn new(
        parameters: &Parameters,
        plan: Arc<SwitchPlan>,
        input: &'c Poly<Evaluation>,
    ) -> Result<Self, RlweError> {
        if input.limb_count() != plan.input_level + 1 {
            return Err(RlweError::Level {
                level: input.limb_count() - 1,
                max: plan.input_level,
                object: "the switching plan",
            });
        }
        let (ring, n) = (parameters.ring(), parameters.n());
        let mut own = Cow::Borrowed(input);
        if let Some(factors) = &plan.input_factor {
            let limbs: Vec<_> = own.to_mut().limbs_mut().zip(factors).collect();
            for_each_item(limbs, |i, (limb, &w)| ring.backend().mul_scalar_assign(ring.modulus(i), limb, w));
        }
        let mut rows = Poly::unspecified(n, plan.input_level + 1);
        let sources = plan.raise.iter().flat_map(|conversion| conversion.decomposer().sources());
        for_each_item(rows.limbs_mut().zip(sources).collect(), |i, (row, source)| {
            let mut limb = Buffer::unspecified(n);
            limb.copy_from_slice(own.limb(i));
            ring.inverse_row(i, &mut limb, source.factor, row);
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

    /// All digits modulo each of the targets at `positions`, in evaluation form.
    pub fn raise<'r>(&'r self, positions: Range<usize>, scratch: &'r mut [u64]) -> Vec<RaisedDigits<'r>> {
        let ring = self.parameters.ring();
        self.begin(positions, scratch)
            .into_iter()
            .map(|target| {
                let digits = target.limbs.into_iter().map(|limb| match limb {
                    Limb::Own(limb) => limb,
                    Limb::Begun(limb) => {
                        ring.finish_limb(target.prime, limb, [&[]; 2]);
                        limb
                    }
                });
                RaisedDigits { digits: digits.collect(), prime: target.prime }
            })
            .collect()
    }

    /// Converts all digits to each of the targets at `positions` and begins their transforms. The conversion rows of a
    /// digit come from memory once for all targets.
    fn begin<'r>(&'r self, positions: Range<usize>, scratch: &'r mut [u64]) -> Vec<Begun<'r>> {
        let (ring, n) = (self.parameters.ring(), self.parameters.n());
        let mut begun: Vec<_> = positions
            .clone()
            .map(|position| Begun {
                prime: self.plan.target(position),
                limbs: Vec::with_capacity(self.plan.digits.len()),
            })
            .collect();
        let mut free = scratch.chunks_exact_mut(n);
        for (j, digit) in self.plan.digits.iter().enumerate() {
            let targets: Vec<_> = positions
                .clone()
                .zip(&begun)
                .filter(|(_, target)| !digit.contains(&target.prime))
                .map(|(position, target)| (target.prime, self.plan.raise[j].column(position)))
                .collect();
            let mut outs: Vec<&mut [u64]> = free.by_ref().take(targets.len()).collect();
            let rows: Vec<&[u64]> = digit.clone().map(|i| self.rows.limb(i)).collect();
            ring.convert_parts(self.plan.raise[j].decomposer(), &rows, &targets, &mut outs);
            let mut outs = outs.into_iter();
            for target in &mut begun {
                let converted = if digit.contains(&target.prime) { None } else { outs.next() };
                target
                    .limbs
                    .push(converted.map_or_else(|| Limb::Own(self.own.limb(target.prime)), Limb::Begun));
            }
        }
        begun
    }

    /// The products of all keys modulo each of the targets at `positions`: `outs[target][2 k]` and `[2 k + 1]` for key
    /// `k`. Block by block: the digits' transforms are ended while the keys of the block come from memory, and the
    /// products are taken while the digits are in a near cache.
    fn products(
        &self,
        positions: Range<usize>,
        keys: &[(&SwitchingKey, Vec<usize>)],
        scratch: &mut [u64],
        outs: &mut [Vec<&mut [u64]>],
    ) {
        let ring = self.parameters.ring();
        for (mut target, outs) in self.begin(positions, scratch).into_iter().zip(outs) {
            let plan = ring.plan(target.prime);
            let size = ring.n() / plan.blocks();
            for block in 0..plan.blocks() {
                let words = block * size..(block + 1) * size;
                for (j, limb) in target.limbs.iter_mut().enumerate() {
                    if let Limb::Begun(limb) = limb {
                        let key_words = keys.first().and_then(|(key, rows)| {
                            let row = rows.iter().position(|&digit| digit == j)?;
                            Some(&key.b_limb(row, key.limb_position(target.prime)?)[words.clone()])
                        });
                        let (_, rest) = limb.split_at_mut(words.start);
                        let (now, rest) = rest.split_at_mut(size);
                        let next = &rest[..size.min(rest.len())];
                        plan.finish_block(block, now, [key_words.unwrap_or(&[]), next]);
                    }
                }
                let digits: Vec<&[u64]> =
                    target.limbs.iter().map(|limb| &limb.words()[words.clone()]).collect();
                for ((key, rows), out) in keys.iter().zip(outs.as_chunks_mut::<2>().0) {
                    let [out_b, out_a] = out;
                    let (out_b, out_a) = (&mut out_b[words.clone()], &mut out_a[words.clone()]);
                    self.multiply_words(&digits, target.prime, words.clone(), key, rows, out_b, out_a);
                }
            }
        }
    }

    /// Checks that a key can be multiplied with these digits, and says which digit each of its rows takes.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`]; [`RlweError::KeyUse`] if the key was made for another decomposition.
    pub fn rows_of(&self, key: &SwitchingKey, coalesce: usize) -> Result<Vec<usize>, RlweError> {
        self.parameters.require_same(key.parameters(), "the ciphertext", "the key")?;
        let rescale = self.plan.addend_lift.is_some();
        let plan = self.parameters.switch_plan(key.spec(), self.plan.level, coalesce, rescale)?;
        if !Arc::ptr_eq(&plan, &self.plan)
            && (plan.digits != self.plan.digits || plan.division.removed != self.plan.division.removed)
        {
            return Err(RlweError::KeyUse {
                element: key.spec().element,
                key_level: key.spec().level,
                alpha: key.spec().alpha,
                level: self.plan.level,
                coalesce,
                reason: "the ciphertext was decomposed with other digits or special primes",
            });
        }
        Ok(self.plan.rows(key.layout()))
    }

    /// `out_b, out_a = sum_j d_j (b_j, a_j)` modulo the target's prime.
    pub fn multiply(
        &self,
        raised: &RaisedDigits<'_>,
        key: &SwitchingKey,
        rows: &[usize],
        out_b: &mut [u64],
        out_a: &mut [u64],
    ) {
        self.multiply_words(&raised.digits, raised.prime, 0..self.parameters.n(), key, rows, out_b, out_a);
    }

    /// The same for some words of the limbs; `digits` and outputs are those words alone.
    fn multiply_words(
        &self,
        digits: &[&[u64]],
        prime: usize,
        words: Range<usize>,
        key: &SwitchingKey,
        rows: &[usize],
        out_b: &mut [u64],
        out_a: &mut [u64],
    ) {
        let ring = self.parameters.ring();
        let Some(position) = key.limb_position(prime) else {
            unreachable!("rows_of checked that the key has all primes of the plan")
        };
        let digits: Vec<&[u64]> = rows.iter().map(|&j| digits[j]).collect();
        let b: Vec<&[u64]> = (0..rows.len()).map(|row| &key.b_limb(row, position)[words.clone()]).collect();
        let a: Vec<_> = (0..rows.len()).map(|row| key.a_row(row, position, prime, words.clone())).collect();
        ring.backend().inner_product(ring.modulus(prime), &digits, &b, &a, out_b, out_a);
    }

    /// Switches with several keys at once and finishes each result. `keys` are the key and the rows that
    /// [`Self::rows_of`] gave.
    pub fn switch(&self, keys: &[(&SwitchingKey, Vec<usize>)], finish: &[Finish<'_>]) -> Vec<RlweCiphertext> {
        let (n, kept) = (self.parameters.n(), self.plan.division.kept);
        let mut out: Vec<Poly<Evaluation>> =
            (0..2 * keys.len()).map(|_| Poly::unspecified(n, kept)).collect();
        self.switch_into(keys, finish, transpose(&mut out));
        let mut out = out.into_iter();
        core::iter::from_fn(|| Some(RlweCiphertext { polys: alloc::vec![out.next()?, out.next()?] }))
            .collect()
    }

    /// [`Self::switch`] with keys of a set, as many at a time as can be in memory together: the digits are raised once for those of a time.
    ///
    /// # Errors
    /// As [`Self::rows_of`]; those of [`crate::KeySource::load`].
    pub fn switch_stored(
        &self,
        uses: &[&KeyUse],
        finish: &[Finish<'_>],
    ) -> Result<Vec<RlweCiphertext>, RlweError> {
        let mut out = Vec::with_capacity(uses.len());
        while out.len() < uses.len() {
            let left = &uses[out.len()..];
            let loaded = StoredKey::load_some(left.iter().map(|found| &found.key))?;
            let keys =
                left.iter().zip(&loaded).map(|(found, key)| Ok((&**key, self.rows_of(key, found.coalesce)?)));
            let keys = keys.collect::<Result<Vec<_>, RlweError>>()?;
            let finish = &finish[out.len()..out.len() + keys.len()];
            out.extend(self.switch(&keys, finish));
        }
        Ok(out)
    }

    /// [`Self::switch`] into given limbs: `outs[i][2 k]` and `[2 k + 1]` are the halves of result `k` modulo kept prime `i`.
    pub(crate) fn switch_into(
        &self,
        keys: &[(&SwitchingKey, Vec<usize>)],
        finish: &[Finish<'_>],
        outs: Vec<Vec<&mut [u64]>>,
    ) {
        assert_eq!(keys.len(), finish.len(), "one finish per key");
        assert_eq!(outs.len(), self.plan.division.kept, "limbs for every kept prime");
        let (ring, n, plan) = (self.parameters.ring(), self.parameters.n(), &*self.plan);
        let backend = ring.backend();
        let halves = 2 * keys.len();
        let division = &plan.division;
        let removed = division.removed.len();

        // The primes to divide by: both halves of every key, as rows.
        let mut remainder_rows: Vec<Poly<Rows>> =
            (0..halves).map(|_| Poly::unspecified(n, removed)).collect();
        for_each_item(groups(transpose(&mut remainder_rows)), |_, (first, rows)| {
            let count = rows.len();
            let mut scratch = Buffer::unspecified(count * (self.scratch_words() + halves * n));
            let (scratch, products) = scratch.split_at_mut(count * self.scratch_words());
            let mut products = limbs_of(products, n, halves);
            let start = division.kept + first;
            self.products(start..start + count, keys, scratch, &mut products);
            for ((i, limbs), rows) in (first..).zip(&mut products).zip(rows) {
                let prime = division.removed[i];
                for ((half, limb), row) in limbs.iter_mut().enumerate().zip(rows) {
                    // Only q_level, when rescaling: P D is zero modulo all other removed primes.
                    let addend = finish[half / 2].addend[half % 2];
                    if let (Some(addend), Some(lift), true) = (addend, plan.addend_lift, prime == plan.level)
                    {
                        backend.mul_scalar_add_assign(ring.modulus(prime), limb, addend.limb(prime), lift);
                    }
                    division.row(&self.parameters, i, limb, row);
                }
            }
        });

        // The kept primes, each finished in one visit.
        for_each_item(groups(outs), |_, (first, mut outs)| {
            let count = outs.len();
            let digits = count * self.scratch_words().max(n);
            let mut scratch = Buffer::unspecified(digits + (count * halves + 1) * n);
            let (scratch, rest) = scratch.split_at_mut(digits);
            let (products, near) = rest.split_at_mut(count * halves * n);
            let mut products = limbs_of(products, n, halves);
            self.products(first..first + count, keys, scratch, &mut products);
            for (half, rows) in remainder_rows.iter().enumerate() {
                let finish = &finish[half / 2];
                let addend = finish.addend[half % 2];
                // The digits are no longer needed.
                let mut remainders: Vec<&mut [u64]> = scratch.chunks_exact_mut(n).take(count).collect();
                division.begin(&self.parameters, first, rows, &mut remainders);
                for (((i, outs), products), remainder) in
                    (first..).zip(&mut outs).zip(&products).zip(remainders)
                {
                    ring.finish_limb(i, remainder, [&*products[half], &*outs[half]]);
                    let quotient = Quotient {
                        dividend: &*products[half],
                        remainder,
                        factor: division.factor(i),
                        addend: addend.map(|addend| addend.limb(i)),
                        addend_factor: plan.addend_factor.as_ref().map(|w| w[i]),
                    };
                    match finish.automorphism {
                        Some(automorphism) => {
                            // The permutation reads here and there: from a near cache.
                            backend.quotient(ring.modulus(i), &quotient, near);
                            backend.permute(automorphism, near, &mut *outs[half]);
                        }
                        None => backend.quotient(ring.modulus(i), &quotient, &mut *outs[half]),
                    }
                }
            }
        });
    }
}

/// Limb `i` of every polynomial, for each `i`: what a task that owns one prime writes to.
fn transpose<D: Domain>(polys: &mut [Poly<D>]) -> Vec<Vec<&mut [u64]>> {
    let count = polys.first().map_or(0, Poly::limb_count);
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    (0..count).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect()
}

/// Scratch words as lists of `count` limbs of `n` words.
fn limbs_of(words: &mut [u64], n: usize, count: usize) -> Vec<Vec<&mut [u64]>> {
    words.chunks_exact_mut(count * n).map(|limbs| limbs.chunks_exact_mut(n).collect()).collect()
}
