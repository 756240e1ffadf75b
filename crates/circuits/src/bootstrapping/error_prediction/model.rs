//! The variances of all stages, in units of the message.

use keywright_ckks::{CkksParameters, Packing};
use keywright_rlwe::noise::{self, Variance};
use keywright_rlwe::{KeySpec, Parameters};

use super::distribution::{Case, ErrorPrediction, secret_at_slots};
use crate::CircuitError;
use crate::bootstrapping::mod_one::range::log2_tail;
use crate::bootstrapping::plan::{BootstrapperPlan, Order};
use crate::bootstrapping::stages::coeffs_to_slots::Values;
use crate::bootstrapping::stages::eval_mod::EvalModPlan;
use crate::bootstrapping::transforms::FactorPlan;
use crate::bootstrapping::transforms::dft::{Dft, Direction};
use crate::polynomial::{Point, Roundings};

impl BootstrapperPlan {
    /// Predicts the errors that [`crate::bootstrapping::Bootstrapper::bootstrap`] adds to the decrypted input, for
    /// values with parts uniform in `[-1, 1]`. `None` if `slots_to_coeffs` comes last, which needs another model.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`], for keys of other parameters.
    pub fn prediction(&self, parameters: &CkksParameters) -> Result<Option<ErrorPrediction>, CircuitError> {
        if self.order == Order::ModRaiseFirst {
            return Ok(None);
        }
        let (rlwe, model) = (parameters.rlwe(), Model::new(self, parameters));
        let input = Model::new(self, self.input_ring(parameters)?);
        // The last pass of an iterated bootstrapping corrects an error that was scaled up by `1 / gain`; its own errors
        // are scaled down by `gain`.
        let power = model.gain * model.gain;
        let recombine = model.recombine()?;
        let s2c = input.slots_to_coeffs()? * power;
        let raise = model.mod_raise()? * power;
        let c2s = model.coeffs_to_slots()? * power;
        let rounding = model.rounding(model.working) * power;
        let complex = self.coeffs_to_slots.values == Values::Complex;
        let cases = model.cases();
        let other =
            if complex { merged(&cases) } else { vec![Case { probability: 1.0, steps: 0.0, bias: 0.0 }] };
        let steps = |list: &[Case]| list.iter().map(|c| c.probability * c.steps).sum::<f64>();
        let eval_mod = rounding.mean() / 2.0 * (steps(&cases) + steps(&other));
        let bias: f64 = cases.iter().map(|c| c.probability * c.bias * c.bias).sum();
        let mut stages = vec![
            ("slots_to_coeffs", s2c.mean()),
            ("mod_raise", raise.mean()),
            ("coeffs_to_slots", c2s.mean()),
            ("eval_mod", eval_mod),
        ];
        stages.extend(self.recombine.iter().map(|_| ("recombine", recombine.mean())));
        stages.push(("approximation", bias));
        let mut rest = Variance::default();
        for part in [s2c, raise, c2s, recombine] {
            rest += part;
        }
        let log_slots = self.slots_to_coeffs.dft.log_slots();
        let approximation = &self.eval_mod.approximation;
        let tail = log2_tail(self.mod_raise.weight(rlwe), approximation.k, approximation.message);
        let parts = u32::from(self.coeffs_to_slots.values != Values::Real);
        let log2_failure = tail + f64::from(log_slots + parts);
        let copies = 1u64 << (parameters.max_log_slots() - self.coeffs_to_slots.output_log_slots());
        Ok(Some(ErrorPrediction {
            stages: stages.into_iter().map(|(name, variance)| (name, variance.sqrt())).collect(),
            log2_failure,
            rest,
            rounding,
            cases,
            other,
            secret: secret_at_slots(copies as f64),
            slots: f64::from(log_slots).exp2(),
            parts: if complex { 2.0 } else { 1.0 },
        }))
    }
}

/// The distribution of a bootstrap's errors for known messages, in units of the message. The integers that ModRaise
/// adds stay unknown.
///
/// A part of a value with integer `i` and message `m` has an error of mean `bias[i][m]` and variance
/// `rest + (steps[i][m] + other) rounding / 2`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorsOfMessages {
    /// The variance of all stages but `eval_mod`.
    pub rest: Variance,
    /// The variance of a rounding at scale 1; a part has half of it.
    pub rounding: Variance,
    /// Probability of each integer.
    pub probabilities: Vec<f64>,
    /// For each integer and message, the squared error that the steps of `eval_mod` make of roundings of unit variance
    /// at scale 1.
    pub steps: Vec<Vec<f64>>,
    /// The same for the other half of complex values, as a mean.
    pub other: f64,
    /// For each integer and message, the error of the approximation.
    pub bias: Vec<Vec<f64>>,
}

impl BootstrapperPlan {
    /// [`Self::prediction`] for known messages: parts of values, in `[-1, 1]`.
    ///
    /// # Errors
    /// As [`Self::prediction`].
    pub fn errors_of(
        &self,
        parameters: &CkksParameters,
        messages: &[f64],
    ) -> Result<Option<ErrorsOfMessages>, CircuitError> {
        let Some(prediction) = self.prediction(parameters)? else { return Ok(None) };
        let model = Model::new(self, parameters);
        let (reduction, integers) = (Reduction::new(&model), model.integers());
        let at = |&(integer, _): &(i64, f64)| -> (Vec<f64>, Vec<f64>) {
            messages.iter().map(|message| reduction.at(integer, message * model.messages())).unzip()
        };
        let (steps, bias) = integers.iter().map(at).unzip();
        Ok(Some(ErrorsOfMessages {
            rest: prediction.rest,
            rounding: prediction.rounding,
            probabilities: integers.iter().map(|(_, probability)| *probability).collect(),
            steps,
            other: prediction.other.iter().map(|case| case.probability * case.steps).sum(),
            bias,
        }))
    }
}

/// Numbers that all stages share.
struct Model<'p> {
    plan: &'p BootstrapperPlan,
    parameters: &'p CkksParameters,
    /// Expected squared norm of the secret.
    norm2: f64,
    /// Coefficients that add up in a slot of the input and of `eval_mod`.
    outer: f64,
    working: f64,
    /// The factor that scales the last pass down, and the scale of its `eval_mod`; 1 and the plan's scale for a single
    /// pass.
    gain: f64,
    scale: f64,
}

impl<'p> Model<'p> {
    fn new(plan: &'p BootstrapperPlan, parameters: &'p CkksParameters) -> Self {
        let rlwe = parameters.rlwe();
        let spread = |log_slots| Packing::Slots { log_slots }.spread();
        let outer = spread(plan.slots_to_coeffs.dft.log_slots());
        let working = spread(plan.coeffs_to_slots.output_log_slots());
        let gain = plan.iterations.map_or(1.0, |iterations| {
            (-f64::from(iterations.log_precision) * (iterations.count - 1) as f64).exp2()
        });
        let (norm2, scale) = (rlwe.secret().expected_norm2(rlwe.n()), plan.scale * gain);
        Self { plan, parameters, norm2, outer, working, gain, scale }
    }

    fn rlwe(&self) -> &Parameters {
        self.parameters.rlwe()
    }

    /// The largest message of the last pass. In an iterated bootstrapping it is an error, far below its bound.
    fn messages(&self) -> f64 {
        if self.plan.iterations.is_some() { 0.0 } else { 1.0 }
    }

    /// `E |e|^2` of a rounding in a slot of that many coefficients, at scale 1.
    fn rounding(&self, spread: f64) -> Variance {
        noise::division_parts(self.rlwe()) * spread
    }

    /// `E |e|^2` of the factors of a transform, in integers at its output, without the last rounding; and the squared
    /// factor by which they multiply values. `input` is `E |z|^2` of its input's integers.
    fn factors(
        &self,
        dft: &Dft,
        direction: Direction,
        factors: &[FactorPlan],
        constants: &[f64],
        input: f64,
    ) -> Result<(f64, f64), CircuitError> {
        let (mut error, mut gain) = (0.0, 1.0);
        let rounding = self.rounding(self.outer).mean();
        for (position, factor) in dft.order(direction).into_iter().enumerate() {
            let (step, constant) = (&factors[position], constants[position]);
            let layers = f64::from(dft.layers()[factor]);
            let sign = if direction == Direction::Forward { 1.0 } else { -1.0 };
            let norm = constant * constant * (sign * layers).exp2();
            // Earlier errors, including the rounding of the preceding factor, and the switches of the baby steps.
            let before = if position == 0 { 0.0 } else { error + rounding };
            let switched = self.baby_switch(step)? * self.outer;
            let rotated = step.bsgs.babies.iter().filter(|&&b| b != 0).count() as f64;
            // The switch back from the ephemeral secret affects all terms.
            let share = if step.raised.is_some() { 1.0 } else { rotated / step.bsgs.babies.len() as f64 };
            error = norm * (before + switched * share);
            // 2p coefficients of each diagonal of period p have a rounding error up to 1/2 at the scale of the prime.
            let period = f64::from(dft.layers()[..=factor].iter().sum::<u32>()).exp2();
            let q = self.rlwe().log2_prime(step.level).exp2();
            error += step.bsgs.diagonals as f64 * period / (6.0 * q * q) * input * gain;
            gain *= norm;
        }
        Ok((error, gain))
    }

    /// Variance in coefficients of a baby step's switch, which stays in the raised basis; including the hops of its
    /// tier, half of all on average.
    fn baby_switch(&self, factor: &FactorPlan) -> Result<f64, CircuitError> {
        let Some(key) = factor.keys.first() else { return Ok(0.0) };
        if factor.raised.is_some() {
            return Ok(self.lowest_switch(key));
        }
        let hops = (factor.bsgs.n1 / factor.bsgs.tier.max(1)).saturating_sub(1) as f64 / 2.0;
        Ok((1.0 + hops) * self.switch(key)?)
    }

    /// Variance in coefficients of a switch of a polynomial below `q_0 / 2`: one digit. A polynomial from a subring has
    /// only its own coefficients.
    fn lowest_switch(&self, key: &KeySpec) -> f64 {
        let ratio = (self.rlwe().log2_prime(0) - key.special_bits(self.rlwe())).exp2();
        let n = key.element.source_ring().map_or(self.rlwe().n(), |log_n| 1 << log_n);
        n as f64 * noise::fresh_symmetric() * ratio * ratio / 12.0
    }

    /// `N sigma^2 sum_j Q_j^2 / 12 P^2`.
    fn switch(&self, key: &KeySpec) -> Result<f64, CircuitError> {
        let rlwe = self.rlwe();
        let special = key.special_bits(rlwe);
        let bits = |digit: std::ops::Range<usize>| digit.map(|i| rlwe.log2_prime(i)).sum::<f64>();
        let digits = key.validate(rlwe)?;
        let sum: f64 = digits.into_iter().map(|digit| (2.0 * (bits(digit) - special)).exp2() / 12.0).sum();
        Ok(rlwe.n() as f64 * noise::fresh_symmetric() * sum)
    }

    fn slots_to_coeffs(&self) -> Result<Variance, CircuitError> {
        let stage = &self.plan.slots_to_coeffs;
        let (change, scale) = (stage.constant(), stage.factored_scale());
        let constants = vec![change.powf(1.0 / stage.factors.len() as f64); stage.factors.len()];
        let parts = if self.plan.coeffs_to_slots.values == Values::Real { 1.0 } else { 2.0 };
        let input = parts / 3.0 * (self.messages() * scale).powi(2);
        let (error, gain) =
            self.factors(&stage.dft, Direction::Forward, &stage.factors, &constants, input)?;
        let joining = match &stage.conjugation {
            Some(key) => self.outer * self.switch(key)? + self.rounding(self.outer).mean(),
            None => 0.0,
        };
        let inner = (error / gain + joining) / (2.0 * scale * scale);
        let last = (1.0 + self.norm2) / 12.0 / (stage.output_scale * stage.output_scale);
        Ok(Variance { plain: inner + last, secret: 0.0 })
    }

    /// The factor from the message to the variable of `eval_mod`, the unit of errors of coefficients at scale `q_0`.
    fn coefficient_unit(&self) -> f64 {
        let scale = self.plan.slots_to_coeffs.output_scale;
        1.0 / (scale * scale)
    }

    fn mod_raise(&self) -> Result<Variance, CircuitError> {
        let Some(keys) = &self.plan.mod_raise.ephemeral else {
            let up = self.plan.mod_raise.up.as_ref();
            let variance = up.map_or(0.0, |key| self.lowest_switch(key) + (1.0 + self.norm2) / 12.0);
            return Ok(Variance { plain: variance * self.coefficient_unit(), secret: 0.0 });
        };
        let mut variance = self.lowest_switch(&keys.to_sparse) + (1.0 + keys.weight as f64) / 12.0;
        // If the first factor of `coeffs_to_slots` is fused with the switch back, that switch is counted there.
        if self.plan.coeffs_to_slots.factors.first().is_none_or(|factor| factor.raised.is_none()) {
            variance += self.lowest_switch(&keys.to_dense) + (1.0 + self.norm2) / 12.0;
        }
        Ok(Variance { plain: variance * self.coefficient_unit(), secret: 0.0 })
    }

    fn coeffs_to_slots(&self) -> Result<Variance, CircuitError> {
        let stage = &self.plan.coeffs_to_slots;
        let each = stage.constant().powf(1.0 / stage.factors.len() as f64);
        let mut constants = vec![each; stage.factors.len()];
        if let Some(last) = constants.last_mut() {
            *last /= 2.0;
        }
        // E |z|^2 of a slot: 2n coefficients of the root mean square of u, see `range`, times the trace's multiplicity.
        let weight = self.plan.mod_raise.weight(self.rlwe()) as f64;
        let multiplicity = (stage.trace.len() as f64).exp2();
        let held = stage.input_scale * multiplicity;
        let input = self.outer * (weight + 1.0) / 12.0 * held * held;
        let (error, _) = self.factors(&stage.dft, Direction::Inverse, &stage.factors, &constants, input)?;
        // c + conj(c), twice the real part, in units of the message.
        let unit = self.plan.ratio() / (stage.factor * stage.output_scale);
        let unit = unit * unit;
        let last = self.rounding(self.working);
        let mut out = Variance { plain: 2.0 * unit * (error + last.plain), secret: 2.0 * unit * last.secret };
        // In a full complex packing the conjugation's error cancels: e in one half and i e in the other are joined as a
        // + i b.
        if stage.ciphertexts() == 1 || stage.values == Values::Pair {
            let halves = if stage.values == Values::Complex { 1.0 } else { 0.5 };
            let switch = self.working * self.switch(&stage.conjugation)?;
            out.plain += halves * unit * (switch + last.plain);
            out.secret += halves * unit * last.secret;
        }
        // Rotation k of the trace is followed by sums that double values but not its error.
        for (key, k) in stage.trace.iter().zip(1..) {
            let share = f64::from(-2 * k).exp2();
            out.plain += share * (self.switch(key)? + (1.0 + self.norm2) / 12.0) * self.coefficient_unit();
        }
        Ok(out)
    }

    fn recombine(&self) -> Result<Variance, CircuitError> {
        let Some(factor) = &self.plan.recombine else { return Ok(Variance::default()) };
        let unit = 1.0 / (2.0 * self.plan.scale * self.plan.scale);
        let rounding = self.rounding(self.outer);
        let switch = self.outer * self.baby_switch(factor)?;
        Ok(Variance { plain: unit * (rounding.plain + switch), secret: unit * rounding.secret })
    }

    /// The case of every integer and message.
    fn cases(&self) -> Vec<Case> {
        let reduction = Reduction::new(self);
        let mut out = Vec::new();
        for (integer, probability) in self.integers() {
            for (node, weight) in MESSAGES {
                let (steps, bias) = reduction.at(integer, node * self.messages());
                out.push(Case { probability: probability * weight, steps, bias });
            }
        }
        out
    }

    /// The integers that occur, with their probabilities.
    fn integers(&self) -> Vec<(i64, f64)> {
        integers(self.plan.eval_mod.approximation.k, self.plan.mod_raise.weight(self.rlwe()))
    }
}

/// Evaluates `eval_mod` on one value at a time.
struct Reduction<'p> {
    plan: &'p EvalModPlan,
    cosine: Roundings<'p>,
    arcsine: Option<Roundings<'p>>,
    /// The scales of the cosine and of the result of each double angle.
    scales: Vec<f64>,
    ratio: f64,
    gain: f64,
}

impl<'p> Reduction<'p> {
    fn new(model: &Model<'p>) -> Self {
        let (plan, ratio, rlwe) = (&model.plan.eval_mod, model.plan.ratio(), model.rlwe());
        let level = model.plan.coeffs_to_slots.output_level();
        let (scales, last) = plan.scales(rlwe, level, ratio, model.scale);
        let variable = model.plan.coeffs_to_slots.output_scale;
        let cosine = Roundings::new(&plan.cosine, rlwe, level, variable, scales[0], 1.0);
        let below = level - plan.cosine.depth() - (scales.len() - 1);
        let arcsine = plan
            .arcsine
            .as_ref()
            .map(|arcsine| Roundings::new(arcsine, rlwe, below, scales[scales.len() - 1], last, 1.0));
        Self { plan, cosine, arcsine, scales, ratio, gain: model.gain }
    }

    /// Squared error of all steps for roundings of unit variance at scale 1, and the error of the approximation, for
    /// this integer and this message in units of the largest message.
    fn at(&self, integer: i64, message: f64) -> (f64, f64) {
        let approximation = &self.plan.approximation;
        let linear = approximation.arcsine.coefficients().get(1).copied().unwrap_or(1.0);
        let message = message * approximation.message;
        let x = integer as f64 + message;
        let y = (x - 0.25) / approximation.half_width();
        let mut point = self.cosine.reach(Point { value: y, deviation: 0.0 });
        for scale in &self.scales[1..] {
            let deviation = (4.0 * point.value * point.deviation).hypot(1.0 / scale);
            point = Point { value: 2.0 * point.value * point.value - 1.0, deviation };
        }
        let deviation = match &self.arcsine {
            Some(arcsine) => arcsine.reach(point).deviation,
            None => linear * point.deviation,
        };
        let bias = self.gain * self.ratio * (approximation.value(x) - message);
        ((self.ratio * deviation).powi(2), bias)
    }
}

/// Gauss's five points and weights for a message uniform in `[-1, 1]`: exact for the square of a cubic error, such as
/// that of a linear arcsine.
const MESSAGES: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.118_463_442_528_094_5),
    (-0.538_469_310_105_683_1, 0.239_314_335_249_683_2),
    (0.0, 64.0 / 225.0),
    (0.538_469_310_105_683_1, 0.239_314_335_249_683_2),
    (0.906_179_845_938_664, 0.118_463_442_528_094_5),
];

/// The probability of an integer that occurs in one of 2^12 coefficients. Rarer integers are left out; errors are
/// smaller for them.
const RARE: f64 = 1.0 / 4096.0;

/// Integers of `[-k, k]` with their probabilities for a secret of the given weight.
fn integers(k: usize, weight: usize) -> Vec<(i64, f64)> {
    let beyond = |k: usize| log2_tail(weight, k, 0.0).exp2();
    let mut out = vec![(0, 1.0 - beyond(0))];
    for integer in 1..=k {
        let probability = (beyond(integer - 1) - beyond(integer)) / 2.0;
        if probability >= RARE {
            out.extend([(integer as i64, probability), (-(integer as i64), probability)]);
        }
    }
    let total: f64 = out.iter().map(|(_, probability)| probability).sum();
    out.iter_mut().for_each(|(_, probability)| *probability /= total);
    out
}

/// One case for each integer, for the half whose bias does not reach the part in question.
fn merged(cases: &[Case]) -> Vec<Case> {
    cases
        .chunks(MESSAGES.len())
        .map(|chunk| {
            let probability: f64 = chunk.iter().map(|case| case.probability).sum();
            let steps: f64 = chunk.iter().map(|case| case.probability * case.steps).sum();
            Case { probability, steps: steps / probability, bias: 0.0 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_rounded_sums_of_uniform_variables() {
        // One variable on [-1/2, 1/2] is always rounded to 0; of 32 the sum has variance 32/12, the rounding adds
        // 1/12.
        assert_eq!(integers(4, 1), [(0, 1.0)]);
        let distribution = integers(16, 32);
        let variance: f64 = distribution.iter().map(|(i, p)| p * (i * i) as f64).sum();
        assert!((variance / (33.0 / 12.0) - 1.0).abs() < 0.01, "{variance}");
        // Erf of half a unit in 1.633 deviations.
        assert!((distribution[0].1 - 0.2400).abs() < 0.002, "{:?}", distribution[0]);
    }
}
