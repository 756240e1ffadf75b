//! The key switches of a bootstrapping that have more than one implementation: the input of a key planner.

use std::collections::BTreeMap;

use keywright_ring::rotation_element;
use keywright_rlwe::KeyElement;

use crate::bootstrapping::plan::bootstrapper_plan::BootstrapperPlan;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::stages::coeffs_to_slots::Values;
use crate::bootstrapping::transforms::FactorPlan;
use crate::linear_transform::GiantSteps;

/// How key switches share the division by the special primes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchForm {
    /// Each divides its result.
    Whole,
    /// Baby steps, whose results stay modulo `Q P`.
    Baby,
    /// A giant step: one half is divided before the switch, and the result stays modulo `Q P`.
    Giant,
}

impl SwitchForm {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Baby => "baby",
            Self::Giant => "giant",
        }
    }
}

/// Automorphisms of one ciphertext, or relinearizations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGroup {
    /// The place.
    pub stage: Stage,
    /// How they divide.
    pub form: SwitchForm,
    /// Level of the ciphertext.
    pub level: usize,
    /// The Galois elements required; empty for a relinearization.
    pub elements: Vec<u64>,
    /// The count, for one bootstrapping.
    pub count: usize,
}

impl BootstrapperPlan {
    /// The key switches of one [`crate::bootstrapping::Bootstrapper::bootstrap`], or of one
    /// [`bootstrap_pair`](crate::bootstrapping::Bootstrapper::bootstrap_pair) by a plan of [`Values::Pair`], in a ring
    /// of degree `2^log_n`, in the order of the stages; those of `slots_to_coeffs` are in the ring of inputs. Switches
    /// to and from an ephemeral secret have a single implementation and are left out: [`Self::fixed_keys`].
    pub fn key_groups(&self, log_n: u32) -> Vec<KeyGroup> {
        let mut out = Vec::new();
        let passes = self.iterations.map_or(1, |iterations| iterations.count);
        for (stage, level, _) in self.stage_levels() {
            let form = SwitchForm::Whole;
            let group = |level, elements: Vec<u64>, count| KeyGroup { stage, form, level, elements, count };
            let part = |form, level, elements, count| KeyGroup { stage, form, level, elements, count };
            match stage {
                Stage::SlotsToCoeffs => {
                    let log_n = self.input_log_n.unwrap_or(log_n);
                    let joining = self.slots_to_coeffs.conjugation.iter().filter_map(galois);
                    out.extend(joining.map(|g| group(level, vec![g], passes)));
                    self.slots_to_coeffs
                        .factors
                        .iter()
                        .for_each(|f| factor(f, log_n, passes, &mut |f, l, e, c| out.push(part(f, l, e, c))));
                }
                Stage::ModRaise => {}
                Stage::CoeffsToSlots => {
                    let plan = &self.coeffs_to_slots;
                    let traced = plan.trace.iter().filter_map(galois).map(|g| group(level, vec![g], passes));
                    out.extend(traced);
                    plan.factors
                        .iter()
                        .for_each(|f| factor(f, log_n, passes, &mut |f, l, e, c| out.push(part(f, l, e, c))));
                    out.extend(
                        galois(&plan.conjugation).map(|g| group(plan.output_level(), vec![g], passes)),
                    );
                }
                Stage::EvalMod => {
                    let count = passes * self.coeffs_to_slots.ciphertexts();
                    out.extend(
                        self.eval_mod
                            .relinearizations()
                            .into_iter()
                            .map(|offset| group(level - offset, Vec::new(), count)),
                    );
                }
                Stage::Recombine => {
                    self.recombine
                        .iter()
                        .for_each(|f| factor(f, log_n, passes, &mut |f, l, e, c| out.push(part(f, l, e, c))));
                }
            }
        }
        if passes > 1 && self.coeffs_to_slots.values == Values::Real {
            // The real parts of the result of a pass.
            let (stage, level, elements) = (Stage::Recombine, self.output_level(), vec![(2u64 << log_n) - 1]);
            out.push(KeyGroup { stage, form: SwitchForm::Whole, level, elements, count: passes - 1 });
        }
        out
    }

    /// The same plan with the diagonals at each of these levels encoded for those special primes, for keys that follow
    /// routes. Key switches of a transform share one division if their keys divide by the primes of its diagonals. A
    /// factor that raises the modulus stays as it is.
    #[must_use]
    pub fn with_special_primes(mut self, special: &BTreeMap<usize, Vec<usize>>) -> Self {
        let factors = self.slots_to_coeffs.factors.iter_mut().chain(&mut self.coeffs_to_slots.factors);
        for factor in factors.chain(&mut self.recombine).filter(|factor| factor.raised.is_none()) {
            if let Some(primes) = special.get(&factor.level) {
                factor.special.clone_from(primes);
            }
        }
        self
    }
}

impl FactorPlan {
    /// The key switches of one evaluation, in a ring of degree `2^log_n`, as [`BootstrapperPlan::key_groups`] lists
    /// them: form, Galois elements and count.
    pub fn key_groups(&self, log_n: u32) -> Vec<(SwitchForm, Vec<u64>, usize)> {
        let mut out = Vec::new();
        factor(self, log_n, 1, &mut |form, _, elements, count| out.push((form, elements, count)));
        out
    }
}

fn galois(spec: &keywright_rlwe::KeySpec) -> Option<u64> {
    match spec.element {
        KeyElement::Galois(g) => Some(g),
        _ => None,
    }
}

/// The baby steps of a factor together, and each of its giant steps alone. A factor that raises the modulus has keys of
/// its own.
fn factor(
    plan: &FactorPlan,
    log_n: u32,
    passes: usize,
    push: &mut impl FnMut(SwitchForm, usize, Vec<u64>, usize),
) {
    let element = |steps: usize| rotation_element(log_n, steps as i64);
    let babies: Vec<u64> = plan.bsgs.babies.iter().filter(|&&step| step != 0).map(|&k| element(k)).collect();
    if plan.raised.is_none() && !babies.is_empty() {
        push(SwitchForm::Baby, plan.level, babies, passes);
    }
    let giant = if plan.raised.is_none() { SwitchForm::Giant } else { SwitchForm::Whole };
    match plan.bsgs.giant_steps {
        GiantSteps::Chain { step } => {
            let switches = plan.bsgs.giants.last().map_or(0, |last| last / step);
            if switches > 0 {
                push(giant, plan.level, vec![element(step)], passes * switches);
            }
        }
        GiantSteps::Separate => {
            let steps = plan.bsgs.giants.iter().filter(|&&step| step != 0);
            steps.for_each(|&step| push(giant, plan.level, vec![element(step)], passes));
        }
    }
}
