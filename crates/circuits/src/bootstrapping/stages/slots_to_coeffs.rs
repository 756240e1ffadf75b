//! Slots to coefficients: the homomorphic encoding.
//!
//! | | form | level | scale |
//! |---|---|---|---|
//! | input | values `z_j` in `n = 2^log_slots` slots | the plan's, or above | `S` |
//! | output | `Re z_j` in coefficient `brv(j) N/2n`, `Im z_j` in coefficient `N/2 + brv(j) N/2n`, 0 in the others; `brv` reverses `log_slots` bits | the plan's depth below the plan's level | `c S` |
//!
//! The matrix is `F B` of [`crate::bootstrapping::dft`], times `c`, the quotient of the output's scale and the input's.
//! Each of its `m` factors carries `c^(1/m)`. A plaintext whose slots are `F B z` has the complex coefficients `B z`,
//! so decoding its coefficients gives the values themselves.
//!
//! # Two ciphertexts at once
//! Two ciphertexts decrypt to `a = x + e` and `b = y + f`, with real values `x` and `y` and complex errors `e` and `f`.
//! Joined as `a + i b`, the real part would be `x + Re e - Im f`: a share of each error would pass to the other
//! value, and bounds would double with every bootstrap. One conjugation removes these shares:
//!
//! ```text
//! (a + i b) + conj(a - i b) = 2 Re a + 2 i Re b.
//! ```
//!
//! So the coefficients hold `x + Re e` and `y + Re f`, as those of two ciphertexts of real values would. Only the error
//! of the conjugation itself is new. Twice the values at scale `S` are the values at scale `2 S`, and the matrix is
//! that from scale `2 S` to `c S`. A ciphertext that comes alone is doubled.
//!
//! # Error
//! Deviations are root mean squares over the slots, see [`Spread::RootMeanSquare`](crate::linear_transform::Spread).
//! The factors are multiples of unitary matrices, `c^(1/m) 2^(l/2)` for `l` layers. In the last factor's output, slots
//! have `sqrt(n)` times the values' root mean square and errors, at scale `c S` read as coefficients:
//! `|F B z|^2 = n |z|^2`. A coefficient's error is that of a slot divided by `sqrt(2n)`, since two coefficients make
//! one complex number. So an error before the first factor counts in full, and an error after `l` layers is divided by
//! `2^(l/2)`: the first roundings dominate.

use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Evaluator, Packing};
use keywright_rlwe::KeySpec;

use super::encoded::encoded_stage;
use super::require_input;
use crate::CircuitError;
use crate::bootstrapping::keys::KeyDesign;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::transforms::FactorPlan;
use crate::bootstrapping::transforms::KeyBudget;
use crate::bootstrapping::transforms::Transforms;
use crate::bootstrapping::transforms::dft::{Dft, Direction};
use crate::linear_transform::{LinearTransform, Spread, Storage};

/// The plan of the stage, without diagonals and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotsToCoeffsPlan {
    /// Factorisation.
    pub dft: Dft,
    /// Factors in the order of application.
    pub factors: Vec<FactorPlan>,
    /// Scale of the input.
    pub input_scale: f64,
    /// Scale of the output, for an input at exactly [`Self::input_scale`].
    pub output_scale: f64,
    /// Key of the conjugation, at the input's level, if the stage takes two ciphertexts at once.
    pub conjugation: Option<KeySpec>,
}

impl SlotsToCoeffsPlan {
    /// Plans the stage for inputs at `level`: one level per factor, with a budget for the keys.
    ///
    /// # Errors
    /// [`CircuitError::LogSlots`]; [`CircuitError::Ckks`] for too low a level, scales that are not positive and finite,
    /// and impossible keys; [`CircuitError::KeyBudget`].
    pub fn new(
        parameters: &CkksParameters,
        dft: Dft,
        level: usize,
        input_scale: f64,
        output_scale: f64,
        budget: KeyBudget,
    ) -> Result<Self, CircuitError> {
        let (log_slots, max) = (dft.log_slots(), parameters.max_log_slots());
        if log_slots > max {
            return Err(CircuitError::LogSlots { log_slots, max });
        }
        let needed = dft.depth();
        if needed > level {
            let operation = Stage::SlotsToCoeffs.name();
            return Err(CkksError::LevelsExhausted { operation, needed, available: level }.into());
        }
        for scale in [input_scale, output_scale] {
            if !(scale >= 1.0 && scale.is_finite()) {
                let log_q = parameters.rlwe().log2_q(0);
                return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level: 0 }.into());
            }
        }
        let (_, factors) = budget.choose(0, Self::ways(parameters, &dft, level, None)?)?;
        Ok(Self { dft, factors, input_scale, output_scale, conjugation: None })
    }

    /// The ways to evaluate each factor, see [`FactorPlan::ways`].
    pub(crate) fn ways(
        parameters: &CkksParameters,
        dft: &Dft,
        level: usize,
        design: Option<KeyDesign>,
    ) -> Result<Vec<Vec<FactorPlan>>, CircuitError> {
        let factors = dft.order(Direction::Forward).into_iter().zip((0..=level).rev());
        factors
            .map(|(factor, level)| {
                FactorPlan::ways(parameters, dft.indices(factor), dft.log_slots(), level, design)
            })
            .collect()
    }

    /// Level of the input; ciphertexts above are lowered to it.
    pub fn input_level(&self) -> usize {
        self.factors[0].level
    }

    /// Level of the output.
    pub fn output_level(&self) -> usize {
        self.input_level() - self.factors.len()
    }

    /// Every key that the stage uses.
    pub fn required_keys(&self) -> Vec<KeySpec> {
        let factors = self.factors.iter().flat_map(|factor| factor.keys.iter());
        self.conjugation.iter().chain(factors).cloned().collect()
    }

    /// Scale of what the factors multiply.
    pub(crate) fn factored_scale(&self) -> f64 {
        if self.conjugation.is_some() { 2.0 * self.input_scale } else { self.input_scale }
    }

    /// The product of the factors by which the transforms multiply integers.
    pub(crate) fn constant(&self) -> f64 {
        self.output_scale / self.factored_scale()
    }
}

encoded_stage!(SlotsToCoeffs, SlotsToCoeffsPlan);

impl SlotsToCoeffs {
    /// Moves the values from slots to coefficients.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with: a packing of another number of slots, a level below the plan's, a scale that
    /// differs from the plan's by more than [`crate::bootstrapping::SCALE_DRIFT`], a missing key, mixed parameters.
    pub fn evaluate(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        let mut lowered = self.take(evaluator, input)?;
        if self.plan.conjugation.is_some() {
            let estimate = lowered.estimate;
            evaluator.of(&lowered)?.mul_integer_assign(&mut lowered, 2)?;
            // The same values.
            (lowered.scale, lowered.estimate) = (2.0 * lowered.scale, estimate);
        }
        self.coefficients(evaluator, lowered, input.estimate.magnitude)
    }

    /// Moves the real parts of two ciphertexts, whose absolute values are at most `magnitude`, to the real and the
    /// imaginary parts of coefficients.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and [`CkksError::ScaleMismatch`] for different scales; [`CircuitError::PairPlan`] for a
    /// plan without a conjugation.
    pub(crate) fn evaluate_pair(
        &self,
        evaluator: &Evaluator<'_>,
        inputs: [&Ciphertext; 2],
        magnitude: f64,
    ) -> Result<Ciphertext, CircuitError> {
        if self.plan.conjugation.is_none() {
            return Err(CircuitError::PairPlan);
        }
        let [first, second] = inputs.map(|input| self.take(evaluator, input));
        let (first, second) = (first?, second?);
        let low = evaluator.of(&first)?;
        let turned = low.multiply_by_i(&second)?;
        let mut joined = low.add(&first, &turned)?;
        low.add_assign(&mut joined, &low.conjugate(&low.sub(&first, &turned)?)?)?;
        // Twice the values at a scale are the values at twice the scale.
        joined.scale *= 2.0;
        joined.estimate.deviation /= 2.0;
        joined.estimate.magnitude = std::f64::consts::SQRT_2 * magnitude;
        self.coefficients(evaluator, joined, magnitude)
    }

    /// The transform of an input at the plan's level, as coefficients.
    fn coefficients(
        &self,
        evaluator: &Evaluator<'_>,
        input: Ciphertext,
        magnitude: f64,
    ) -> Result<Ciphertext, CircuitError> {
        let packing = input.packing;
        let mut out = self.transform(evaluator, input, magnitude)?;
        out.packing = Packing::Coefficients;
        out.estimate.real = true;
        // The root mean square of the slots' errors, spread over the coefficients.
        out.estimate.deviation /= packing.spread().sqrt();
        Ok(out)
    }

    /// An input at the level of the plan.
    ///
    /// # Errors
    /// As [`Self::evaluate`], but for keys.
    pub(crate) fn take(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        let (plan, stage) = (&self.plan, Stage::SlotsToCoeffs);
        let (packing, level) = (Packing::Slots { log_slots: plan.dft.log_slots() }, plan.input_level());
        require_input(stage, &self.parameters, input, packing, level, plan.input_scale)?;
        let lowered = evaluator.of(input).and_then(|evaluator| evaluator.drop_to_level(input, level));
        lowered.map_err(|error| stage.error(level, error))
    }

    /// The transform of an input at the plan's level and any scale, as slots whose coefficients are the values. Their
    /// absolute values are at most `magnitude`.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with a missing key.
    pub(crate) fn transform(
        &self,
        evaluator: &Evaluator<'_>,
        input: Ciphertext,
        magnitude: f64,
    ) -> Result<Ciphertext, CircuitError> {
        let (plan, stage, scale) = (&self.plan, Stage::SlotsToCoeffs, input.scale);
        let evaluator = evaluator.of(&input).map_err(|error| stage.error(plan.input_level(), error))?;
        let mut out = self
            .transforms
            .apply(
                evaluator.parameters(),
                &mut evaluator.keys(),
                stage,
                &plan.factors,
                input,
                |i, storage| encode(&self.parameters, plan, i, storage),
            )
            .map_err(|error| Stage::SlotsToCoeffs.error(plan.input_level(), error))?;
        let factor = plan.constant();
        out.scale = scale * factor;
        out.estimate.deviation /= factor;
        out.estimate.magnitude = magnitude;
        Ok(out)
    }
}

/// Factor `index` in the order of evaluation.
fn encode(
    parameters: &CkksParameters,
    plan: &SlotsToCoeffsPlan,
    index: usize,
    storage: Storage,
) -> Result<LinearTransform, CircuitError> {
    let constant = plan.constant().powf(1.0 / plan.factors.len() as f64);
    let factor = plan.dft.order(Direction::Forward)[index];
    let diagonals = plan.dft.diagonals(Direction::Forward, factor, constant);
    plan.factors[index].encode(parameters, &diagonals, Spread::RootMeanSquare, storage)
}
