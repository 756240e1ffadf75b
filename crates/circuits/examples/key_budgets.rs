//! Key bytes against time:
//! `cargo run --release -p keywright-circuits --example key_budgets -- PRESET [RUNS [BUDGET..]]`. A budget is
//! `fastest`, `fewest` or a number of bytes. With 0 runs nothing is measured.
//!
//! Prints the ways to evaluate each factor, with the bytes of their keys and their predicted work. Then, for each
//! budget, prints the choice and the median seconds of `slots_to_coeffs`, of `mod_raise` with `coeffs_to_slots`, and of
//! a whole bootstrap: elapsed, and of all threads.
#![expect(clippy::print_stdout, reason = "a report")]

use std::error::Error;
use std::time::Instant;

use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, FactorPlan, KeyBudget, bootstrap_preset,
};
use keywright_ckks::{CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, Magnitude};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyGenerator, KeySpec, Parameters, SecretKey};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn parse(budget: &str) -> Outcome<KeyBudget> {
    Ok(match budget {
        "fastest" => KeyBudget::Fastest,
        "fewest" => KeyBudget::Fewest,
        bytes => KeyBudget::Bytes(bytes.parse()?),
    })
}

fn describe(factor: &FactorPlan, log_n: u32) -> String {
    let bsgs = &factor.bsgs;
    format!(
        "level {:2}: {:2} diagonals, {:2} babies in {} tiers, {:2} giants, {:2} keys, {:2} special primes, {:6.1} MB, work {:6.0}",
        factor.level,
        bsgs.diagonals,
        bsgs.babies.len(),
        bsgs.hops() + 1,
        bsgs.giants.len(),
        factor.keys.len(),
        factor.special.len(),
        factor.key_bytes as f64 / 1e6,
        factor.work / (f64::from(log_n) / 2.0)
    )
}

/// Processor seconds of all threads of this process so far, where the system reports them.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = text
        .rsplit(')')
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .filter_map(|f| f.parse().ok())
        .collect();
    // The state is not a number: user and system time are fields 14 and 15 of all, in hundredths of a second.
    fields.get(10).zip(fields.get(11)).map_or(0.0, |(user, system)| (user + system) / 100.0)
}

/// Elapsed seconds and processor seconds.
fn timed<T>(f: impl FnOnce() -> Outcome<T>) -> Outcome<(T, [f64; 2])> {
    let (start, before) = (Instant::now(), processor_seconds());
    let out = f()?;
    Ok((out, [start.elapsed().as_secs_f64(), processor_seconds() - before]))
}

fn medians(mut runs: Vec<[f64; 2]>) -> String {
    let mut figure = |i: usize| {
        runs.sort_by(|a, b| a[i].total_cmp(&b[i]));
        let at = |k: usize| runs.get(k).map_or(0.0, |run| run[i]);
        (at(runs.len() / 2), at(0), at(runs.len().saturating_sub(1)))
    };
    let ((wall, least, most), (busy, ..)) = (figure(0), figure(1));
    format!("{wall:.3} s ({least:.3} to {most:.3}), {busy:.2} s on processors")
}

/// Bytes of a key's residues in a file: a limb takes as many bits per residue as its prime has.
fn packed_bytes(key: &KeySpec, rlwe: &Parameters) -> Outcome<usize> {
    let bits = key.primes().map(|i| 64 - rlwe.modulus(i).value().leading_zeros() as usize).sum::<usize>();
    Ok(key.validate(rlwe)?.len() * rlwe.n() * bits / 8)
}

fn measure(parameters: &CkksParameters, literal: &BootstrapperLiteral, runs: usize) -> Outcome<()> {
    let rlwe = parameters.rlwe();
    let (plan, planning) = timed(|| Ok(BootstrapperPlan::new(parameters, literal)?))?;
    let factors = || plan.slots_to_coeffs.factors.iter().chain(&plan.coeffs_to_slots.factors);
    let keys = plan.required_keys();
    println!(
        "{:?}: {} keys of {:.3} GB, {:.3} GB in a file, work of the factors {:.0}; planned in {:.3} s",
        literal.budget,
        keys.len(),
        plan.key_bytes(rlwe)? as f64 / 1e9,
        keys.iter().map(|key| packed_bytes(key, rlwe)).sum::<Outcome<usize>>()? as f64 / 1e9,
        factors().map(|factor| factor.work).sum::<f64>() * 2.0 / f64::from(rlwe.log_n()),
        planning[0],
    );
    for factor in factors() {
        println!("  {}", describe(factor, rlwe.log_n()));
    }
    for key in &keys {
        if factors().all(|factor| !factor.keys.contains(key)) {
            println!("  {} at level {}: {:.1} MB", key.element, key.level, key.bytes(rlwe)? as f64 / 1e6);
        }
    }
    if runs == 0 {
        return Ok(());
    }
    let secret = SecretKey::sample(rlwe, &mut SecretRng::system()?)?;
    let mut generator = KeyGenerator::new(&secret, SecretRng::system()?);
    let public = generator.public_key();
    let (keys, keygen) = timed(|| Ok(generator.evaluation_keys(&plan.required_keys())?))?;
    let (bootstrapper, encoded) = timed(|| Ok(Bootstrapper::new(parameters, &plan)?))?;
    println!(
        "  keys made in {}; diagonals of {:.3} GB in {}",
        medians(vec![keygen]),
        bootstrapper.bytes() as f64 / 1e9,
        medians(vec![encoded])
    );
    let evaluator = Evaluator::new(parameters, &keys)?;
    let values: Vec<Complex64> =
        (0..1u64 << literal.log_slots).map(|k| Complex64::cis(k as f64 * 0.7)).collect();
    let input = Encryptor::new(parameters, &public, SecretRng::system()?)?
        .declaring(Magnitude::new(std::f64::consts::SQRT_2)?)
        .encrypt(&values, literal.log_slots, plan.input_level())?;
    let (mut first, mut second, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..=runs {
        let (low, stage) = timed(|| Ok(bootstrapper.slots_to_coeffs().evaluate(&evaluator, &input)?))?;
        let (_, slots) = timed(|| Ok(bootstrapper.raise_to_slots(&evaluator, &low)?))?;
        let (out, total) = timed(|| Ok(bootstrapper.bootstrap(&evaluator, &input)?))?;
        // Not the first run: it touches memory and makes plans.
        if run > 0 {
            first.push(stage);
            second.push(slots);
            whole.push(total);
        }
        if run == runs {
            let result = Decryptor::new(parameters, &secret)?.decrypt(&out)?;
            let error = result.iter().zip(&values).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            println!("  worst slot {:.1} bits, bound {:.1}", -error.log2(), out.estimate.precision_bits());
        }
    }
    println!("  slots_to_coeffs {}", medians(first));
    println!("  mod_raise and coeffs_to_slots {}", medians(second));
    println!("  bootstrap {}", medians(whole));
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let preset = bootstrap_preset(&arguments.next().ok_or("name a preset")?)?;
    let runs: usize = arguments.next().map_or(Ok(3), |count| count.parse())?;
    let budgets: Vec<KeyBudget> = arguments.map(|budget| parse(&budget)).collect::<Outcome<_>>()?;
    let parameters = preset.parameters()?;
    let plan = BootstrapperPlan::new(&parameters, &preset.bootstrapper)?;
    for (stage, options) in plan.factor_options(&parameters)? {
        println!("{stage}");
        for option in &options {
            println!("  {}", describe(option, parameters.rlwe().log_n()));
        }
    }
    for budget in budgets {
        measure(&parameters, &BootstrapperLiteral { budget, ..preset.bootstrapper.clone() }, runs)?;
    }
    Ok(())
}
