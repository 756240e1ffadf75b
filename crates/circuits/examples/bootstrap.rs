//! Measures one bootstrapping preset:
//! `cargo run --release -p keywright-circuits --example bootstrap -- NAME [VECTORS] [coefficients|streamed]`. The last
//! word keeps diagonals as coefficients, or makes them for each use, instead of keeping them encoded.
//!
//! Prints the levels and keys of every stage, the bytes and seconds of key generation and precomputation, and the
//! seconds of every stage. Then it prints the precision of random values with parts uniform in `[-1, 1]`: `-log2` of
//! the largest and of the mean error of a part, over all slots of all vectors. First comes the error that bootstrapping
//! adds to the decrypted input, with the plan's prediction. Then comes the error of the result, which includes that of
//! encryption, with the bound of its estimate. With 0 vectors it prints only the plan and its prediction, and makes no
//! key.
#![expect(clippy::print_stdout, reason = "a report")]

use std::error::Error;
use std::time::Instant;

use keywright_circuits::bootstrapping::eval_mod::eval_mod;
use keywright_circuits::bootstrapping::{Bootstrapper, BootstrapperPlan, Values, bootstrap_preset};
use keywright_circuits::linear_transform::Storage;
use keywright_ckks::{Ciphertext, Complex64, Decryptor, Encryptor, Evaluator, Magnitude};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{EvaluationKeys, KeyGenerator, SecretKey};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Splitmix64, uniform in `[-1, 1)`.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Processor seconds of this thread, where the system reports them: other load does not lengthen these.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn timed<T>(what: &str, f: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let (start, before) = (Instant::now(), processor_seconds());
    let out = f()?;
    let busy = before.and_then(|before| processor_seconds().map(|after| after - before));
    let busy = busy.map_or(String::new(), |seconds| format!("{seconds:8.3} s of this thread"));
    println!("  {what:<16} {:8.3} s {busy}", start.elapsed().as_secs_f64());
    Ok(out)
}

/// Peak resident memory of this process in bytes, where the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Largest and mean error of the parts of complex values.
#[derive(Default)]
struct Errors {
    largest: f64,
    sum: f64,
    count: f64,
}

impl Errors {
    fn add(&mut self, result: &[Complex64], expected: &[Complex64]) {
        let parts = result.iter().zip(expected).flat_map(|(a, b)| [a.re - b.re, a.im - b.im]);
        for error in parts.map(f64::abs) {
            (self.largest, self.sum) = (self.largest.max(error), self.sum + error);
            self.count += 1.0;
        }
    }
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "worst {:.2}, mean {:.2}", -self.largest.log2(), -(self.sum / self.count).log2())
    }
}

/// Runs the stages one after the other, and prints the time of each.
fn staged(bootstrapper: &Bootstrapper, evaluator: &Evaluator<'_>, input: &Ciphertext) -> Outcome<()> {
    let plan = bootstrapper.plan();
    let coefficients =
        timed("slots_to_coeffs", || Ok(bootstrapper.slots_to_coeffs().evaluate(evaluator, input)?))?;
    let parts = timed("raise_to_slots", || Ok(bootstrapper.raise_to_slots(evaluator, &coefficients)?))?;
    timed("eval_mod", || {
        for part in &parts {
            eval_mod(evaluator, &plan.eval_mod, part, plan.ratio(), plan.scale)?;
        }
        Ok(())
    })
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("name a preset")?;
    let vectors: u64 = arguments.next().map_or(Ok(3), |count| count.parse())?;
    let kept = match arguments.next().as_deref() {
        None => Some(Storage::Encoded),
        Some("coefficients") => Some(Storage::Coefficients),
        Some("streamed") => None,
        Some(other) => {
            return Err(format!("{other} is not an option; there are: coefficients, streamed").into());
        }
    };
    let preset = bootstrap_preset(&name)?;
    let parameters = preset.parameters()?;
    println!("{parameters:?}");
    let plan = BootstrapperPlan::new(&parameters, &preset.bootstrapper)?;
    let log_q = parameters.rlwe().log2_q(plan.mod_raise.level);
    println!(
        "levels: slots_to_coeffs from {}, raised to {} ({log_q:.0} bits), eval_mod from {}, result at {}: {} left",
        plan.input_level(),
        plan.mod_raise.level,
        plan.coeffs_to_slots.output_level(),
        plan.output_level(),
        plan.levels_left()
    );
    let sine = &plan.eval_mod.approximation;
    println!(
        "eval_mod: K {}, cosine of degree {}, {} double angles, arcsine of degree {}, {:.1} bits, {} relinearizations",
        sine.k,
        sine.cosine.degree(),
        sine.double_angles,
        sine.arcsine.degree(),
        sine.bits(),
        plan.eval_mod.relinearizations().len()
    );
    for factor in plan.slots_to_coeffs.factors.iter().chain(&plan.coeffs_to_slots.factors) {
        let alpha = factor.keys.first().map_or(0, |key| key.alpha);
        let (bsgs, special) = (&factor.bsgs, factor.special.len());
        println!(
            "factor at level {:2}: {:2} diagonals, {} + {} steps, alpha {alpha}, {special} special primes, {:.1} MB of keys",
            factor.level,
            bsgs.diagonals,
            bsgs.babies.len(),
            bsgs.giants.len(),
            factor.keys.iter().map(|k| k.bytes(parameters.rlwe())).sum::<Result<usize, _>>()? as f64 / 1e6
        );
    }
    if let Some(prediction) = plan.prediction(&parameters)? {
        for (stage, deviation) in &prediction.stages {
            println!("predicted root mean square error, {stage}: {:.1} bits", -deviation.log2());
        }
        let values = 1.max(vectors as usize);
        let (worst, mean, failure) =
            (prediction.worst_bits(values), prediction.mean_bits(), prediction.log2_failure);
        println!(
            "predicted of {values} vectors: worst {worst:.2}, mean {mean:.2}; a bootstrap fails with 2^{failure:.0}"
        );
    }
    if vectors == 0 {
        return Ok(());
    }

    let secret = SecretKey::sample(parameters.rlwe(), &mut SecretRng::system()?)?;
    let mut generator = KeyGenerator::new(&secret, SecretRng::system()?);
    let public = generator.public_key();
    let mut keys = EvaluationKeys::new(parameters.rlwe());
    timed("keys", || Ok(plan.generate_keys(&mut generator, &mut keys)?))?;
    let bootstrapper = timed("precomputation", || Ok(Bootstrapper::with_storage(&parameters, &plan, kept)?))?;
    println!(
        "{} keys of {:.3} GB, diagonals of {:.3} GB",
        keys.len(),
        keys.bytes() as f64 / 1e9,
        bootstrapper.bytes() as f64 / 1e9
    );

    let evaluator = Evaluator::new(&parameters, &keys)?;
    let mut encryptor = Encryptor::new(&parameters, &public, SecretRng::system()?)?
        .declaring(Magnitude::new(std::f64::consts::SQRT_2)?);
    let decryptor = Decryptor::new(&parameters, &secret)?;
    let (mut state, mut added, mut total) = (1, Errors::default(), Errors::default());
    for vector in 0..vectors {
        let imaginary = if preset.bootstrapper.values == Values::Complex { 1.0 } else { 0.0 };
        let values: Vec<Complex64> = (0..1u64 << preset.bootstrapper.log_slots)
            .map(|_| Complex64::new(uniform(&mut state), imaginary * uniform(&mut state)))
            .collect();
        let input = encryptor.encrypt(&values, preset.bootstrapper.log_slots, plan.input_level())?;
        // Not the first vector: it touches memory and makes plans.
        if vector + 1 == vectors {
            staged(&bootstrapper, &evaluator, &input)?;
        }
        let out = timed("bootstrap", || Ok(bootstrapper.bootstrap(&evaluator, &input)?))?;
        let result = decryptor.decrypt(&out)?;
        added.add(&result, &decryptor.decrypt(&input)?);
        total.add(&result, &values);
        println!("  bits so far: added {added}; in all {total}, bound {:.2}", out.estimate.precision_bits());
    }
    if let Some(bytes) = peak_memory() {
        println!("peak memory {:.2} GB", bytes as f64 / 1e9);
    }
    Ok(())
}
