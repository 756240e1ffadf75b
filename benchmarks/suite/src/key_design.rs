//! Digits and levels of a bootstrapping's keys: the family of parameters of the KDS paper (Joo, Ha, Oh and Paek,
//! Sensors 25(14), 2025, sections 3 and 5). One bootstrap is measured, with all keys in memory or with each step's keys
//! alone.

use std::collections::BTreeMap;
use std::time::Instant;

use keywright_bench::measuring::{PartErrors, peak_rss, random_values, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::eval_mod::eval_mod;
use keywright_circuits::bootstrapping::mod_raise::mod_raise;
use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, DigitRule, KeyBudget, KeyDesign, Stage, StageKeys,
};
use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Decryptor, Encryptor, Evaluator, Magnitude};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, SecretDistribution, SecretKey, Security,
    maximum_log_qp, threads,
};

use crate::StudyError;

/// One bootstrapping: 15 levels, scale 2^50, as in the paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignRequest {
    /// `log2(N)`: 16, or less for a quick run with insecure keys.
    pub log_n: u32,
    /// Multiplications between two bootstraps.
    pub depth: usize,
    /// Special primes of the parameters.
    pub special: usize,
    /// Digits and levels of the keys.
    pub design: KeyDesign,
    /// Whether a key at a level below its own may be used with coarser digits than its own.
    pub coalescing: bool,
    /// Timed bootstraps, after an untimed one if all keys are in memory. With 0, the record has only the plan's
    /// figures.
    pub runs: usize,
    /// If the keys have more bytes than this, each step's keys are made when it begins.
    pub memory: usize,
}

/// Parameters, key sizes and times of the bootstrapping of a [`DesignRequest`].
#[derive(Debug, Clone, PartialEq)]
pub struct DesignRecord {
    /// The request.
    pub request: DesignRequest,
    /// Highest level.
    pub top: usize,
    /// Bits of the largest key modulus.
    pub log_qp: f64,
    /// Rotation keys, including the conjugation's.
    pub rotation_keys: usize,
    /// Bytes of these by the paper's formula, `2 N dnum (1 + l + alpha) 8` for each.
    pub formula_bytes: usize,
    /// Bytes of all keys as stored, seeded, including those of relinearization and of the ephemeral secret.
    pub key_bytes: usize,
    /// Bytes of the keys of the largest step.
    pub step_bytes: usize,
    /// The measured times and errors.
    pub timing: Option<Timing>,
}

/// Times of bootstraps, without those of making keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Wall-clock seconds of each bootstrap, sorted.
    pub seconds: Vec<f64>,
    /// Seconds of this thread on a processor in each bootstrap, sorted. A busy machine does not lengthen them. Equal to
    /// the wall-clock seconds if the system does not tell them.
    pub processor_seconds: Vec<f64>,
    /// Seconds of this thread on a processor in each stage, all runs together.
    pub stages: BTreeMap<Stage, f64>,
    /// Seconds to make all keys once.
    pub keygen_s: f64,
    /// Whether each step's keys were made when it began.
    pub streamed: bool,
    /// `-log2` of the largest error of a part.
    pub worst_bits: f64,
    /// `-log2` of the estimate's bound on it.
    pub bound_bits: f64,
    /// Whether every slot was within its estimate.
    pub checked: bool,
    /// Threads shared among.
    pub threads: usize,
    /// Peak resident memory of the process so far.
    pub peak_rss_bytes: Option<usize>,
}

/// Primes: `q_0`, three levels of `slots_to_coeffs`, `depth` for the computation, nine of `eval_mod`, three of
/// `coeffs_to_slots`, and special primes. Any `k` consecutive ciphertext primes have a product below that of the first
/// `k` special primes, so no digit is closed early.
fn widths(depth: usize, special: usize) -> (Vec<u32>, Vec<u32>) {
    let mut q = vec![51, 32, 32, 32];
    q.extend(std::iter::repeat_n(50, depth + 6));
    q.extend([59, 60, 50, 43, 43, 43]);
    let p = [61, 60].into_iter().chain(std::iter::repeat(50)).take(special).collect();
    (q, p)
}

/// Larger than the bound of any depth allows.
const MOST_SPECIAL: usize = 32;

/// Largest number of special primes that the security bound of `N = 2^16` allows for a largest key of this depth; at
/// least one.
///
/// # Errors
/// [`keywright_rlwe::RlweError::NoBound`] if the ring's degree has no pinned bound.
pub fn most_special(depth: usize) -> Result<usize, StudyError> {
    let bound = maximum_log_qp(16, SecretDistribution::Ternary)?;
    // A prime is below two to its width, so the widths are a bound.
    let bits = |special| -> u32 {
        let (q, p) = widths(depth, special);
        q.iter().chain(&p).sum()
    };
    Ok((1..=MOST_SPECIAL).take_while(|&special| bits(special) <= bound).last().unwrap_or(1))
}

/// Levels and approximation of the paper's setting: 15 levels, of which `slots_to_coeffs` and `coeffs_to_slots` take
/// three each.
fn literal(log_n: u32, keys: KeyDesign) -> BootstrapperLiteral {
    BootstrapperLiteral {
        log_slots: log_n - 1,
        coeffs_to_slots: 3,
        budget: KeyBudget::Fastest,
        stages_apart: true,
        keys: Some(keys),
        log2_failure: -40.0,
        log_ratio: 7.0,
        cosine_degree: 60,
        double_angles: 1,
        arcsine_degree: 3,
        ..BootstrapperLiteral::default()
    }
}

/// Seconds that this thread has been on a processor, if the system tells it.
pub(crate) fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// Makes the keys of a step on request, or passes all of them, and measures the time between two requests.
struct Supply<'g, 'k> {
    generator: &'g mut KeyGenerator<'k>,
    keys: EvaluationKeys,
    coalescing: bool,
    streamed: bool,
    stage: Option<Stage>,
    since: (Instant, Option<f64>),
    stages: BTreeMap<Stage, f64>,
    wall: f64,
    keygen: f64,
}

impl Supply<'_, '_> {
    fn make(&mut self, specs: &[KeySpec]) -> Result<(), CircuitError> {
        let start = Instant::now();
        // Frees the old keys before the new ones are made.
        let parameters = self.keys.parameters().clone();
        self.keys = EvaluationKeys::new(&parameters);
        self.keys = self.generator.evaluation_keys(specs)?;
        if !self.coalescing {
            self.keys = self.keys.clone().without_coalescing();
        }
        self.keygen += start.elapsed().as_secs_f64();
        Ok(())
    }

    fn begin(&mut self, stage: Option<Stage>) {
        self.stage = stage;
        self.since = (Instant::now(), processor_seconds());
    }

    fn end(&mut self) {
        let (start, before) = self.since;
        let wall = start.elapsed().as_secs_f64();
        let Some(stage) = self.stage.take() else { return };
        self.wall += wall;
        let busy = before.and_then(|before| Some(processor_seconds()? - before));
        *self.stages.entry(stage).or_default() += busy.unwrap_or(wall);
    }
}

impl StageKeys for Supply<'_, '_> {
    fn supply(&mut self, stage: Stage, specs: &[KeySpec]) -> Result<&EvaluationKeys, CircuitError> {
        self.end();
        if self.streamed {
            self.make(specs)?;
        }
        self.begin(Some(stage));
        Ok(&self.keys)
    }
}

/// Plans a bootstrapping and, if `runs` is not 0, measures it. Each run has other random values, and its result is
/// decrypted and compared.
///
/// # Errors
/// Errors of the engine: too many levels for the bound, or an alpha above the number of special primes.
pub fn run_design(request: &DesignRequest) -> Result<DesignRecord, StudyError> {
    let (q, p) = widths(request.depth, request.special);
    let mut ckks = CkksLiteral::from_bits(request.log_n, &q, &p, 50.0)?;
    if request.log_n < 16 {
        ckks.rlwe.security = Security::InsecureForExperiments;
    }
    let parameters = CkksParameters::new(ckks)?;
    let rlwe = parameters.rlwe();
    let literal = literal(request.log_n, request.design);
    let plan = few_keys(BootstrapperPlan::new(&parameters, &literal)?, &parameters)?;
    let specs = plan.required_keys();
    let bytes = |specs: &[KeySpec]| specs.iter().map(|spec| spec.bytes(rlwe)).sum::<Result<usize, _>>();
    let rotations: Vec<&KeySpec> =
        specs.iter().filter(|spec| matches!(spec.element, KeyElement::Galois(_))).collect();
    let formula = |spec: &&KeySpec| {
        2 * rlwe.n() * (spec.level + 1).div_ceil(spec.alpha) * (1 + spec.level + spec.special.len()) * 8
    };
    let mut step_bytes = 0;
    for keys in steps(&plan) {
        step_bytes = step_bytes.max(bytes(&keys)?);
    }
    let log_qp = |spec: &KeySpec| rlwe.log2_q(spec.level) + spec.special_bits(rlwe);
    let mut record = DesignRecord {
        request: request.clone(),
        top: plan.mod_raise.level,
        log_qp: specs.iter().map(log_qp).fold(0.0, f64::max),
        rotation_keys: rotations.len(),
        formula_bytes: rotations.iter().map(formula).sum(),
        key_bytes: bytes(&specs)?,
        step_bytes,
        timing: None,
    };
    if request.runs > 0 {
        record.timing = Some(measure(request, &parameters, &literal, &plan, record.key_bytes)?);
    }
    Ok(record)
}

/// Largest number of keys of a factor. It is the same for all digits, whichever plan would be fastest with them.
const FACTOR_KEYS: usize = 9;

/// The plan with the fastest evaluation of each factor within this number of keys.
fn few_keys(mut plan: BootstrapperPlan, parameters: &CkksParameters) -> Result<BootstrapperPlan, StudyError> {
    let mut options = plan.factor_options(parameters)?.into_iter();
    let factors = plan.slots_to_coeffs.factors.iter_mut().chain(&mut plan.coeffs_to_slots.factors);
    for (factor, (_, options)) in factors.zip(&mut options) {
        let few = options.into_iter().filter(|option| option.keys.len() <= FACTOR_KEYS);
        if let Some(chosen) = few.min_by(|a, b| a.work.total_cmp(&b.work)) {
            *factor = chosen;
        }
    }
    Ok(plan)
}

/// The keys of every step. Each can be in memory alone.
fn steps(plan: &BootstrapperPlan) -> Vec<Vec<KeySpec>> {
    let mut out = vec![plan.slots_to_coeffs.required_keys(), plan.mod_raise.key_specs()];
    out.extend(plan.coeffs_to_slots.steps());
    out.push(vec![plan.relinearization.clone()]);
    out
}

/// A bootstrap of a full packing that gets its keys step by step.
fn bootstrap(
    bootstrapper: &Bootstrapper,
    parameters: &CkksParameters,
    supply: &mut Supply<'_, '_>,
    input: &Ciphertext,
) -> Result<Ciphertext, StudyError> {
    let plan = bootstrapper.plan();
    let keys = supply.supply(Stage::SlotsToCoeffs, &plan.slots_to_coeffs.required_keys())?;
    let coefficients = bootstrapper.slots_to_coeffs().evaluate(&Evaluator::new(parameters, keys)?, input)?;
    let keys = supply.supply(Stage::ModRaise, &plan.mod_raise.key_specs())?;
    let raised = mod_raise(&Evaluator::new(parameters, keys)?, &plan.mod_raise, &coefficients)?;
    let parts = bootstrapper.coeffs_to_slots().evaluate_streamed(supply, &raised)?;
    let keys = supply.supply(Stage::EvalMod, std::slice::from_ref(&plan.relinearization))?;
    let evaluator = Evaluator::new(parameters, keys)?;
    let ratio = raised.scale / coefficients.scale;
    let reduced: Vec<Ciphertext> = parts
        .iter()
        .map(|part| eval_mod(&evaluator, &plan.eval_mod, part, ratio, plan.scale))
        .collect::<Result<_, _>>()?;
    let mut reduced = reduced.into_iter();
    let (Some(mut sum), Some(imaginary)) = (reduced.next(), reduced.next()) else {
        return Err(CircuitError::Empty("the parts of a full packing").into());
    };
    evaluator.add_assign(&mut sum, &evaluator.multiply_by_i(&imaginary)?)?;
    supply.end();
    Ok(sum)
}

fn measure(
    request: &DesignRequest,
    parameters: &CkksParameters,
    literal: &BootstrapperLiteral,
    plan: &BootstrapperPlan,
    key_bytes: usize,
) -> Result<Timing, StudyError> {
    let rlwe = parameters.rlwe();
    let secret = SecretKey::sample(rlwe, &mut rng(1))?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let public = generator.public_key();
    let mut encryptor =
        Encryptor::new(parameters, &public, rng(4))?.declaring(Magnitude::new(std::f64::consts::SQRT_2)?);
    let decryptor = Decryptor::new(parameters, &secret)?;
    let bootstrapper = Bootstrapper::new(parameters, plan)?;
    let mut supply = Supply {
        generator: &mut generator,
        keys: EvaluationKeys::new(rlwe),
        coalescing: request.coalescing,
        streamed: key_bytes > request.memory,
        stage: None,
        since: (Instant::now(), None),
        stages: BTreeMap::new(),
        wall: 0.0,
        keygen: 0.0,
    };
    if !supply.streamed {
        supply.make(&plan.required_keys())?;
    }
    let mut source = rng(3);
    let (mut errors, mut checked) = (PartErrors::default(), true);
    let (mut seconds, mut processor, mut stages, mut keygen_s) = (vec![], vec![], BTreeMap::new(), 0.0);
    let mut bound = 0.0f64;
    // The first run touches memory and makes plans. If keys are made step by step, no memory remains allocated between
    // runs.
    let untimed = usize::from(!supply.streamed);
    for run in 0..untimed + request.runs {
        let values = random_values(&mut source, literal);
        let input = encryptor.encrypt(&values, literal.log_slots, plan.input_level())?;
        (supply.stages, supply.wall) = (BTreeMap::new(), 0.0);
        let out = bootstrap(&bootstrapper, parameters, &mut supply, &input)?;
        let (found, largest) = (decryptor.decrypt(&out)?, out.estimate.bound());
        checked &= found.iter().zip(&values).all(|(found, value)| (found - value).norm() <= largest);
        bound = bound.max(largest);
        errors.add(&found, &values, literal.values);
        if run == 0 {
            keygen_s = supply.keygen;
        }
        if run < untimed {
            continue;
        }
        seconds.push(supply.wall);
        processor.push(supply.stages.values().sum());
        for (&stage, &time) in &supply.stages {
            *stages.entry(stage).or_insert(0.0) += time;
        }
    }
    seconds.sort_by(f64::total_cmp);
    processor.sort_by(f64::total_cmp);
    Ok(Timing {
        seconds,
        processor_seconds: processor,
        stages,
        keygen_s,
        streamed: supply.streamed,
        worst_bits: -errors.largest.log2(),
        bound_bits: -bound.log2(),
        checked,
        threads: threads(),
        peak_rss_bytes: peak_rss(),
    })
}

impl DesignRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let request = &self.request;
        let digits = match request.design.digits {
            DigitRule::Static { alpha } => alpha.to_string(),
            DigitRule::Dynamic { dropped_primes: false } => "\"dynamic\"".into(),
            DigitRule::Dynamic { dropped_primes: true } => "\"dynamic_dropped\"".into(),
        };
        let mut out = format!(
            "{{\"log_n\":{},\"depth\":{},\"special\":{},\"alpha\":{digits},\"key_levels\":\"{}\",\"coalescing\":{},\"top\":{},\
             \"log_qp\":{:.2},\"rotation_keys\":{},\"formula_bytes\":{},\"key_bytes\":{},\"step_bytes\":{}",
            request.log_n,
            request.depth,
            request.special,
            format!("{:?}", request.design.levels).to_lowercase(),
            request.coalescing,
            self.top,
            self.log_qp,
            self.rotation_keys,
            self.formula_bytes,
            self.key_bytes,
            self.step_bytes,
        );
        if let Some(timing) = &self.timing {
            let runs = timing.seconds.len() as f64;
            let stages: Vec<String> = timing
                .stages
                .iter()
                .map(|(stage, seconds)| format!("\"{stage}\":{:.6}", seconds / runs))
                .collect();
            out += &format!(
                ",\"seconds\":{:.6?},\"processor_seconds\":{:.6?},\"stage_processor_seconds\":{{{}}},\"keygen_s\":{:.3},\"streamed\":{},\
                 \"worst_bits\":{:.3},\"bound_bits\":{:.3},\"checked\":{},\"threads\":{},\"peak_rss_bytes\":{}",
                timing.seconds,
                timing.processor_seconds,
                stages.join(","),
                timing.keygen_s,
                timing.streamed,
                timing.worst_bits,
                timing.bound_bits,
                timing.checked,
                timing.threads,
                timing.peak_rss_bytes.map_or("null".into(), |bytes| bytes.to_string()),
            );
        }
        out.push('}');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keywright_circuits::bootstrapping::KeyLevels;
    use keywright_rlwe::{Parameters, ParametersLiteral};

    #[test]
    fn no_digit_of_the_family_is_closed_early_and_every_key_is_within_the_bound() {
        for depth in 1..=18 {
            let most = most_special(depth).unwrap();
            let (q, p) = widths(depth, most);
            // Only the widths of these primes matter.
            let mut literal = ParametersLiteral::from_bits(11, &q, &p).unwrap();
            literal.security = Security::InsecureForExperiments;
            let rlwe = Parameters::new(literal).unwrap();
            let element = KeyElement::Relinearization;
            for alpha in 1..=most {
                for level in [3, rlwe.max_level() - 3, rlwe.max_level()] {
                    let special = rlwe.special_primes().take(alpha).collect();
                    let spec = KeySpec { element, level, alpha, special, seeded: true, subring: None };
                    let digits = spec.validate(&rlwe).unwrap();
                    assert_eq!(digits.len(), (level + 1).div_ceil(alpha), "depth {depth}, {spec:?}");
                    assert!(rlwe.log2_q(level) + spec.special_bits(&rlwe) <= 1747.0);
                }
            }
            // One more prime of 50 bits would exceed the bound.
            assert!(most == 1 || q.iter().chain(&p).sum::<u32>() + 50 > 1747, "depth {depth}: {most}");
        }
    }

    #[test]
    fn streamed_and_held_keys_measure_the_same_bootstrapping() {
        for (memory, streamed) in [(0, true), (usize::MAX, false)] {
            let digits = DigitRule::Dynamic { dropped_primes: true };
            let design = KeyDesign { digits, levels: KeyLevels::Needed };
            let request =
                DesignRequest { log_n: 10, depth: 1, special: 2, design, coalescing: false, runs: 1, memory };
            let record = run_design(&request).unwrap();
            let timing = record.timing.clone().unwrap();
            assert_eq!((timing.streamed, timing.checked, timing.seconds.len()), (streamed, true, 1));
            assert!(timing.worst_bits > timing.bound_bits && timing.stages.len() == 4);
            assert!(record.step_bytes < record.key_bytes);
            assert!(
                record
                    .json()
                    .starts_with("{\"log_n\":10,\"depth\":1,\"special\":2,\"alpha\":\"dynamic_dropped\"")
            );
        }
        let absent = DigitRule::Static { alpha: 3 };
        let design = KeyDesign { digits: absent, levels: KeyLevels::Needed };
        let request =
            DesignRequest { log_n: 10, depth: 1, special: 2, design, coalescing: false, runs: 0, memory: 0 };
        assert!(matches!(run_design(&request), Err(StudyError::Circuit(CircuitError::Stage { .. }))));
    }
}
