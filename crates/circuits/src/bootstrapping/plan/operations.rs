//! The operations of a bootstrapping that take time, except for the key switches of [`super::keys::groups`].

use super::bootstrapper_plan::BootstrapperPlan;
use super::literal::Order;
use crate::Arithmetic;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::stages::coeffs_to_slots::Values;
use crate::bootstrapping::transforms::FactorPlan;

/// The work of a stage at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageOperation {
    /// The place.
    pub stage: Stage,
    /// Level of its input.
    pub level: usize,
    /// Number of special primes, for keys that a plan does not choose.
    pub special: Option<usize>,
    /// The operation.
    pub arithmetic: Arithmetic,
    /// The count, for one bootstrapping.
    pub count: usize,
}

impl BootstrapperPlan {
    /// The operations of one [`crate::bootstrapping::Bootstrapper::bootstrap`], or of one
    /// [`bootstrap_pair`](crate::bootstrapping::Bootstrapper::bootstrap_pair) by a plan of [`Values::Pair`], in the
    /// order of the stages, with stored diagonals. They include switches to and from an ephemeral secret.
    pub fn operations(&self) -> Vec<StageOperation> {
        let passes = self.iterations.map_or(1, |iterations| iterations.count);
        let mut out = Vec::new();
        for (stage, level, _) in self.stage_levels() {
            let mut push = |level, special, arithmetic, count: usize| {
                out.push(StageOperation { stage, level, special, arithmetic, count: count * passes });
            };
            match stage {
                Stage::SlotsToCoeffs => {
                    if self.slots_to_coeffs.conjugation.is_some() {
                        push(level, None, Arithmetic { visits: 6, ..Arithmetic::unit() }, 1);
                    }
                    self.slots_to_coeffs.factors.iter().for_each(|factor| transform(factor, &mut push));
                }
                Stage::ModRaise => self.raising(&mut push),
                Stage::CoeffsToSlots => {
                    let plan = &self.coeffs_to_slots;
                    if !plan.trace.is_empty() {
                        push(level, None, Arithmetic::visits(2), plan.trace.len());
                    }
                    plan.factors.iter().for_each(|factor| transform(factor, &mut push));
                    push(plan.output_level(), None, Arithmetic::visits(2), plan.ciphertexts());
                    if plan.ciphertexts() == 2 {
                        push(plan.output_level(), None, Arithmetic::unit(), 1);
                    }
                }
                Stage::EvalMod => {
                    for (below, arithmetic) in self.eval_mod.arithmetic() {
                        push(level - below, None, arithmetic, self.coeffs_to_slots.ciphertexts());
                    }
                    if self.recombine.is_none() && self.coeffs_to_slots.values == Values::Complex {
                        let joined = level - self.eval_mod.depth();
                        push(joined, None, Arithmetic { visits: 2, ..Arithmetic::unit() }, 1);
                    }
                }
                Stage::Recombine => self.recombine.iter().for_each(|factor| transform(factor, &mut push)),
            }
        }
        self.correcting(passes, &mut out);
        out
    }

    /// The third stage, `coeffs_to_slots`.
    fn raising(&self, push: &mut impl FnMut(usize, Option<usize>, Arithmetic, usize)) {
        let level = self.mod_raise.level;
        let raised = |raised| Arithmetic { raised, ..Arithmetic::default() };
        match &self.mod_raise.ephemeral {
            None => {
                if let Some(up) = &self.mod_raise.up {
                    push(0, Some(up.special.len()), Arithmetic::switch(), 1);
                }
                push(level, None, raised(2), 1);
            }
            Some(keys) => {
                push(0, Some(keys.to_sparse.special.len()), Arithmetic::switch(), 1);
                if !self.coeffs_to_slots.is_raised() {
                    push(level, None, raised(1), 1);
                    push(level, Some(keys.to_dense.special.len()), Arithmetic::switch(), 1);
                }
            }
        }
    }

    /// The operations between passes: the difference, the way back and the sum.
    fn correcting(&self, passes: usize, out: &mut Vec<StageOperation>) {
        let (stage, count) = (Stage::Recombine, passes - 1);
        if count == 0 {
            return;
        }
        let mut push = |level, arithmetic| {
            out.push(StageOperation { stage, level, special: None, arithmetic, count });
        };
        let (input, output) = (self.input_level(), self.output_level());
        if self.coeffs_to_slots.values == Values::Real && self.order == Order::SlotsToCoeffsFirst {
            push(output, Arithmetic::visits(2));
        }
        push(input + 1, Arithmetic::sum(0, 1, false, false));
        push(input, Arithmetic::visits(4));
        push(output, Arithmetic::visits(2));
    }
}

impl FactorPlan {
    /// The operations of one evaluation except for the key switches of [`Self::key_groups`], and the number of special
    /// primes of its own keys if it is fused with ModRaise.
    pub fn operation(&self) -> (Option<usize>, Arithmetic) {
        match self.raised {
            Some(_) => (Some(self.special.len()), self.bsgs.raised_arithmetic()),
            None => (None, self.bsgs.arithmetic()),
        }
    }
}

/// One factor.
fn transform(factor: &FactorPlan, push: &mut impl FnMut(usize, Option<usize>, Arithmetic, usize)) {
    let (special, arithmetic) = factor.operation();
    push(factor.level, special, arithmetic, 1);
}
