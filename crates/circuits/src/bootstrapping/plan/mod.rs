mod iterations;
mod key_groups;
mod operations;

pub use iterations::Iterations;
pub use key_groups::{KeyGroup, SwitchForm};
pub use operations::StageOperation;

use std::collections::BTreeSet;
use std::f64::consts::SQRT_2;

use keywright_ckks::{CkksError, CkksParameters};
use keywright_ring::rotation_element;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, Parameters};

use crate::CircuitError;
use crate::bootstrapping::keys::KeyDesign;
use crate::bootstrapping::reduction::range::integer_part_bound;
use crate::bootstrapping::reduction::sine::{MAX_DEGREE, SineApproximation};
use crate::bootstrapping::stage::{SCALE_DRIFT, Stage};
use crate::bootstrapping::stages::coeffs_to_slots::{CoeffsToSlotsPlan, Values};
use crate::bootstrapping::stages::eval_mod::EvalModPlan;
use crate::bootstrapping::stages::mod_raise::ModRaisePlan;
use crate::bootstrapping::stages::slots_to_coeffs::SlotsToCoeffsPlan;
use crate::bootstrapping::transforms::FactorPlan;
use crate::bootstrapping::transforms::dft::{Dft, Direction};
use crate::bootstrapping::transforms::{KeyBudget, worthwhile};

/// In which order the stages run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `slots_to_coeffs` at the lowest levels, then `mod_raise`, `coeffs_to_slots`, `eval_mod`. What the modulus is raised of has the values
    /// themselves in its coefficients.
    SlotsToCoeffsFirst,
    /// `mod_raise` of level 0, `coeffs_to_slots`, `eval_mod`, and `slots_to_coeffs` last, at the levels then left: the order of Cheon, Han, Kim, Kim and
    /// Song (Eurocrypt 2018). Real values have complex coefficients and cost as much as complex ones.
    ModRaiseFirst,
}

/// What a bootstrapping is to do: plain data, not yet checked.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapperLiteral {
    /// `log2` of the number of slots.
    pub log_slots: u32,
    /// What the slots hold, of absolute value at most 1 in each part.
    pub values: Values,
    /// In which order the stages run.
    pub order: Order,
    /// Levels of `slots_to_coeffs`: the matrices that the Fourier transform is factored into.
    pub slots_to_coeffs: usize,
    /// Levels of `coeffs_to_slots`.
    pub coeffs_to_slots: usize,
    /// Bytes that all keys may have: fewer take longer.
    pub budget: KeyBudget,
    /// Whether each stage is to be usable alone. Otherwise, for a full packing under an ephemeral secret, the switch back from it is one
    /// with the rotations of the first factor of `coeffs_to_slots`: less time, fewer bytes.
    pub stages_apart: bool,
    /// Digits and levels of the keys, with the stages apart; `None` for what makes the least work within the budget.
    pub keys: Option<KeyDesign>,
    /// Hamming weight of the ephemeral secret under which the modulus is raised; `None` raises it under the main one.
    pub ephemeral_weight: Option<usize>,
    /// `log2` of the probability that a bootstrap fails.
    pub log2_failure: f64,
    /// `log2` of the message ratio: `q_0` to the scale of the coefficients.
    pub log_ratio: f64,
    /// Even degree of the cosine that the reduction evaluates: see [`SineApproximation`].
    pub cosine_degree: usize,
    /// Double angles after it.
    pub double_angles: u32,
    /// Odd degree of the arcsine at its end; 1 for none.
    pub arcsine_degree: usize,
    /// Passes that correct what the first one leaves; `None` for a single pass.
    pub iterations: Option<Iterations>,
    /// Level of the result; `None` for the highest.
    pub output_level: Option<usize>,
}

impl BootstrapperLiteral {
    /// Refuses numbers by which something would be sized, or that nothing is defined for.
    ///
    /// # Errors
    /// As [`BootstrapperPlan::new`].
    fn require(&self, parameters: &CkksParameters) -> Result<(), CircuitError> {
        let (rlwe, max) = (parameters.rlwe(), parameters.max_log_slots());
        let (first, input_level) = match self.order {
            Order::SlotsToCoeffsFirst => (Stage::SlotsToCoeffs, self.slots_to_coeffs),
            Order::ModRaiseFirst => (Stage::ModRaise, 0),
        };
        if self.log_slots > max {
            return Err(first.error(input_level, CircuitError::LogSlots { log_slots: self.log_slots, max }));
        }
        for (stage, levels) in [
            (Stage::SlotsToCoeffs, self.slots_to_coeffs),
            (Stage::CoeffsToSlots, self.coeffs_to_slots),
            (Stage::EvalMod, self.double_angles as usize),
        ] {
            rlwe.require_level(levels).map_err(|error| stage.error(parameters.max_level(), error))?;
        }
        if !self.cosine_degree.is_multiple_of(2) {
            let (what, count) = ("degree of a cosine, even", self.cosine_degree);
            let error = CircuitError::Count { what, count, min: 2, max: MAX_DEGREE - 1 };
            return Err(Stage::EvalMod.error(parameters.max_level(), error));
        }
        let scale = rlwe.modulus(0).value() as f64 / self.log_ratio.exp2();
        if !(scale >= 1.0 && scale.is_finite()) {
            let (log_scale, log_q) = (scale.log2(), rlwe.log2_q(0));
            return Err(first.error(input_level, CkksError::Scale { log_scale, log_q, level: 0 }));
        }
        Ok(())
    }
}

/// How one factor of a transform is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactorSteps {
    /// Radix-2 layers of the Fourier transform that it merges.
    pub layers: u32,
    /// Its possible baby steps, 0 among them: [`FactorPlan::baby_steps`].
    pub baby_steps: usize,
}

/// What a bootstrapping does, stage by stage, before any key is made or diagonal encoded. Plain data.
///
/// Levels, from the top, of [`Order::SlotsToCoeffsFirst`]:
///
/// ```text
/// mod_raise            0 -> output level + depths of the stages below
/// coeffs_to_slots      one level for each factor
/// eval_mod             depth of the approximation
/// recombine            one level, for complex values of fewer than N/2 slots
///                      = output level
/// slots_to_coeffs      input level = its number of factors -> 0
/// ```
///
/// With [`Order::ModRaiseFirst`] the input level is 0, and `slots_to_coeffs` goes on from where `recombine` ends to the output level.
/// [`Iterations`] take no levels: the passes are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapperPlan {
    /// In which order the stages run.
    pub order: Order,
    /// Passes that correct what the first one leaves.
    pub iterations: Option<Iterations>,
    /// Digits and levels of the keys, if they are not chosen for the least work.
    pub keys: Option<KeyDesign>,
    /// Slots to coefficients.
    pub slots_to_coeffs: SlotsToCoeffsPlan,
    /// Level 0 to the highest level used.
    pub mod_raise: ModRaisePlan,
    /// Coefficients to slots.
    pub coeffs_to_slots: CoeffsToSlotsPlan,
    /// Reduction modulo `q_0`.
    pub eval_mod: EvalModPlan,
    /// Its relinearisation key.
    pub relinearization: KeySpec,
    /// Real and imaginary parts side by side to complex values: the diagonals 0 and `n` of `2n` slots.
    pub recombine: Option<FactorPlan>,
    /// Scale of the result, and of the input of `slots_to_coeffs`: that of the parameters.
    pub scale: f64,
    /// Scale of the coefficients of which the modulus is raised: `q_0` divided by the message ratio.
    pub coefficients_scale: f64,
}

impl BootstrapperPlan {
    /// Plans a bootstrapping.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] naming the stage that cannot be: keys that are not secure or whose special primes are too small, a
    /// message ratio and precision that no approximation has, too many slots. [`CircuitError::BootstrapLevels`] if the parameters have
    /// too few levels, or the result would be too low to be bootstrapped again. [`CircuitError::Count`] for iterations that one pass is not precise
    /// enough for. [`CircuitError::KeyBudget`].
    pub fn new(parameters: &CkksParameters, literal: &BootstrapperLiteral) -> Result<Self, CircuitError> {
        let (rlwe, log_slots) = (parameters.rlwe(), literal.log_slots);
        let (scale, q0) = (parameters.scale(), rlwe.modulus(0).value() as f64);
        // All factors share the budget: they are planned for speed first, and chosen anew at the end.
        let speed = KeyBudget::Fastest;
        let named = |stage: Stage, level| move |error| stage.error(level, error);
        let available = parameters.max_level();
        literal.require(parameters)?;
        let coefficients_scale = q0 / literal.log_ratio.exp2();

        let slots_to_coeffs = |level: usize, output_scale: f64| {
            Dft::balanced(log_slots, literal.slots_to_coeffs)
                .and_then(|dft| SlotsToCoeffsPlan::new(parameters, dft, level, scale, output_scale, speed))
                .map_err(named(Stage::SlotsToCoeffs, level))
        };
        let (first, input_level, after) = match literal.order {
            Order::SlotsToCoeffsFirst => {
                let level = literal.slots_to_coeffs;
                (Some(slots_to_coeffs(level, coefficients_scale)?), level, 0)
            }
            Order::ModRaiseFirst => (None, 0, literal.slots_to_coeffs),
        };

        if let Some(design) = literal.keys {
            let rotation = KeyElement::Galois(rotation_element(rlwe.log_n(), 1));
            let stage = if first.is_some() { Stage::SlotsToCoeffs } else { Stage::ModRaise };
            design.key(rlwe, rotation, input_level).map_err(|error| stage.error(input_level, error))?;
        }
        let weight = ModRaisePlan::new(rlwe, 0, literal.ephemeral_weight)
            .map_err(named(Stage::ModRaise, 0))?
            .weight(rlwe);
        // What coefficients_to_slots separates: real values in slots are complex ones in coefficients.
        let values = match literal.order {
            Order::SlotsToCoeffsFirst => literal.values,
            Order::ModRaiseFirst => Values::Complex,
        };
        // A coefficient is a mean of products of slots and roots of unity, so at most their largest absolute value.
        let largest = match (literal.order, literal.values) {
            (Order::ModRaiseFirst, Values::Complex) => SQRT_2,
            _ => 1.0,
        };
        let message = largest * (-literal.log_ratio).exp2() * (1.0 + SCALE_DRIFT);
        let log_coefficients = log_slots + u32::from(values == Values::Complex);
        let eval_mod = integer_part_bound(weight, log_coefficients, literal.log2_failure, message)
            .and_then(|k| {
                let (angles, arcsine) = (literal.double_angles, literal.arcsine_degree);
                SineApproximation::new(k, message, literal.cosine_degree, angles, arcsine)
            })
            .map(EvalModPlan::new)
            .map_err(named(Stage::EvalMod, 0))?;
        if let Some(iterations) = &literal.iterations {
            iterations.require(scale, eval_mod.approximation.bits())?;
        }

        let halves = values == Values::Complex && log_slots < parameters.max_log_slots();
        let needed = literal.coeffs_to_slots + eval_mod.depth() + usize::from(halves) + after;
        let output_level = literal.output_level.unwrap_or_else(|| available.saturating_sub(needed));
        if output_level < input_level || needed > available || output_level > available - needed {
            return Err(CircuitError::BootstrapLevels { needed, input_level, output_level, available });
        }
        let recombine_level = output_level + after + usize::from(halves);
        let eval_mod_level = recombine_level + eval_mod.depth();
        let top = eval_mod_level + literal.coeffs_to_slots;

        let mod_raise =
            ModRaisePlan::new(rlwe, top, literal.ephemeral_weight).map_err(named(Stage::ModRaise, 0))?;
        let apart = literal.stages_apart || literal.keys.is_some();
        let raise = mod_raise.encapsulation.as_ref().filter(|_| !apart);
        let factor = 1.0 / eval_mod.approximation.half_width();
        let mut coeffs_to_slots = Dft::balanced(log_slots, literal.coeffs_to_slots)
            .and_then(|dft| {
                let scale = eval_mod.input_scale(rlwe, eval_mod_level)?;
                CoeffsToSlotsPlan::new(parameters, dft, values, top, q0, factor, scale, speed, raise)
            })
            .map_err(named(Stage::CoeffsToSlots, top))?;
        let relinearization = match literal.keys {
            None => eval_mod.key_spec(rlwe, eval_mod_level),
            Some(design) => {
                design.key(rlwe, KeyElement::Relinearization, eval_mod_level).map_err(CircuitError::from)
            }
        };
        let relinearization = relinearization.map_err(named(Stage::EvalMod, eval_mod_level))?;
        if let Some(design) = literal.keys {
            let at = |element, level| {
                design
                    .quiet_key(rlwe, element, level)
                    .map_err(|error| Stage::CoeffsToSlots.error(level, error))
            };
            for key in &mut coeffs_to_slots.trace {
                *key = at(key.element, top)?;
            }
            let element = coeffs_to_slots.conjugation.element;
            coeffs_to_slots.conjugation = at(element, coeffs_to_slots.output_level())?;
        }
        let recombine = halves
            .then(|| {
                let ways = FactorPlan::ways(
                    parameters,
                    [0, 1 << log_slots],
                    log_slots + 1,
                    recombine_level,
                    literal.keys,
                )?;
                Ok(speed.choose(0, vec![ways])?.1.pop())
            })
            .transpose()
            .map_err(named(Stage::Recombine, recombine_level))?
            .flatten();
        let slots_to_coeffs = match first {
            Some(plan) => plan,
            None => slots_to_coeffs(output_level + after, scale)?,
        };
        let plan = Self {
            order: literal.order,
            iterations: literal.iterations,
            keys: literal.keys,
            slots_to_coeffs,
            mod_raise,
            coeffs_to_slots,
            eval_mod,
            relinearization,
            recombine,
            scale,
            coefficients_scale,
        };
        plan.within(parameters, literal.budget)
    }

    /// The ways to evaluate each factor of the transforms, by ascending [`FactorPlan::key_bytes`] and descending [`FactorPlan::work`]:
    /// those of `slots_to_coeffs`, then those of `coeffs_to_slots`, in the order in which they are applied. What a key budget chooses
    /// from.
    ///
    /// # Errors
    /// As [`Self::new`], for a plan that was made for other parameters.
    pub fn factor_options(
        &self,
        parameters: &CkksParameters,
    ) -> Result<Vec<(Stage, Vec<FactorPlan>)>, CircuitError> {
        let ways = self.ways(parameters, &self.slots_to_coeffs.dft, &self.coeffs_to_slots.dft)?;
        Ok(ways.into_iter().enumerate().map(|(i, ways)| (self.stage_of(i), worthwhile(ways))).collect())
    }

    /// The stage of a factor, counted in the order of [`Self::factor_options`].
    fn stage_of(&self, factor: usize) -> Stage {
        if factor < self.slots_to_coeffs.factors.len() { Stage::SlotsToCoeffs } else { Stage::CoeffsToSlots }
    }

    /// The ways with other factorisations.
    fn ways(
        &self,
        parameters: &CkksParameters,
        to_coeffs: &Dft,
        to_slots: &Dft,
    ) -> Result<Vec<Vec<FactorPlan>>, CircuitError> {
        let (first, second) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let raise = self.mod_raise.encapsulation.as_ref().filter(|_| second.is_raised());
        let level = second.input_level();
        let lowest = first.input_level();
        let mut out = SlotsToCoeffsPlan::ways(parameters, to_coeffs, lowest, self.keys)
            .map_err(|error| Stage::SlotsToCoeffs.error(lowest, error))?;
        out.extend(
            CoeffsToSlotsPlan::ways(parameters, to_slots, second.values, level, raise, self.keys)
                .map_err(|error| Stage::CoeffsToSlots.error(level, error))?,
        );
        Ok(out)
    }

    /// The same with the factors that another budget makes the best ones.
    ///
    /// # Errors
    /// [`CircuitError::KeyBudget`] naming the fewest bytes there can be; as [`Self::new`], for a plan that was made for other parameters.
    pub fn with_key_budget(
        &self,
        parameters: &CkksParameters,
        budget: KeyBudget,
    ) -> Result<Self, CircuitError> {
        self.clone().within(parameters, budget)
    }

    /// How each factor of the transforms is evaluated, in the order of [`Self::factor_options`].
    pub fn factor_steps(&self) -> Vec<FactorSteps> {
        let (first, second) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let stage = |dft: &Dft, direction, factors: &[FactorPlan]| {
            let layers = dft.order(direction).into_iter().map(|factor| dft.layers()[factor]);
            let steps = layers.zip(factors).map(|(layers, plan)| (layers, plan.baby_steps()));
            steps.map(|(layers, baby_steps)| FactorSteps { layers, baby_steps }).collect::<Vec<_>>()
        };
        let mut out = stage(&first.dft, Direction::Forward, &first.factors);
        out.extend(stage(&second.dft, Direction::Inverse, &second.factors));
        out
    }

    /// For each factor, in the order of [`Self::factor_options`], every number of baby steps, all of which are rotations of its input:
    /// what a key planner chooses from, which decides how they are made.
    ///
    /// # Errors
    /// As [`Self::new`], for a plan that was made for other parameters.
    pub fn factor_ways(
        &self,
        parameters: &CkksParameters,
    ) -> Result<Vec<(Stage, Vec<FactorPlan>)>, CircuitError> {
        let ways = self.ways(parameters, &self.slots_to_coeffs.dft, &self.coeffs_to_slots.dft)?;
        let of = |(i, ways)| (self.stage_of(i), FactorPlan::by_baby_steps(ways).into_values().collect());
        Ok(ways.into_iter().enumerate().map(of).collect())
    }

    /// The same with its factors evaluated so, in the order of [`Self::factor_options`]: what a key planner chose.
    ///
    /// # Errors
    /// [`CircuitError::Count`] for another number of factors, or of baby steps than any of [`Self::factor_ways`] has;
    /// [`CircuitError::DftLayers`].
    pub fn with_factors(
        &self,
        parameters: &CkksParameters,
        steps: &[FactorSteps],
    ) -> Result<Self, CircuitError> {
        let (first, second) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let (before, after) = (first.dft.depth(), second.dft.depth());
        if steps.len() != before + after {
            let (count, bound) = (steps.len(), before + after);
            return Err(CircuitError::Count { what: "factors", count, min: bound, max: bound });
        }
        let dft = |dft: &Dft, direction, steps: &[FactorSteps]| {
            let mut layers = vec![0; steps.len()];
            for (place, step) in dft.order(direction).into_iter().zip(steps) {
                layers[place] = step.layers;
            }
            Dft::new(dft.log_slots(), &layers)
        };
        let (to_coeffs, to_slots) = steps.split_at(before);
        let to_coeffs = dft(&first.dft, Direction::Forward, to_coeffs)?;
        let to_slots = dft(&second.dft, Direction::Inverse, to_slots)?;
        let ways = self.ways(parameters, &to_coeffs, &to_slots)?;
        let mut factors = Vec::with_capacity(steps.len());
        for (ways, &FactorSteps { baby_steps: count, .. }) in ways.into_iter().zip(steps) {
            let mut ways = FactorPlan::by_baby_steps(ways);
            let max = ways.keys().last().copied().unwrap_or(1);
            let what = "baby steps of a factor";
            factors.push(ways.remove(&count).ok_or(CircuitError::Count { what, count, min: 1, max })?);
        }
        let mut plan = self.clone();
        plan.coeffs_to_slots.factors = factors.split_off(before);
        plan.slots_to_coeffs.factors = factors;
        (plan.slots_to_coeffs.dft, plan.coeffs_to_slots.dft) = (to_coeffs, to_slots);
        Ok(plan)
    }

    /// The same with other ways to evaluate its factors, of least work with keys of that budget, and layers of `coeffs_to_slots` moved
    /// between factors: those at low levels, and one that is one with raising the modulus, have cheaper rotations.
    fn within(mut self, parameters: &CkksParameters, budget: KeyBudget) -> Result<Self, CircuitError> {
        let (rlwe, dft) = (parameters.rlwe(), &self.coeffs_to_slots.dft);
        // From the same one whatever budget there was before.
        let dfts = Dft::balanced(dft.log_slots(), dft.depth())?.neighbours();
        let stage = &self.coeffs_to_slots;
        let recombine = self.recombine.iter().flat_map(|factor| &factor.keys);
        let single = [&stage.conjugation, &self.relinearization];
        let others = stage.trace.iter().chain(single).chain(recombine).cloned();
        // The switch back is the first baby step of a factor that is raised, and counted there.
        let raise = self.mod_raise.key_specs().into_iter().filter(|key| !stage.is_raised() || key.level == 0);
        let fixed = others.chain(raise).map(|key| key.bytes(rlwe)).sum::<Result<usize, _>>()?;
        let mut best: Option<(f64, Dft, Vec<FactorPlan>)> = None;
        let mut refused = CircuitError::Empty("the list of factorisations");
        let mut minimum = usize::MAX;
        for dft in dfts {
            match budget.choose(fixed, self.ways(parameters, &self.slots_to_coeffs.dft, &dft)?) {
                Ok((work, factors)) if best.as_ref().is_none_or(|(least, ..)| work < *least) => {
                    best = Some((work, dft, factors));
                }
                Ok(_) => {}
                Err(CircuitError::KeyBudget { budget, minimum: fewest }) => {
                    minimum = minimum.min(fewest);
                    refused = CircuitError::KeyBudget { budget, minimum };
                }
                Err(error) => return Err(error),
            }
        }
        let Some((_, dft, mut factors)) = best else { return Err(refused) };
        self.coeffs_to_slots.factors =
            factors.split_off(self.slots_to_coeffs.factors.len().min(factors.len()));
        self.coeffs_to_slots.dft = dft;
        self.slots_to_coeffs.factors = factors;
        Ok(self)
    }

    /// Bytes of all keys in memory.
    ///
    /// # Errors
    /// As [`KeySpec::bytes`], for a plan that was made for other parameters.
    pub fn key_bytes(&self, rlwe: &Parameters) -> Result<usize, CircuitError> {
        Ok(self.required_keys().iter().map(|key| key.bytes(rlwe)).sum::<Result<_, _>>()?)
    }

    /// Level at which [`crate::bootstrapping::Bootstrapper::bootstrap`] takes ciphertexts; those above are taken at it.
    pub fn input_level(&self) -> usize {
        match self.order {
            Order::SlotsToCoeffsFirst => self.slots_to_coeffs.input_level(),
            Order::ModRaiseFirst => 0,
        }
    }

    /// Level of the result.
    pub fn output_level(&self) -> usize {
        match self.order {
            Order::SlotsToCoeffsFirst => self.slots_level(),
            Order::ModRaiseFirst => self.slots_to_coeffs.output_level(),
        }
    }

    /// Level of the result of [`crate::bootstrapping::Bootstrapper::bootstrap_coefficients`]: where `eval_mod` and `recombine` leave it.
    pub fn slots_level(&self) -> usize {
        let reduced = self.coeffs_to_slots.output_level() - self.eval_mod.depth();
        reduced - usize::from(self.recombine.is_some())
    }

    /// The stages in their order, each with the levels of its input and of its output.
    pub fn stage_levels(&self) -> Vec<(Stage, usize, usize)> {
        let (slots, to_coeffs) = (self.coeffs_to_slots.output_level(), &self.slots_to_coeffs);
        let last = self.recombine.as_ref().map(|factor| (Stage::Recombine, factor.level, factor.level - 1));
        let mut out = vec![
            (Stage::ModRaise, 0, self.mod_raise.level),
            (Stage::CoeffsToSlots, self.coeffs_to_slots.input_level(), slots),
            (Stage::EvalMod, slots, slots - self.eval_mod.depth()),
        ];
        out.extend(last);
        let position = if self.order == Order::SlotsToCoeffsFirst { 0 } else { out.len() };
        out.insert(position, (Stage::SlotsToCoeffs, to_coeffs.input_level(), to_coeffs.output_level()));
        out
    }

    /// Levels that can be computed on between two bootstraps.
    pub fn levels_left(&self) -> usize {
        self.output_level() - self.input_level()
    }

    /// `q_0` to the scale of the coefficients.
    pub fn ratio(&self) -> f64 {
        self.coeffs_to_slots.input_scale / self.coefficients_scale
    }

    /// Every key, with the stage that it is for, in the order of the stages.
    pub fn stage_keys(&self) -> Vec<(Stage, KeySpec)> {
        let keys = |stage| match stage {
            Stage::SlotsToCoeffs => self.slots_to_coeffs.required_keys(),
            Stage::ModRaise => self.mod_raise.key_specs(),
            Stage::CoeffsToSlots => self.coeffs_to_slots.required_keys(),
            Stage::EvalMod => vec![self.relinearization.clone()],
            Stage::Recombine => self.recombine.iter().flat_map(|factor| factor.keys.clone()).collect(),
        };
        let stages = self.stage_levels().into_iter().map(|(stage, _, _)| stage);
        stages.flat_map(|stage| keys(stage).into_iter().map(move |spec| (stage, spec))).collect()
    }

    /// Every key that the bootstrapping uses, each once, at the level at which it is used.
    pub fn required_keys(&self) -> Vec<KeySpec> {
        let mut seen = BTreeSet::new();
        let specs = self.stage_keys().into_iter().map(|(_, spec)| spec);
        specs
            .filter(|spec| seen.insert((spec.element, spec.level, spec.alpha, spec.special.clone())))
            .collect()
    }

    /// Makes the [`Self::required_keys`] and adds them to a set.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says, mixed parameters.
    pub fn generate_keys(
        &self,
        generator: &mut KeyGenerator<'_>,
        keys: &mut EvaluationKeys,
    ) -> Result<(), CircuitError> {
        for key in generator.switching_keys(&self.required_keys())? {
            keys.insert(key?)?;
        }
        Ok(())
    }

    /// Refuses a key set that lacks a key, before anything is computed. One with routes has all keys of these; whether they are for this
    /// bootstrapping shows at its steps.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with the stage and level of the first missing key, or of the first that there is over other special
    /// primes than the diagonals that it is for.
    pub fn require_keys(&self, keys: &EvaluationKeys) -> Result<(), CircuitError> {
        let factors = self.slots_to_coeffs.factors.iter().chain(&self.coeffs_to_slots.factors);
        let encoded: Vec<&KeySpec> = factors
            .chain(&self.recombine)
            .flat_map(|factor| factor.keys.iter().filter(|key| key.special == factor.special))
            .collect();
        for (stage, spec) in self.stage_keys() {
            let (element, level) = (spec.element, spec.level);
            let planned = matches!(element, KeyElement::Galois(_) | KeyElement::Relinearization);
            if planned && keys.routes().is_some() {
                continue;
            }
            keys.best(element, level, false).map_err(|error| stage.error(level, error))?;
            let removed: Vec<_> =
                keys.uses(element, level, false).map(|found| found.plan.mod_down.removed.clone()).collect();
            if encoded.contains(&&spec) && !removed.contains(&spec.special) {
                let (encoded, found) = (spec.special, format!("{element} over {removed:?}"));
                return Err(stage.error(level, CircuitError::SpecialPrimes { encoded, level, found }));
            }
        }
        Ok(())
    }
}
