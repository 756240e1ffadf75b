//! ModUp: a polynomial cut into digits, and each digit converted to the other primes of `Q P`.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::{Buffer, Evaluation, Poly, Scaled};

use crate::parallel::for_each_item;
use crate::{Parameters, RlweError, SwitchPlan};

/// A polynomial cut into digits, ready for ModUp to any target prime: hoisted switches share it.
pub struct Decomposed<'c> {
    pub(super) parameters: Parameters,
    pub(super) plan: Arc<SwitchPlan>,
    /// The input (times `D`, when primes are merged) in evaluation form: a digit's residues modulo its own primes.
    own: Cow<'c, Poly<Evaluation>>,
    /// The scaled residues modulo every prime.
    residues: Poly<Scaled>,
}

/// A digit modulo one target prime.
pub(super) enum Limb<'r> {
    /// A prime of the digit itself.
    Own(&'r [u64]),
    /// Converted, with its transform begun.
    Converted(&'r mut [u64]),
}

impl Limb<'_> {
    pub(super) fn words(&self) -> &[u64] {
        match self {
            Self::Own(limb) => limb,
            Self::Converted(limb) => limb,
        }
    }
}

/// The digits converted to one target prime, with their transforms begun.
pub(super) struct ConvertedDigits<'r> {
    pub(super) prime: usize,
    pub(super) limbs: Vec<Limb<'r>>,
}

/// The digits after ModUp, modulo one target prime.
pub struct ModUpDigits<'r> {
    /// Evaluation form, one per coarse digit.
    pub digits: Vec<&'r [u64]>,
    /// Index of the prime.
    pub prime: usize,
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
        if input.limb_count() != plan.layout.input_level() + 1 {
            return Err(RlweError::Level {
                level: input.limb_count() - 1,
                max: plan.layout.input_level(),
                object: "the switching plan",
            });
        }
        let (ring, n) = (parameters.ring(), parameters.n());
        let mut own = Cow::Borrowed(input);
        if let Some(factors) = &plan.input_factor {
            let mut scaled = Poly::unspecified(n, input.limb_count());
            let limbs = scaled.limbs_mut().zip(input.limbs()).zip(factors).collect();
            for_each_item(limbs, |i, ((out, limb), &w): ((&mut [u64], &[u64]), _)| {
                out.copy_from_slice(limb);
                ring.backend().mul_scalar_assign(ring.modulus(i), out, w);
            });
            own = Cow::Owned(scaled);
        }
        let mut residues = Poly::unspecified(n, plan.layout.input_level() + 1);
        let sources = plan.mod_up.iter().flat_map(|conversion| conversion.decomposer().sources());
        for_each_item(residues.limbs_mut().zip(sources).collect(), |i, (out, source)| {
            let mut limb = Buffer::unspecified(n);
            limb.copy_from_slice(own.limb(i));
            ring.inverse_scaled(i, &mut limb, source.factor, out);
        });
        Ok(Self { parameters: parameters.clone(), plan, own, residues })
    }

    /// The plan of its digits.
    pub fn plan(&self) -> &Arc<SwitchPlan> {
        &self.plan
    }

    /// Words of scratch that [`Self::mod_up`] needs for each target.
    pub fn scratch_words(&self) -> usize {
        self.plan.layout.digits.len() * self.parameters.n()
    }

    /// All digits modulo each of the targets at `positions`, in evaluation form.
    pub fn mod_up<'r>(&'r self, positions: Range<usize>, scratch: &'r mut [u64]) -> Vec<ModUpDigits<'r>> {
        let ring = self.parameters.ring();
        self.begin(positions, scratch)
            .into_iter()
            .map(|target| {
                let digits = target.limbs.into_iter().map(|limb| match limb {
                    Limb::Own(limb) => limb,
                    Limb::Converted(limb) => {
                        ring.finish_limb(target.prime, limb, [&[]; 2]);
                        limb
                    }
                });
                ModUpDigits { digits: digits.collect(), prime: target.prime }
            })
            .collect()
    }

    /// Converts all digits to each of the targets at `positions` and begins their transforms. Reads the scaled residues
    /// of a digit from memory once for all targets.
    pub(super) fn begin<'r>(
        &'r self,
        positions: Range<usize>,
        scratch: &'r mut [u64],
    ) -> Vec<ConvertedDigits<'r>> {
        let (ring, n) = (self.parameters.ring(), self.parameters.n());
        let mut begun: Vec<_> = positions
            .clone()
            .map(|position| ConvertedDigits {
                prime: self.plan.target(position),
                limbs: Vec::with_capacity(self.plan.layout.digits.len()),
            })
            .collect();
        let mut free = scratch.chunks_exact_mut(n);
        for (j, digit) in self.plan.layout.digits.iter().enumerate() {
            let targets: Vec<_> = positions
                .clone()
                .zip(&begun)
                .filter(|(_, target)| !digit.contains(&target.prime))
                .map(|(position, target)| (target.prime, self.plan.mod_up[j].column(position)))
                .collect();
            let mut outs: Vec<&mut [u64]> = free.by_ref().take(targets.len()).collect();
            let residues: Vec<&[u64]> = digit.clone().map(|i| self.residues.limb(i)).collect();
            ring.convert_parts(self.plan.mod_up[j].decomposer(), &residues, &targets, &mut outs);
            let mut outs = outs.into_iter();
            for target in &mut begun {
                let converted = if digit.contains(&target.prime) { None } else { outs.next() };
                target
                    .limbs
                    .push(converted.map_or_else(|| Limb::Own(self.own.limb(target.prime)), Limb::Converted));
            }
        }
        begun
    }
}
