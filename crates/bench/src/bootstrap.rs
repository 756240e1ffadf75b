//! Bootstrapping: its keys, its matrices, its stages, its precision.

use std::time::Instant;

use keywright_circuits::bootstrapping::eval_mod::eval_mod;
use keywright_circuits::bootstrapping::mod_raise::{mod_raise, switch_to_ephemeral};
use keywright_circuits::bootstrapping::{
    BOOTSTRAP_PRESETS, Bootstrapper, BootstrapperLiteral, BootstrapperPlan, ErrorPrediction, KeyBudget,
    Stage, Values, bootstrap_preset,
};
use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Decryptor, Encryptor, Evaluator, Magnitude};
use keywright_rlwe::{EvaluationKeys, KeyGenerator, SecretKey, Security, threads};

use crate::measuring::{PartErrors, peak_rss, random_values, rng};
use crate::{BenchError, BootstrapFigures, Record};

/// An insecure bootstrapping that takes a second, for tests.
const QUICK: &str = "quick";

/// The bootstrapping to measure.
#[derive(Debug, Clone)]
pub struct BootstrapRequest {
    /// One of [`bootstrap_names`].
    pub preset: String,
    /// Timed bootstraps.
    pub runs: usize,
}

/// A report during a measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Progress of a phase, in steps.
    #[expect(missing_docs, reason = "names that say all")]
    Progress { phase: &'static str, done: usize, total: usize },
    /// The final record.
    Record(Box<Record>),
}

/// The shipped presets and the quick one.
pub fn bootstrap_names() -> Vec<&'static str> {
    BOOTSTRAP_PRESETS.iter().map(|preset| preset.name).chain([QUICK]).collect()
}

/// Parameters and literal of one of [`bootstrap_names`].
///
/// # Errors
/// [`BenchError::Preset`] for any other name.
pub fn bootstrap_parameters(name: &str) -> Result<(CkksParameters, BootstrapperLiteral), BenchError> {
    if name == QUICK {
        let mut q = vec![50, 40, 40, 45, 45, 45];
        q.extend([50; 7].iter().chain(&[59, 60, 50, 50, 50]));
        let mut literal = CkksLiteral::from_bits(11, &q, &[50; 3], 45.0)?;
        literal.rlwe.security = Security::InsecureForExperiments;
        let bootstrapper = BootstrapperLiteral {
            log_slots: 10,
            slots_to_coeffs: 2,
            coeffs_to_slots: 2,
            budget: KeyBudget::Fastest,
            log2_failure: -40.0,
            cosine_degree: 62,
            double_angles: 1,
            ..BootstrapperLiteral::default()
        };
        return Ok((CkksParameters::new(literal)?, bootstrapper));
    }
    if !bootstrap_names().contains(&name) {
        return Err(BenchError::Preset { name: name.into(), known: bootstrap_names().join(", ") });
    }
    let preset = bootstrap_preset(name)?;
    Ok((preset.parameters()?, preset.bootstrapper))
}

fn seconds<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let start = Instant::now();
    let out = work()?;
    Ok((out, start.elapsed().as_secs_f64()))
}

/// Seconds of each stage.
fn stages(
    bootstrapper: &Bootstrapper,
    evaluator: &Evaluator<'_>,
    input: &Ciphertext,
) -> Result<[(Stage, f64); 4], BenchError> {
    let plan = bootstrapper.plan();
    let (coefficients, first) = seconds(|| bootstrapper.slots_to_coeffs().evaluate(evaluator, input))?;
    let stage = bootstrapper.coeffs_to_slots();
    let (parts, second, third) = if stage.plan().is_raised() {
        let (raised, second) = seconds(|| switch_to_ephemeral(evaluator, &plan.mod_raise, &coefficients))?;
        let (parts, third) = seconds(|| stage.evaluate_raised(evaluator, &raised))?;
        (parts, second, third)
    } else {
        let (raised, second) = seconds(|| mod_raise(evaluator, &plan.mod_raise, &coefficients))?;
        let (parts, third) = seconds(|| stage.evaluate(evaluator, &raised))?;
        (parts, second, third)
    };
    let ratio = plan.coeffs_to_slots.input_scale / coefficients.scale;
    let reduce = |part| eval_mod(evaluator, &plan.eval_mod, part, ratio, plan.scale);
    let (_, fourth) = seconds(|| parts.iter().map(reduce).collect::<Result<Vec<_>, _>>())?;
    Ok([
        (Stage::SlotsToCoeffs, first),
        (Stage::ModRaise, second),
        (Stage::CoeffsToSlots, third),
        (Stage::EvalMod, fourth),
    ])
}

/// Makes keys and matrices, and bootstraps one vector untimed and `runs` timed ones with different random values.
/// Decrypts each and compares it with its values, its bound and its decrypted input. Then times the stages of a last
/// one. `report` gets progress and finally the record, and returns whether to continue.
///
/// # Errors
/// [`BenchError::Preset`], [`BenchError::Runs`]; the errors of the engine.
pub fn run_bootstrap(
    request: &BootstrapRequest,
    report: &mut dyn FnMut(Event) -> bool,
) -> Result<(), BenchError> {
    if request.runs == 0 {
        return Err(BenchError::Runs);
    }
    if !report(Event::Progress { phase: "parameters", done: 0, total: 1 }) {
        return Ok(());
    }
    let (parameters, literal) = bootstrap_parameters(&request.preset)?;
    let rlwe = parameters.rlwe();
    let plan = BootstrapperPlan::new(&parameters, &literal)?;
    let (prediction, sine) = (plan.prediction(&parameters)?, &plan.eval_mod.approximation);
    let predicted = |of: &dyn Fn(&ErrorPrediction) -> f64| prediction.as_ref().map_or(f64::NAN, of);
    let secret = SecretKey::sample(rlwe, &mut rng(1))?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let public = generator.public_key();
    let specs = plan.required_keys();
    let mut keys = EvaluationKeys::new(rlwe);
    if !report(Event::Progress { phase: "keys", done: 0, total: specs.len() }) {
        return Ok(());
    }
    let start = Instant::now();
    for (key, done) in generator.switching_keys(&specs)?.zip(1..) {
        keys.insert(key?)?;
        if !report(Event::Progress { phase: "keys", done, total: specs.len() }) {
            return Ok(());
        }
    }
    let keygen_s = start.elapsed().as_secs_f64();
    if !report(Event::Progress { phase: "matrices", done: 0, total: 1 }) {
        return Ok(());
    }
    let (bootstrapper, precompute_s) = seconds(|| Bootstrapper::new(&parameters, &plan))?;

    let evaluator = Evaluator::new(&parameters, &keys)?;
    let mut encryptor =
        Encryptor::new(&parameters, &public, rng(4))?.declaring(Magnitude::new(std::f64::consts::SQRT_2)?);
    let decryptor = Decryptor::new(&parameters, &secret)?;
    let mut source = rng(3);
    let (mut added, mut result) = (PartErrors::default(), PartErrors::default());
    let (mut bounded, mut bound) = (true, 0.0);
    let mut times = Vec::new();
    let total = request.runs + 2;
    let phase = "bootstraps";
    for run in 0..=request.runs {
        if !report(Event::Progress { phase, done: run, total }) {
            return Ok(());
        }
        let values = random_values(&mut source, &literal);
        let input = encryptor.encrypt(&values, literal.log_slots, plan.input_level())?;
        let (out, elapsed) = seconds(|| bootstrapper.bootstrap(&evaluator, &input))?;
        let decrypted = decryptor.decrypt(&out)?;
        added.add(&decrypted, &decryptor.decrypt(&input)?, literal.values);
        result.add(&decrypted, &values, literal.values);
        bound = out.error_bound();
        bounded &= decrypted.iter().zip(&values).all(|(result, value)| (result - value).norm() <= bound);
        // The first one touches memory and makes plans.
        if run > 0 {
            times.push(elapsed);
        }
    }
    times.sort_by(f64::total_cmp);
    if !report(Event::Progress { phase, done: request.runs + 1, total }) {
        return Ok(());
    }
    let input =
        encryptor.encrypt(&random_values(&mut source, &literal), literal.log_slots, plan.input_level())?;
    let stages = stages(&bootstrapper, &evaluator, &input)?.map(|(stage, s)| (stage.name(), s));
    report(Event::Record(Box::new(Record {
        work: "bootstrap",
        log_n: rlwe.log_n(),
        level: plan.input_level(),
        alpha: None,
        seeded: true,
        threads: threads(),
        backend: rlwe.ring().backend().kind().name(),
        times,
        limit_s: None,
        bytes: keys.bytes(),
        checked: bounded,
        peak_rss_bytes: peak_rss(),
        bootstrap: Some(BootstrapFigures {
            preset: request.preset.clone(),
            levels_left: plan.levels_left(),
            usable_bits: rlwe.log2_q(plan.output_level()) - rlwe.log2_q(plan.input_level()),
            log_scale: parameters.scale().log2(),
            slots: 1 << literal.log_slots,
            values: if literal.values == Values::Complex { "complex" } else { "real" },
            approximation: [sine.k, sine.cosine.degree(), sine.double_angles as usize, sine.arcsine.degree()],
            log2_failure: predicted(&|prediction| prediction.log2_failure),
            vectors: request.runs + 1,
            worst_bits: added.worst_bits(),
            mean_bits: added.mean_bits(),
            predicted_worst_bits: predicted(&|prediction| prediction.worst_bits(request.runs + 1)),
            predicted_mean_bits: predicted(&ErrorPrediction::mean_bits),
            result_worst_bits: result.worst_bits(),
            bound_bits: -bound.log2(),
            keys: keys.len(),
            key_bytes: keys.bytes(),
            matrix_bytes: bootstrapper.bytes(),
            keygen_s,
            precompute_s,
            stages,
        }),
    })));
    Ok(())
}
