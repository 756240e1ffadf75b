//! The parts of boosted deflation, measured separately: table 3 of Aikata, Krieger and Sinha Roy.
//!
//! | mode | sent | server, before the program | after it | answer |
//! |---|---|---|---|---|
//! | `plain` | slots, all primes | nothing | nothing | slots |
//! | `deflate` | coefficients, all primes | `coeffs_to_slots` | `slots_to_coeffs` | coefficients |
//! | `boost` | slots, `q_0` | bootstrapping, `mod_raise` first | nothing | slots |
//! | `boost_low` | slots, the primes of `slots_to_coeffs` | bootstrapping, `slots_to_coeffs` first | nothing | slots |
//! | `naive` | coefficients, the primes of a `coeffs_to_slots` | that, then `boost` | `slots_to_coeffs` | coefficients |
//! | `boosted_deflation` | coefficients, `q_0` | `mod_raise`, `coeffs_to_slots`, `eval_mod` | `slots_to_coeffs` | coefficients |
//!
//! `boost_low` is not in the paper. It is a bootstrapping of this library that takes slots at the lowest possible
//! levels. The program is empty, so all of the server's time is the mode's. Numbers are uniform fixed-point numbers.
//! Encryption is from numbers to bytes under the public key, decryption from bytes to numbers. The full library
//! encrypts and decrypts slots, and the thin client encrypts and decrypts coefficients modulo `q_0`. Every answer is
//! decrypted and compared with what was sent, within the answer's own bound.

use std::fmt::Write;
use std::time::Instant;

use keywright_bench::{bootstrap_parameters, measuring::rng};
use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, CoeffsToSlots, CoeffsToSlotsPlan, Dft, Order,
    SlotsToCoeffs, SlotsToCoeffsPlan, Values,
};
use keywright_ckks::{
    Ciphertext, CkksParameters, Complex64, Decryptor, Encryptor, ErrorEstimate, Evaluator, Magnitude, Packing,
};
use keywright_client::{Client, ClientParameters};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{EvaluationKeys, KeyGenerator, KeySpec, SecretKey, threads};
use keywright_thin_server as server;
use keywright_wire::{Wire, WireSecret};

use crate::StudyError;

/// Bits of a number after the point, if the scale has as many. No mode keeps more.
const FRACTION_BITS: u32 = 40;

/// Modes to compare, and their parameters.
#[derive(Debug, Clone)]
pub struct ModesRequest {
    /// One of [`keywright_bench::bootstrap_names`], with all slots in use.
    pub preset: String,
    /// What the slots hold: `N/2` real numbers, or `N` as real and imaginary parts.
    pub values: Values,
    /// Timed round trips of each mode, after an untimed one.
    pub runs: usize,
}

/// Times, bytes and errors of one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeRecord {
    /// The mode's name.
    pub mode: &'static str,
    /// `log2(N)`.
    pub log_n: u32,
    /// Numbers in a ciphertext.
    pub numbers: usize,
    /// Primes of what is sent.
    pub primes: usize,
    /// Seconds from numbers to bytes, sorted, as the other times.
    pub encrypt: Vec<f64>,
    /// Seconds from bytes to numbers.
    pub decrypt: Vec<f64>,
    /// Seconds of the server in addition to the program.
    pub server: Vec<f64>,
    /// Of these, the seconds of the bootstrapping, if there is one.
    pub bootstrap: Vec<f64>,
    /// Bytes to the server.
    pub bytes_up: usize,
    /// Bytes of the answer.
    pub bytes_down: usize,
    /// Bytes of the evaluation keys.
    pub key_bytes: usize,
    /// Levels that the program has.
    pub levels: usize,
    /// Largest error of a number.
    pub worst: f64,
    /// Mean error.
    pub mean: f64,
    /// Smallest bound on an answer's error: all errors are below it.
    pub bound: f64,
    /// Threads shared among.
    pub threads: usize,
}

impl ModeRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let mut out = format!(
            "{{\"mode\":\"{}\",\"log_n\":{},\"numbers\":{},\"primes\":{},\"bytes_up\":{},\"bytes_down\":{},\"key_bytes\":{},\
             \"levels\":{},\"worst\":{:e},\"mean\":{:e},\"bound\":{:e},\"threads\":{},\"checked\":true",
            self.mode,
            self.log_n,
            self.numbers,
            self.primes,
            self.bytes_up,
            self.bytes_down,
            self.key_bytes,
            self.levels,
            self.worst,
            self.mean,
            self.bound,
            self.threads
        );
        for (name, times) in [
            ("encrypt_s", &self.encrypt),
            ("decrypt_s", &self.decrypt),
            ("server_s", &self.server),
            ("bootstrap_s", &self.bootstrap),
        ] {
            // Writing to a string cannot fail.
            let _ = write!(out, ",\"{name}\":{times:.7?}");
        }
        out + "}"
    }
}

/// Form of a message: slots or coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Slots,
    Coefficients,
}

/// The data owner: a full client and a thin client with the same secret.
struct Owner<'k> {
    parameters: CkksParameters,
    values: Values,
    thin: ClientParameters,
    thin_client: Client,
    sender: keywright_client::Encryptor,
    encryptor: Encryptor<'k>,
    decryptor: Decryptor<'k>,
}

impl Owner<'_> {
    fn unit(&self) -> f64 {
        (-f64::from(self.thin.fixed_point().fraction_bits())).exp2()
    }

    /// Bytes of the numbers, as slots or as coefficients, modulo the primes of a level.
    fn full(&mut self, numbers: &[i64], form: Form, level: usize) -> Result<Vec<u8>, StudyError> {
        let (unit, log_n) = (self.unit(), self.thin.log_n());
        let value = |&number: &i64| number as f64 * unit;
        let ciphertext = match (form, self.values) {
            (Form::Slots, Values::Complex) => {
                let (re, im) = numbers.split_at(numbers.len() / 2);
                let slots: Vec<_> =
                    re.iter().zip(im).map(|(re, im)| Complex64::new(value(re), value(im))).collect();
                self.encryptor.encrypt(&slots, log_n - 1, level)?
            }
            // Each ciphertext of a pair has real values.
            (Form::Slots, Values::Real | Values::Pair) => {
                let slots: Vec<_> = numbers.iter().map(value).collect();
                self.encryptor.encrypt_real(&slots, Packing::Slots { log_slots: log_n - 1 }, level)?
            }
            (Form::Coefficients, _) => {
                let mut coefficients = vec![0.0; 1 << log_n];
                for (index, number) in numbers.iter().enumerate() {
                    coefficients[self.thin.layout().position(log_n, index)] = value(number);
                }
                self.encryptor.encrypt_real(&coefficients, Packing::Coefficients, level)?
            }
        };
        Ok(ciphertext.to_bytes(&self.parameters)?)
    }

    /// Bytes of the thin client.
    fn thin(&mut self, numbers: &[i64]) -> Result<Vec<u8>, StudyError> {
        let mut bytes = Vec::with_capacity(self.thin.ciphertext_bytes());
        self.sender.encrypt(numbers, keywright_client::Form::Evaluations, &mut bytes)?;
        Ok(bytes)
    }

    /// The numbers of an answer, and the bound on their error.
    fn open(&mut self, answer: &[u8], form: Form, count: usize) -> Result<Vec<f64>, StudyError> {
        match form {
            Form::Slots => {
                let slots = self.decryptor.decrypt(&Ciphertext::from_bytes(answer, &self.parameters)?)?;
                let parts = slots.iter().map(|slot| slot.re).chain(slots.iter().map(|slot| slot.im));
                Ok(parts.take(count).collect())
            }
            Form::Coefficients => {
                let mut numbers = vec![0; count];
                self.thin_client.decrypt(answer, &mut numbers)?;
                let unit = self.unit();
                Ok(numbers.into_iter().map(|number| number as f64 * unit).collect())
            }
        }
    }
}

fn seconds<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let start = Instant::now();
    let out = work()?;
    Ok((out, start.elapsed().as_secs_f64()))
}

/// A server's answer, and the seconds of its bootstrapping.
type Served = Result<(Ciphertext, Option<f64>), StudyError>;

/// The steps of one mode.
struct Mode<'m> {
    name: &'static str,
    form: Form,
    /// Level of a full client's ciphertexts. A thin client's have a format of their own.
    level: Option<usize>,
    /// Levels that the program has.
    levels: usize,
    key_bytes: usize,
    serve: &'m dyn Fn(&Ciphertext) -> Served,
}

fn measure(
    owner: &mut Owner<'_>,
    source: &mut SecretRng,
    runs: usize,
    mode: &Mode<'_>,
) -> Result<ModeRecord, StudyError> {
    let count = owner.thin.capacity();
    let one = owner.thin.fixed_point().max();
    let mut record = ModeRecord {
        mode: mode.name,
        log_n: owner.thin.log_n(),
        numbers: count,
        primes: mode.level.unwrap_or(0) + 1,
        encrypt: Vec::new(),
        decrypt: Vec::new(),
        server: Vec::new(),
        bootstrap: Vec::new(),
        bytes_up: 0,
        bytes_down: 0,
        key_bytes: mode.key_bytes,
        levels: mode.levels,
        worst: 0.0,
        mean: 0.0,
        bound: f64::INFINITY,
        threads: threads(),
    };
    for run in 0..=runs {
        let numbers: Vec<i64> =
            (0..count).map(|_| (source.next_word() % (2 * one as u64 + 1)) as i64 - one).collect();
        let (upload, encrypt) = seconds(|| match mode.level {
            Some(level) => owner.full(&numbers, mode.form, level),
            None => owner.thin(&numbers),
        })?;
        let input = match mode.level {
            Some(_) => Ciphertext::from_bytes(&upload, &owner.parameters)?,
            None => server::read_upload(&upload, &owner.parameters, &owner.thin)?,
        };
        let ((result, bootstrap), serving) = seconds(|| (mode.serve)(&input))?;
        let mut answer = Vec::new();
        let estimate: ErrorEstimate = match mode.form {
            Form::Slots => {
                answer = result.to_bytes(&owner.parameters)?;
                result.estimate
            }
            Form::Coefficients => server::write_answer(&result, owner.thin.layout(), [0, 0], &mut answer)?,
        };
        let (found, decrypt) = seconds(|| owner.open(&answer, mode.form, count))?;
        // A thin client reads to half a unit. A full client computes a Fourier transform in f64.
        let bound = estimate.bound() + owner.unit();
        for (index, (found, number)) in found.iter().zip(&numbers).enumerate() {
            let error = (found - *number as f64 * owner.unit()).abs();
            if error.is_nan() || error > bound {
                let what = format!("{}: number {index} is off by {error:e}, bound {bound:e}", mode.name);
                return Err(StudyError::Wrong(what));
            }
            record.worst = record.worst.max(error);
            record.mean += error / (count * (runs + 1)) as f64;
        }
        record.bound = record.bound.min(bound);
        (record.bytes_up, record.bytes_down) = (upload.len(), answer.len());
        // The first run touches memory and makes tables, so it is not timed.
        if run > 0 {
            record.encrypt.push(encrypt);
            record.decrypt.push(decrypt);
            record.server.push(serving);
            record.bootstrap.extend(bootstrap);
        }
    }
    for times in [&mut record.encrypt, &mut record.decrypt, &mut record.server, &mut record.bootstrap] {
        times.sort_by(f64::total_cmp);
    }
    Ok(record)
}

/// Makes the values from real and imaginary parts.
fn join(evaluator: &Evaluator<'_>, mut parts: Vec<Ciphertext>) -> Result<Ciphertext, StudyError> {
    let mut sum = parts.remove(0);
    for imaginary in &parts {
        evaluator.add_assign(&mut sum, &evaluator.multiply_by_i(imaginary)?)?;
    }
    Ok(sum)
}

/// Keys of a secret, each once.
fn keys(generator: &mut KeyGenerator<'_>, specs: &[&[KeySpec]]) -> Result<EvaluationKeys, StudyError> {
    let mut wanted: Vec<KeySpec> = Vec::new();
    for spec in specs.iter().copied().flatten() {
        if !wanted.contains(spec) {
            wanted.push(spec.clone());
        }
    }
    Ok(generator.evaluation_keys(&wanted)?)
}

/// `coeffs_to_slots` of a ciphertext whose coefficients are the values at the parameters' scale.
fn encoding(
    parameters: &CkksParameters,
    literal: &BootstrapperLiteral,
    factors: usize,
    level: usize,
    scale: f64,
) -> Result<CoeffsToSlots, StudyError> {
    let dft = Dft::balanced(literal.log_slots, factors)?;
    let (values, input) = (literal.values, parameters.scale());
    let plan =
        CoeffsToSlotsPlan::new(parameters, dft, values, level, input, 1.0, scale, literal.budget, None)?;
    Ok(CoeffsToSlots::new(parameters, &plan)?)
}

/// Runs the modes in order, each with only the keys that it needs. `emit` gets each result when it is ready.
///
/// # Errors
/// [`BenchError::Preset`](keywright_bench::BenchError::Preset), [`StudyError::Slots`], [`StudyError::Runs`];
/// [`StudyError::Wrong`] if an answer is not within its bound; errors of the engine.
pub fn run_client_modes(request: &ModesRequest, emit: &mut dyn FnMut(ModeRecord)) -> Result<(), StudyError> {
    if request.runs == 0 {
        return Err(StudyError::Runs);
    }
    let (parameters, literal) = bootstrap_parameters(&request.preset)?;
    if literal.log_slots != parameters.max_log_slots() {
        let (slots, most) = (1 << literal.log_slots, 1 << parameters.max_log_slots());
        return Err(StudyError::Slots { preset: request.preset.clone(), slots, most });
    }
    let literal = BootstrapperLiteral { values: request.values, order: Order::SlotsToCoeffsFirst, ..literal };
    let plan = BootstrapperPlan::new(&parameters, &literal)?;
    // The levels above those for the client's numbers are the same in all modes. slots_to_coeffs takes its own from
    // their top.
    let last = plan.output_level().checked_sub(literal.slots_to_coeffs);
    let raise_first = BootstrapperPlan::new(
        &parameters,
        &BootstrapperLiteral { order: Order::ModRaiseFirst, output_level: last, ..literal.clone() },
    )?;

    let fraction_bits = FRACTION_BITS.min(plan.coefficients_scale.log2() as u32 - 1);
    let thin = server::client_parameters(&parameters, &plan, fraction_bits)?;
    let mut entropy = rng(7);
    let mut entropy = |out: &mut [u8]| {
        entropy.fill_bytes(out);
        Ok(())
    };
    let mut thin_client = Client::generate(&thin, &mut entropy)?;
    let secret = SecretKey::from_secret_bytes(&thin_client.secret_bytes()?, parameters.rlwe())?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let public = generator.public_key();
    let mut thin_key = Vec::new();
    thin_client.public_key(&mut thin_key)?;
    let mut owner = Owner {
        values: request.values,
        thin,
        sender: keywright_client::Encryptor::new(&thin, &thin_key, &mut entropy)?,
        thin_client,
        encryptor: Encryptor::new(&parameters, &public, rng(4))?
            .declaring(Magnitude::new(std::f64::consts::SQRT_2)?),
        decryptor: Decryptor::new(&parameters, &secret)?,
        parameters: parameters.clone(),
    };
    let mut source = rng(3);
    let runs = request.runs;
    let top = parameters.max_level();
    let down = |plan: &SlotsToCoeffsPlan| -> Result<(SlotsToCoeffs, Vec<KeySpec>), StudyError> {
        Ok((SlotsToCoeffs::new(&parameters, plan)?, plan.required_keys()))
    };

    {
        let none = EvaluationKeys::new(parameters.rlwe());
        let evaluator = Evaluator::new(&parameters, &none)?;
        let serve = |input: &Ciphertext| -> Served { Ok((evaluator.drop_to_level(input, 0)?, None)) };
        let mode = Mode {
            name: "plain",
            form: Form::Slots,
            level: Some(top),
            levels: top,
            key_bytes: 0,
            serve: &serve,
        };
        emit(measure(&mut owner, &mut source, runs, &mode)?);
    }
    {
        let factors = literal.coeffs_to_slots;
        let up = encoding(&parameters, &literal, factors, top, parameters.scale())?;
        let (low, low_keys) = down(&plan.slots_to_coeffs)?;
        let keys = keys(&mut generator, &[&up.plan().required_keys(), &low_keys])?;
        let evaluator = Evaluator::new(&parameters, &keys)?;
        let serve = |input: &Ciphertext| -> Served {
            let slots = join(&evaluator, up.evaluate(&evaluator, input)?)?;
            Ok((low.evaluate(&evaluator, &slots)?, None))
        };
        let mode = Mode {
            name: "deflate",
            form: Form::Coefficients,
            level: Some(top),
            levels: top - factors - low.plan().input_level(),
            key_bytes: keys.bytes(),
            serve: &serve,
        };
        emit(measure(&mut owner, &mut source, runs, &mode)?);
    }
    {
        let factors = literal.slots_to_coeffs;
        let up = encoding(&parameters, &literal, factors, factors, plan.coefficients_scale)?;
        let (low, low_keys) = down(&plan.slots_to_coeffs)?;
        let bootstrapper = Bootstrapper::new(&parameters, &raise_first)?;
        let own = raise_first.required_keys();
        let keys = keys(&mut generator, &[&own, &up.plan().required_keys(), &low_keys])?;
        let evaluator = Evaluator::new(&parameters, &keys)?;
        let bootstrap = |input: &Ciphertext| -> Result<(Ciphertext, f64), StudyError> {
            Ok(seconds(|| bootstrapper.bootstrap(&evaluator, input))?)
        };
        let own_bytes = own.iter().map(|spec| spec.bytes(parameters.rlwe())).sum::<Result<usize, _>>()?;
        let boost = |input: &Ciphertext| -> Served {
            let (slots, taken) = bootstrap(input)?;
            Ok((evaluator.drop_to_level(&slots, 0)?, Some(taken)))
        };
        let mode = Mode {
            name: "boost",
            form: Form::Slots,
            level: Some(0),
            levels: raise_first.output_level(),
            key_bytes: own_bytes,
            serve: &boost,
        };
        emit(measure(&mut owner, &mut source, runs, &mode)?);
        let naive = |input: &Ciphertext| -> Served {
            let slots = join(&evaluator, up.evaluate(&evaluator, input)?)?;
            let (slots, taken) = bootstrap(&slots)?;
            Ok((low.evaluate(&evaluator, &slots)?, Some(taken)))
        };
        let mode = Mode {
            name: "naive",
            form: Form::Coefficients,
            level: Some(factors),
            levels: raise_first.output_level().saturating_sub(low.plan().input_level()),
            key_bytes: keys.bytes(),
            serve: &naive,
        };
        emit(measure(&mut owner, &mut source, runs, &mode)?);
    }
    let bootstrapper = Bootstrapper::new(&parameters, &plan)?;
    let keys = keys(&mut generator, &[&plan.required_keys()])?;
    let evaluator = Evaluator::new(&parameters, &keys)?;
    let low = |input: &Ciphertext| -> Served {
        let (slots, taken) = seconds(|| bootstrapper.bootstrap(&evaluator, input))?;
        Ok((evaluator.drop_to_level(&slots, 0)?, Some(taken)))
    };
    let mode = Mode {
        name: "boost_low",
        form: Form::Slots,
        level: Some(plan.input_level()),
        levels: plan.output_level(),
        key_bytes: keys.bytes(),
        serve: &low,
    };
    emit(measure(&mut owner, &mut source, runs, &mode)?);
    let both = |input: &Ciphertext| -> Served {
        let (slots, taken) = seconds(|| bootstrapper.bootstrap_coefficients(&evaluator, input))?;
        Ok((bootstrapper.slots_to_coeffs().evaluate(&evaluator, &slots)?, Some(taken)))
    };
    let mode = Mode {
        name: "boosted_deflation",
        form: Form::Coefficients,
        level: None,
        levels: plan.levels_left(),
        key_bytes: keys.bytes(),
        serve: &both,
    };
    emit(measure(&mut owner, &mut source, runs, &mode)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use keywright_bench::BenchError;

    #[test]
    fn every_mode_gives_back_what_was_sent() {
        for values in [Values::Complex, Values::Real] {
            let request = ModesRequest { preset: "quick".into(), values, runs: 1 };
            let mut records = Vec::new();
            run_client_modes(&request, &mut |record| records.push(record)).unwrap();
            let names: Vec<_> = records.iter().map(|record| record.mode).collect();
            assert_eq!(names, ["plain", "deflate", "boost", "naive", "boost_low", "boosted_deflation"]);
            let of = |name: &str| records.iter().find(|record| record.mode == name).unwrap();
            let numbers = if values == Values::Complex { 2048 } else { 1024 };
            assert!(records.iter().all(|record| record.numbers == numbers && record.worst <= record.bound));
            assert_eq!(records.iter().map(|r| r.primes).collect::<Vec<_>>(), [18, 18, 1, 3, 3, 1]);
            // One prime of 50 bits, with all its bits; the answer without the coefficients that carry nothing.
            let polynomial = 2048 * 50 / 8;
            assert!(of("boosted_deflation").bytes_up - 2 * polynomial < 128);
            assert!(of("boost").bytes_up - 2 * polynomial < 128);
            assert_eq!(of("deflate").bytes_down, of("boosted_deflation").bytes_down);
            assert!(records[0].json().starts_with("{\"mode\":\"plain\",\"log_n\":11,"));
        }
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let run = |preset: &str, runs| {
            let request = ModesRequest { preset: preset.into(), values: Values::Real, runs };
            run_client_modes(&request, &mut |_| ()).unwrap_err()
        };
        assert!(matches!(run("quick", 0), StudyError::Runs));
        assert!(matches!(run("none", 1), StudyError::Bench(BenchError::Preset { .. })));
    }
}
