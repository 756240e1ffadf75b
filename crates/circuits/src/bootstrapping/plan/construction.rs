//! Builds a plan from a literal: levels from the top down, stage by stage.

use std::f64::consts::SQRT_2;

use keywright_ckks::CkksParameters;
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec, Parameters};

use super::bootstrapper_plan::{BootstrapperPlan, input_ring};
use super::literal::{BootstrapperLiteral, Order};
use crate::CircuitError;
use crate::bootstrapping::keys::quiet_key;
use crate::bootstrapping::mod_one::range::integer_part_bound;
use crate::bootstrapping::mod_one::sine::SineApproximation;
use crate::bootstrapping::stage::{SCALE_DRIFT, Stage};
use crate::bootstrapping::stages::coeffs_to_slots::{CoeffsToSlotsPlan, Values};
use crate::bootstrapping::stages::eval_mod::EvalModPlan;
use crate::bootstrapping::stages::mod_raise::ModRaisePlan;
use crate::bootstrapping::stages::slots_to_coeffs::SlotsToCoeffsPlan;
use crate::bootstrapping::transforms::{Dft, FactorPlan, KeyBudget};

/// All factors share the budget. They are planned for speed first, and chosen anew at the end.
const SPEED: KeyBudget = KeyBudget::Fastest;

impl BootstrapperPlan {
    /// Plans a bootstrapping.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with the stage that is impossible: keys that are not secure or whose special primes are
    /// too small, a message ratio and precision that no approximation has, too many slots.
    /// [`CircuitError::BootstrapLevels`] if the parameters have too few levels, or the result would be too low to be
    /// bootstrapped again. [`CircuitError::Count`] for iterations for which one pass is not precise enough.
    /// [`CircuitError::KeyBudget`].
    pub fn new(parameters: &CkksParameters, literal: &BootstrapperLiteral) -> Result<Self, CircuitError> {
        literal.require(parameters)?;
        let construction = Construction::new(parameters, literal)?;
        // The first transform does not depend on the other stages; the last one begins where they end.
        let first = match literal.order {
            Order::SlotsToCoeffsFirst => Some(construction.slots_to_coeffs(construction.input_level())?),
            Order::ModRaiseFirst => None,
        };
        construction.require_key_design()?;
        let eval_mod = construction.eval_mod()?;
        if let Some(iterations) = &literal.iterations {
            iterations.require(parameters.scale(), eval_mod.approximation.bits())?;
        }
        let levels = construction.levels(&eval_mod)?;
        let mod_raise = construction.mod_raise(levels.top)?;
        let mut coeffs_to_slots = construction.coeffs_to_slots(&levels, &eval_mod, &mod_raise)?;
        let relinearization = construction.relinearization(&levels, &eval_mod)?;
        construction.redesign_keys(&mut coeffs_to_slots)?;
        let recombine = construction.recombine(&levels)?;
        let slots_to_coeffs = match first {
            Some(plan) => plan,
            None => construction.slots_to_coeffs(levels.slots)?,
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
            scale: parameters.scale(),
            coefficients_scale: construction.coefficients_scale,
            input_log_n: construction.input.rlwe().as_subring(),
        };
        plan.within(parameters, literal.budget)
    }
}

/// The inputs to the stages of a plan.
struct Construction<'p> {
    parameters: &'p CkksParameters,
    /// The ring of inputs.
    input: &'p CkksParameters,
    literal: &'p BootstrapperLiteral,
    /// `q_0` divided by the message ratio.
    coefficients_scale: f64,
    /// The values that `coeffs_to_slots` separates: real values in slots are complex ones in coefficients.
    values: Values,
}

/// Levels after `mod_raise`.
struct Levels {
    /// The level of the raised modulus, where `coeffs_to_slots` begins.
    top: usize,
    /// The level of the input of `eval_mod`.
    eval_mod: usize,
    /// The level of its output, the input of `recombine` if there is one.
    reduced: usize,
    /// The level at which the values are in slots again: the result's, or that of the input of a final
    /// `slots_to_coeffs`.
    slots: usize,
}

impl<'p> Construction<'p> {
    fn new(parameters: &'p CkksParameters, literal: &'p BootstrapperLiteral) -> Result<Self, CircuitError> {
        let input = input_ring(parameters, literal.input_log_n)?;
        let coefficients_scale = parameters.rlwe().modulus(0).value() as f64 / literal.log_ratio.exp2();
        let values = match literal.order {
            Order::SlotsToCoeffsFirst => literal.values,
            Order::ModRaiseFirst => Values::Complex,
        };
        Ok(Self { parameters, input, literal, coefficients_scale, values })
    }

    fn rlwe(&self) -> &'p Parameters {
        self.parameters.rlwe()
    }

    fn input_level(&self) -> usize {
        match self.literal.order {
            Order::SlotsToCoeffsFirst => self.literal.slots_to_coeffs,
            Order::ModRaiseFirst => 0,
        }
    }

    /// Whether `eval_mod` leaves both parts side by side in one ciphertext, so that a transform must join them.
    fn has_halves(&self) -> bool {
        self.values == Values::Complex && self.literal.log_slots < self.parameters.max_log_slots()
    }

    fn slots_to_coeffs(&self, level: usize) -> Result<SlotsToCoeffsPlan, CircuitError> {
        let (literal, scale) = (self.literal, self.parameters.scale());
        let output_scale = match literal.order {
            Order::SlotsToCoeffsFirst => self.coefficients_scale,
            Order::ModRaiseFirst => scale,
        };
        let conjugation = match literal.values {
            Values::Pair => self.conjugation(self.input.rlwe(), level).map(Some),
            _ => Ok(None),
        };
        Dft::balanced(literal.log_slots, literal.slots_to_coeffs)
            .and_then(|dft| SlotsToCoeffsPlan::new(self.input, dft, level, scale, output_scale, SPEED))
            .and_then(|plan| Ok(SlotsToCoeffsPlan { conjugation: conjugation?, ..plan }))
            .map_err(|error| Stage::SlotsToCoeffs.error(level, error))
    }

    /// The key of a conjugation, by the literal's design if it has one.
    fn conjugation(&self, rlwe: &Parameters, level: usize) -> Result<KeySpec, CircuitError> {
        let element = KeyElement::Galois((2 << rlwe.log_n()) - 1);
        let key = match self.literal.keys {
            None => quiet_key(rlwe, element, level),
            Some(design) => design.quiet_key(rlwe, element, level),
        };
        Ok(key?)
    }

    /// Refuses a design that leaves some rotation of the input without a key.
    fn require_key_design(&self) -> Result<(), CircuitError> {
        let Some(design) = self.literal.keys else { return Ok(()) };
        let (rlwe, level) = (self.input.rlwe(), self.input_level());
        let stage = match self.literal.order {
            Order::SlotsToCoeffsFirst => Stage::SlotsToCoeffs,
            Order::ModRaiseFirst => Stage::ModRaise,
        };
        let rotation = KeyElement::Galois(rotation_element(rlwe.log_n(), 1));
        design.key(rlwe, rotation, level).map(drop).map_err(|error| stage.error(level, error))
    }

    fn mod_raise(&self, top: usize) -> Result<ModRaisePlan, CircuitError> {
        ModRaisePlan::from_ring(
            self.rlwe(),
            top,
            self.literal.ephemeral_weight,
            self.input.rlwe().as_subring(),
        )
        .map_err(|error| Stage::ModRaise.error(0, error))
    }

    /// The approximation for the messages, and for all integers except with the probability of failure.
    fn eval_mod(&self) -> Result<EvalModPlan, CircuitError> {
        let literal = self.literal;
        let weight = self.mod_raise(0)?.weight(self.rlwe());
        // A coefficient is a mean of products of slots and roots of unity, so at most their largest absolute value.
        let largest = match (literal.order, literal.values) {
            (Order::ModRaiseFirst, Values::Complex) => SQRT_2,
            _ => 1.0,
        };
        let message = largest * (-literal.log_ratio).exp2() * (1.0 + SCALE_DRIFT);
        let log_coefficients = literal.log_slots + u32::from(self.values != Values::Real);
        integer_part_bound(weight, log_coefficients, literal.log2_failure, message)
            .and_then(|k| {
                let (angles, arcsine) = (literal.double_angles, literal.arcsine_degree);
                SineApproximation::new(k, message, literal.cosine_degree, angles, arcsine)
            })
            .map(EvalModPlan::new)
            .map_err(|error| Stage::EvalMod.error(0, error))
    }

    /// The levels of all stages, from that of the result up.
    fn levels(&self, eval_mod: &EvalModPlan) -> Result<Levels, CircuitError> {
        let (literal, input_level, available) =
            (self.literal, self.input_level(), self.parameters.max_level());
        let halves = usize::from(self.has_halves());
        let after = match literal.order {
            Order::SlotsToCoeffsFirst => 0,
            Order::ModRaiseFirst => literal.slots_to_coeffs,
        };
        let needed = literal.coeffs_to_slots + eval_mod.depth() + halves + after;
        let output_level = literal.output_level.unwrap_or_else(|| available.saturating_sub(needed));
        if output_level < input_level || needed > available || output_level > available - needed {
            return Err(CircuitError::BootstrapLevels { needed, input_level, output_level, available });
        }
        let slots = output_level + after;
        let reduced = slots + halves;
        let eval_mod = reduced + eval_mod.depth();
        Ok(Levels { top: eval_mod + literal.coeffs_to_slots, eval_mod, reduced, slots })
    }

    fn coeffs_to_slots(
        &self,
        levels: &Levels,
        eval_mod: &EvalModPlan,
        mod_raise: &ModRaisePlan,
    ) -> Result<CoeffsToSlotsPlan, CircuitError> {
        let (literal, rlwe, level) = (self.literal, self.rlwe(), levels.top);
        let apart = literal.stages_apart || literal.keys.is_some();
        let raise = mod_raise.ephemeral.as_ref().filter(|_| !apart);
        let q0 = rlwe.modulus(0).value() as f64;
        let factor = 1.0 / eval_mod.approximation.half_width();
        Dft::balanced(literal.log_slots, literal.coeffs_to_slots)
            .and_then(|dft| {
                let scale = eval_mod.input_scale(rlwe, levels.eval_mod)?;
                CoeffsToSlotsPlan::new(
                    self.parameters,
                    dft,
                    self.values,
                    level,
                    q0,
                    factor,
                    scale,
                    SPEED,
                    raise,
                )
            })
            .map_err(|error| Stage::CoeffsToSlots.error(level, error))
    }

    fn relinearization(&self, levels: &Levels, eval_mod: &EvalModPlan) -> Result<KeySpec, CircuitError> {
        let (rlwe, level) = (self.rlwe(), levels.eval_mod);
        let key = match self.literal.keys {
            None => eval_mod.key_spec(rlwe, level),
            Some(design) => design.key(rlwe, KeyElement::Relinearization, level).map_err(CircuitError::from),
        };
        key.map_err(|error| Stage::EvalMod.error(level, error))
    }

    /// Keys of the trace and the conjugation by the literal's design, if it has one. The budget decides those of the
    /// factors later.
    fn redesign_keys(&self, coeffs_to_slots: &mut CoeffsToSlotsPlan) -> Result<(), CircuitError> {
        let Some(design) = self.literal.keys else { return Ok(()) };
        let (top, end) = (coeffs_to_slots.input_level(), coeffs_to_slots.output_level());
        let trace = coeffs_to_slots.trace.iter_mut().map(|key| (key, top));
        for (key, level) in trace.chain([(&mut coeffs_to_slots.conjugation, end)]) {
            *key = design
                .quiet_key(self.rlwe(), key.element, level)
                .map_err(|error| Stage::CoeffsToSlots.error(level, error))?;
        }
        Ok(())
    }

    /// Joins real and imaginary parts that lie side by side to complex values.
    fn recombine(&self, levels: &Levels) -> Result<Option<FactorPlan>, CircuitError> {
        if !self.has_halves() {
            return Ok(None);
        }
        let (log_slots, level, keys) = (self.literal.log_slots, levels.reduced, self.literal.keys);
        FactorPlan::ways(self.parameters, [0, 1 << log_slots], log_slots + 1, level, keys)
            .and_then(|ways| Ok(SPEED.choose(0, vec![ways])?.1.pop()))
            .map_err(|error| Stage::Recombine.error(level, error))
    }
}
