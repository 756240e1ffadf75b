//! What precision a bootstrapping will have, before any key is made.
//!
//! The estimate that a ciphertext carries is a bound: deviations of dependent errors are added, the worst point of `eval_mod` counts for
//! all slots, and [`keywright_ckks::TAIL`] deviations are taken. Here variances are added, each with its own distribution, and the mean
//! and the largest error over a number of vectors come out as they will be seen.
//!
//! # Model
//! With `s_j` the value of the secret at the root of unity of slot `j`, `X_j = |s_j|^2 / |s|^2` has mean 1: it is exponentially distributed
//! for a full packing, and the mean of `N / 2n` such variables where only `n` slots are kept. A rounding of a ciphertext at scale `S` is an
//! error `e_0 + e_1 s` with `e_0`, `e_1` uniform in every coefficient: in slot `j`, given the secret, a complex normal variable of
//! variance `N (1 + |s|^2 X_j) / 12 S^2`. The same `X_j` meets all roundings of a slot, in all ciphertexts of one secret.
//!
//! | error | variance of a part of a value, in units of the message |
//! |---|---|
//! | factors of `slots_to_coeffs`, but what is made after the last one | roundings, switches of baby steps and roundings of the diagonals, each times the squared norms of the factors that follow; averaged over so many slots that `X = 1` |
//! | last rounding of `slots_to_coeffs`, `mod_raise` | in coefficients: `(1 + |s|^2) / 12` and what the switches add |
//! | factors of `coeffs_to_slots` | the same; what comes last, the conjugation included, with `X_j` |
//! | `eval_mod` | for each step `k`: `(d mu / d step_k)^2 N (1 + |s|^2 X_j) / 24 S_k^2`, at the slot's own integer `I` |
//! | approximation | no variance: off by its error at `I` and the message |
//!
//! For complex values the imaginary half's error in `eval_mod` is added: a polynomial of a real value multiplies complex errors by a real
//! number, and the halves are joined as `a + i b`. The integer `I` is the nearest one to a sum of `h` uniform variables
//! ([`crate::bootstrapping::range`]), messages are uniform in `[-1, 1]`.
//!
//! The mean error is that of the mixture over `X`, `I` and the message. The worst of `v` vectors of `n` slots is the median of the largest:
//! with `p(t | X)` the probability that one part is off by more than `t`, the `t` at which
//!
//! ```text
//! E_X[ (1 - p(t | X))^(parts v) ]^n = 1/2.
//! ```

use keywright_ckks::{CkksParameters, Packing};
use keywright_rlwe::{KeySpec, Parameters, noise};
use std::f64::consts::{PI, SQRT_2};

use crate::CircuitError;
use crate::bootstrapping::plan::{BootstrapperPlan, Order};
use crate::bootstrapping::reduction::range::log2_tail;
use crate::bootstrapping::stages::coeffs_to_slots::Values;
use crate::bootstrapping::transforms::FactorPlan;
use crate::bootstrapping::transforms::dft::{Dft, Direction};
use crate::polynomial::{Point, Roundings};

/// A variance that depends on the secret at the slot: `plain + secret X`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Variance {
    plain: f64,
    secret: f64,
}

impl Variance {
    fn mean(self) -> f64 {
        self.plain + self.secret
    }

    fn times(self, factor: f64) -> Self {
        Self { plain: self.plain * factor, secret: self.secret * factor }
    }
}

/// What one part of a slot can be: an integer and a message.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    probability: f64,
    /// Squared error that the steps of `eval_mod` add, for roundings of unit variance at scale 1.
    steps: f64,
    /// Error of the approximation.
    bias: f64,
}

/// The distribution of a bootstrap's errors, in units of the message.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorPrediction {
    /// Root mean square error of a part that each stage adds, in order, and that of the approximation.
    pub stages: Vec<(&'static str, f64)>,
    /// `log2` of the probability that a bootstrap fails, some integer being beyond `K`; minus infinity if none can be.
    pub log2_failure: f64,
    /// All but `eval_mod`.
    rest: Variance,
    /// A rounding at scale 1, of which a part has half.
    rounding: Variance,
    cases: Vec<Case>,
    /// The same for the other half of complex values.
    other: Vec<Case>,
    /// Cells of the distribution of `X`: probability and value.
    secret: Vec<(f64, f64)>,
    slots: f64,
    parts: f64,
}

impl ErrorPrediction {
    /// `-log2` of the expected absolute error of a part.
    pub fn mean_bits(&self) -> f64 {
        let mut mean = 0.0;
        for &(probability, x) in &self.secret {
            self.at(x, &mut |share, deviation, bias| {
                let z = bias / deviation;
                let folded = (2.0 / PI).sqrt() * (-z * z / 2.0).exp() + z * (1.0 - erfc(z / SQRT_2));
                mean += probability * share * deviation * folded;
            });
        }
        -mean.log2()
    }

    /// `-log2` of the largest error of any part of `vectors` vectors under one secret: its median over secrets and vectors.
    pub fn worst_bits(&self, vectors: usize) -> f64 {
        let values = self.parts * vectors.max(1) as f64;
        // The median falls with -log2: the largest number of bits at which the chance that nothing is worse is above a half.
        let (mut low, mut high) = (-64.0, 128.0);
        while high - low > 1e-3 {
            let bits = f64::midpoint(low, high);
            let threshold = (-bits).exp2();
            let fails = |&(probability, x): &(f64, f64)| {
                let tail = self.tail(threshold, x);
                probability * -(values * (-tail.min(1.0)).ln_1p()).exp_m1()
            };
            let slot: f64 = self.secret.iter().map(fails).sum();
            if self.slots * (-slot.min(1.0)).ln_1p() >= -std::f64::consts::LN_2 {
                low = bits;
            } else {
                high = bits;
            }
        }
        low
    }

    /// Probability that one part is off by more than `t`, where the secret has `X = x`.
    fn tail(&self, t: f64, x: f64) -> f64 {
        let mut sum = 0.0;
        self.at(x, &mut |probability, deviation, bias| {
            let beyond = |distance: f64| erfc(distance / deviation / SQRT_2) / 2.0;
            sum += probability * (beyond(t - bias) + beyond(t + bias));
        });
        sum
    }

    /// Probability, deviation and bias of every case, for one value of `X`.
    fn at(&self, x: f64, see: &mut dyn FnMut(f64, f64, f64)) {
        let rest = self.rest.plain + self.rest.secret * x;
        let half = (self.rounding.plain + self.rounding.secret * x) / 2.0;
        for case in &self.cases {
            for other in &self.other {
                let variance = rest + half * (case.steps + other.steps);
                see(case.probability * other.probability, variance.sqrt(), case.bias);
            }
        }
    }
}

impl BootstrapperPlan {
    /// Predicts the errors that [`crate::bootstrapping::Bootstrapper::bootstrap`] adds to what its input decrypts to: values with parts uniform in
    /// `[-1, 1]`. `None` if `slots_to_coeffs` comes last, which has another model.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says of keys of other parameters.
    pub fn prediction(&self, parameters: &CkksParameters) -> Result<Option<ErrorPrediction>, CircuitError> {
        if self.order == Order::ModRaiseFirst {
            return Ok(None);
        }
        let (rlwe, model) = (parameters.rlwe(), Model::new(self, parameters));
        // Of an iterated bootstrapping the last pass corrects what was scaled up by `1 / gain`, and so are its errors.
        let power = model.gain * model.gain;
        let recombine = model.recombine()?;
        let s2c = model.slots_to_coeffs()?.times(power);
        let raise = model.mod_raise()?.times(power);
        let c2s = model.coeffs_to_slots()?.times(power);
        let rounding = model.rounding(model.working).times(power);
        let complex = self.coeffs_to_slots.values == Values::Complex;
        let cases = model.cases(rlwe);
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
            rest = Variance { plain: rest.plain + part.plain, secret: rest.secret + part.secret };
        }
        let log_slots = self.slots_to_coeffs.dft.log_slots();
        let approximation = &self.eval_mod.approximation;
        let tail = log2_tail(self.mod_raise.weight(rlwe), approximation.k, approximation.message);
        let log2_failure = tail + f64::from(log_slots + u32::from(complex));
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

/// Numbers that all stages share.
struct Model<'p> {
    plan: &'p BootstrapperPlan,
    parameters: &'p CkksParameters,
    /// Expected squared norm of the secret.
    norm2: f64,
    /// Coefficients that meet in a slot of the input and of `eval_mod`.
    outer: f64,
    working: f64,
    /// What the last pass is scaled down by, and the scale that its `eval_mod` is asked for; 1 and the plan's for a single one.
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

    /// The largest message of the last pass: of an iterated bootstrapping it is an error, far below its bound.
    fn messages(&self) -> f64 {
        if self.plan.iterations.is_some() { 0.0 } else { 1.0 }
    }

    /// `E |e|^2` of a rounding in a slot in which so many coefficients meet, at scale 1.
    fn rounding(&self, spread: f64) -> Variance {
        Variance { plain: spread / 12.0, secret: spread * self.norm2 / 12.0 }
    }

    /// `E |e|^2` of what the factors of a transform do, in integers at its output, but the last rounding; and what they multiply
    /// values by, squared. `input` is `E |z|^2` of its input's integers.
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
            // What was made before, the rounding of the factor before included, and the switches of the baby steps.
            let before = if position == 0 { 0.0 } else { error + rounding };
            let switched = self.baby_switch(step)? * self.outer;
            let rotated = step.bsgs.babies.iter().filter(|&&b| b != 0).count() as f64;
            // The switch back from the ephemeral secret is of all terms.
            let share = if step.raised.is_some() { 1.0 } else { rotated / step.bsgs.babies.len() as f64 };
            error = norm * (before + switched * share);
            // 2p coefficients of each diagonal of period p are off by up to 1/2 at the scale of the prime.
            let period = f64::from(dft.layers()[..=factor].iter().sum::<u32>()).exp2();
            let q = self.rlwe().log2_prime(step.level).exp2();
            error += step.bsgs.diagonals as f64 * period / (6.0 * q * q) * input * gain;
            gain *= norm;
        }
        Ok((error, gain))
    }

    /// Variance in coefficients of a baby step's switch, which stays in the raised basis; with the hops of its tier, half of all in the mean.
    fn baby_switch(&self, factor: &FactorPlan) -> Result<f64, CircuitError> {
        let Some(key) = factor.keys.first() else { return Ok(0.0) };
        if factor.raised.is_some() {
            return Ok(self.lowest_switch(key));
        }
        let hops = (factor.bsgs.n1 / factor.bsgs.tier.max(1)).saturating_sub(1) as f64 / 2.0;
        Ok((1.0 + hops) * self.switch(key)?)
    }

    /// Variance in coefficients of a switch of what is below `q_0 / 2`: one digit.
    fn lowest_switch(&self, key: &KeySpec) -> f64 {
        let ratio = (self.rlwe().log2_prime(0) - key.special_bits(self.rlwe())).exp2();
        self.rlwe().n() as f64 * noise::fresh_symmetric() * ratio * ratio / 12.0
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
        let change = stage.output_scale / stage.input_scale;
        let constants = vec![change.powf(1.0 / stage.factors.len() as f64); stage.factors.len()];
        let parts = if self.plan.coeffs_to_slots.values == Values::Complex { 2.0 } else { 1.0 };
        let input = parts / 3.0 * (self.messages() * stage.input_scale).powi(2);
        let (error, gain) =
            self.factors(&stage.dft, Direction::Forward, &stage.factors, &constants, input)?;
        let inner = error / (2.0 * gain * stage.input_scale * stage.input_scale);
        let last = (1.0 + self.norm2) / 12.0 / (stage.output_scale * stage.output_scale);
        Ok(Variance { plain: inner + last, secret: 0.0 })
    }

    /// The message to the variable of `eval_mod`, in units of which errors of coefficients at scale `q_0` count.
    fn coefficient_unit(&self) -> f64 {
        let scale = self.plan.slots_to_coeffs.output_scale;
        1.0 / (scale * scale)
    }

    fn mod_raise(&self) -> Result<Variance, CircuitError> {
        let Some(keys) = &self.plan.mod_raise.encapsulation else { return Ok(Variance::default()) };
        let mut variance = self.lowest_switch(&keys.to_sparse) + (1.0 + keys.weight as f64) / 12.0;
        // Where the first factor of `coeffs_to_slots` is one with the switch back, that is counted there.
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
        // E |z|^2 of what a slot holds: 2n coefficients of the root mean square of u, see `range`, times the trace's multiplicity.
        let weight = self.plan.mod_raise.weight(self.rlwe()) as f64;
        let multiplicity = (stage.trace.len() as f64).exp2();
        let held = stage.input_scale * multiplicity;
        let input = self.outer * (weight + 1.0) / 12.0 * held * held;
        let (error, _) = self.factors(&stage.dft, Direction::Inverse, &stage.factors, &constants, input)?;
        // c + conj(c): twice the real part; in units of the message.
        let unit = self.plan.ratio() / (stage.factor * stage.output_scale);
        let unit = unit * unit;
        let last = self.rounding(self.working);
        let mut out = Variance { plain: 2.0 * unit * (error + last.plain), secret: 2.0 * unit * last.secret };
        // Of a full complex packing the conjugation's error cancels: e in one half, i e in the other, joined as a + i b.
        if stage.ciphertexts() == 1 {
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

    /// What becomes of every integer and message.
    fn cases(&self, rlwe: &Parameters) -> Vec<Case> {
        let (plan, ratio) = (&self.plan.eval_mod, self.plan.ratio());
        let (level, approximation) = (self.plan.coeffs_to_slots.output_level(), &plan.approximation);
        let (scales, last) = plan.scales(rlwe, level, ratio, self.scale);
        let variable = self.plan.coeffs_to_slots.output_scale;
        let cosine = Roundings::new(&plan.cosine, rlwe, level, variable, scales[0], 1.0);
        let below = level - plan.cosine.depth() - (scales.len() - 1);
        let arcsine = plan
            .arcsine
            .as_ref()
            .map(|arcsine| Roundings::new(arcsine, rlwe, below, scales[scales.len() - 1], last, 1.0));
        let linear = approximation.arcsine.coefficients().get(1).copied().unwrap_or(1.0);
        let mut out = Vec::new();
        for (integer, probability) in integers(plan.approximation.k, self.plan.mod_raise.weight(rlwe)) {
            for (node, weight) in MESSAGES {
                let message = node * self.messages() * approximation.message;
                let x = integer as f64 + message;
                let y = (x - 0.25) / approximation.half_width();
                let mut point = cosine.reach(Point { value: y, deviation: 0.0 });
                for scale in &scales[1..] {
                    let deviation = (4.0 * point.value * point.deviation).hypot(1.0 / scale);
                    point = Point { value: 2.0 * point.value * point.value - 1.0, deviation };
                }
                let deviation = match &arcsine {
                    Some(arcsine) => arcsine.reach(point).deviation,
                    None => linear * point.deviation,
                };
                out.push(Case {
                    probability: probability * weight,
                    steps: (ratio * deviation).powi(2),
                    bias: self.gain * ratio * (approximation.value(x) - message),
                });
            }
        }
        out
    }
}

/// Gauss's five points and weights for a message uniform in `[-1, 1]`: exact for the square of a cubic error, that of a linear arcsine.
const MESSAGES: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.118_463_442_528_094_5),
    (-0.538_469_310_105_683_1, 0.239_314_335_249_683_2),
    (0.0, 64.0 / 225.0),
    (0.538_469_310_105_683_1, 0.239_314_335_249_683_2),
    (0.906_179_845_938_664, 0.118_463_442_528_094_5),
];

/// Integers that occur in more than one coefficient of 2^12: errors are smaller for those that are left out.
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

/// One case for each integer: for the half whose bias does not reach the part that is looked at.
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

/// Cells of the distribution of the mean of `copies` exponential variables: probability and value.
fn secret_at_slots(copies: f64) -> Vec<(f64, f64)> {
    const WIDTH: f64 = 0.25;
    // Beyond 20 an exponential variable has 2^-28.
    let cells = (0..80).map(|cell| (f64::from(cell) + 0.5) * WIDTH);
    let density = |x: f64| (copies * (x.ln() - x + 1.0) - x.ln()).exp();
    let mut out: Vec<(f64, f64)> = cells.map(|x| (density(x), x)).collect();
    let total: f64 = out.iter().map(|(probability, _)| probability).sum();
    out.iter_mut().for_each(|(probability, _)| *probability /= total);
    out.retain(|&(probability, _)| probability > 1e-12);
    out
}

/// Complementary error function, to a relative error of `1.2e-7`: Numerical Recipes, section 6.2.
fn erfc(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.5 * z);
    let value = t * (COEFFICIENTS.iter().fold(0.0, |sum, c| sum * t + c) - z * z).exp();
    if x >= 0.0 { value } else { 2.0 - value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_that_of_tables() {
        // Abramowitz and Stegun, table 7.1, and 7.3 for the large argument.
        let table = [
            (0.0, 1.0),
            (0.5, 0.479_500_122),
            (1.0, 0.157_299_207),
            (2.0, 0.004_677_735),
            (4.0, 1.541_725_8e-8),
        ];
        for (x, expected) in table {
            assert!((erfc(x) / expected - 1.0).abs() < 2e-7, "{x}: {:e}", erfc(x));
            assert!((erfc(-x) - (2.0 - expected)).abs() < 4e-7, "-{x}");
        }
    }

    #[test]
    fn cells_of_the_secret_have_mean_one_and_the_variance_of_a_mean() {
        for copies in [1.0, 2.0, 16.0, 256.0] {
            let cells = secret_at_slots(copies);
            let moment = |k: i32| cells.iter().map(|(p, x)| p * x.powi(k)).sum::<f64>();
            assert!((moment(0) - 1.0).abs() < 1e-6, "{copies}");
            assert!((moment(1) - 1.0).abs() < 0.01, "{copies}: {}", moment(1));
            let variance = moment(2) - moment(1) * moment(1);
            assert!((variance - 1.0 / copies).abs() < 0.02, "{copies}: {variance}");
        }
    }

    #[test]
    fn integers_are_rounded_sums_of_uniform_variables() {
        // One variable on [-1/2, 1/2] is always rounded to 0; of 32 the sum has variance 32/12, the rounding adds 1/12.
        assert_eq!(integers(4, 1), [(0, 1.0)]);
        let found = integers(16, 32);
        let variance: f64 = found.iter().map(|(i, p)| p * (i * i) as f64).sum();
        assert!((variance / (33.0 / 12.0) - 1.0).abs() < 0.01, "{variance}");
        // Erf of half a unit in 1.633 deviations.
        assert!((found[0].1 - 0.2400).abs() < 0.002, "{:?}", found[0]);
    }

    #[test]
    fn one_normal_variable_has_its_mean_and_its_largest() {
        let case = Case { probability: 1.0, steps: 0.0, bias: 0.0 };
        let one = ErrorPrediction {
            stages: Vec::new(),
            log2_failure: 0.0,
            rest: Variance { plain: 1.0, secret: 0.0 },
            rounding: Variance::default(),
            cases: vec![case],
            other: vec![case],
            secret: vec![(1.0, 1.0)],
            slots: 1.0,
            parts: 1.0,
        };
        assert!((one.mean_bits() - (PI / 2.0).log2() / 2.0).abs() < 1e-6);
        // The median of |x| is 0.67449; of the largest of 1000, the quantile 1 - ln 2 / 1000 of |x|: 3.3911.
        assert!((one.worst_bits(1) + 0.674_49f64.log2()).abs() < 1e-3);
        assert!((one.worst_bits(1000) + 3.391_1f64.log2()).abs() < 2e-3, "{}", one.worst_bits(1000));
        // A secret in every slot: Laplace distributed with deviation 1, whose largest of n is ln(n / ln 2) / sqrt 2.
        let laplace = ErrorPrediction {
            rest: Variance { plain: 0.0, secret: 1.0 },
            secret: secret_at_slots(1.0),
            slots: 65_536.0,
            ..one
        };
        let expected = (65_536.0 / std::f64::consts::LN_2).ln() / SQRT_2;
        assert!((laplace.worst_bits(1) + expected.log2()).abs() < 0.03, "{}", laplace.worst_bits(1));
        assert!((laplace.mean_bits() - 0.5).abs() < 0.03, "{}", laplace.mean_bits());
    }
}
