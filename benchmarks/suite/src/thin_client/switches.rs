//! Switches that make a thin client's ciphertexts smaller, each alone: bytes, times of the client and of the server's
//! reading and writing, and errors with their bounds.
//!
//! There are three kinds of data under `q_0` of 30 and of 60 bits: a number in every coefficient, a number in one of 64
//! coefficients, and as many integers of 8 bits as coefficients. The server reads each ciphertext and writes it back as
//! its answer, so its time is that of the format. A program's time does not depend on the format, except that of a
//! bootstrapping, which takes fewer slots if fewer coefficients carry numbers. Every answer is decrypted and compared
//! with what was sent.

use std::time::Instant;

use keywright_bench::measuring::rng;
use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_client::Dropped;
use keywright_client::{
    Client, ClientParameters, Encryptor, Form, Groups, Layout, Numbers, reduction::ShiftAdd30,
    reduction::ShiftAdd60,
};
use keywright_rlwe::{ParametersLiteral, SecretDistribution, Security};
use keywright_thin_server as server;

use super::encryption::client_pair;
use crate::StudyError;

/// Factor by which dropped bits may increase an error.
const GROWTH: f64 = 2.0;
const SMALL_INTEGER_BITS: u32 = 8;

/// Bytes, times and errors of a client with one kind of data.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchRecord {
    /// `log2(N)`.
    pub log_n: u32,
    /// Bits of `q_0`.
    pub bits: u32,
    /// `full`, `small` or `integers`.
    pub data: &'static str,
    /// Numbers, or small integers.
    pub count: usize,
    /// The active switches.
    pub switches: &'static str,
    /// Low bits dropped from the halves of what is sent, and from the answer.
    pub dropped: [Dropped; 2],
    /// Small integers in a number; otherwise 1.
    pub each: usize,
    /// Bytes to the server.
    pub bytes_up: usize,
    /// The same with a word of 32 or 64 bits for every residue.
    pub bytes_up_words: usize,
    /// Bytes of the answer.
    pub bytes_down: usize,
    /// Median seconds from numbers to bytes.
    pub encrypt_s: f64,
    /// Median seconds from bytes to numbers.
    pub decrypt_s: f64,
    /// Median seconds in which the server reads a ciphertext.
    pub read_s: f64,
    /// Median seconds in which it writes the answer.
    pub answer_s: f64,
    /// Largest error of a number.
    pub worst: f64,
    /// The bound on it.
    pub bound: f64,
}

impl SwitchRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        format!(
            "{{\"log_n\":{},\"bits\":{},\"data\":\"{}\",\"count\":{},\"switches\":\"{}\",\"dropped\":{:?},\"each\":{},\
             \"bytes_up\":{},\"bytes_up_words\":{},\"bytes_down\":{},\"encrypt_s\":{:.7},\"decrypt_s\":{:.7},\
             \"read_s\":{:.7},\"answer_s\":{:.7},\"worst\":{:e},\"bound\":{:e},\"checked\":true}}",
            self.log_n,
            self.bits,
            self.data,
            self.count,
            self.switches,
            self.dropped,
            self.each,
            self.bytes_up,
            self.bytes_up_words,
            self.bytes_down,
            self.encrypt_s,
            self.decrypt_s,
            self.read_s,
            self.answer_s,
            self.worst,
            self.bound
        )
    }
}

/// One format of ciphertexts and answers.
struct Way {
    switches: &'static str,
    secret: bool,
    /// Compact form; `None` for a whole ciphertext.
    up: Option<Dropped>,
    down: Dropped,
}

/// The client and the server.
struct Parties {
    parameters: CkksParameters,
    thin: ClientParameters,
    owner: Client,
    sender: Encryptor,
    runs: usize,
}

fn insecure(log_n: u32) -> bool {
    log_n < 12
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn timed<T, E>(times: &mut Vec<f64>, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let start = Instant::now();
    let out = work()?;
    times.push(start.elapsed().as_secs_f64());
    Ok(out)
}

impl Parties {
    fn new(
        parameters: &CkksParameters,
        log_scale: u32,
        fraction_bits: u32,
        layout: Layout,
        runs: usize,
    ) -> Result<Self, StudyError> {
        let thin = server::parameters_at(parameters, 1 << log_scale, fraction_bits, layout)?;
        let (owner, sender) = client_pair(&thin)?;
        Ok(Self { parameters: parameters.clone(), thin, owner, sender, runs })
    }

    /// The largest number of bits that can be dropped from a ciphertext under the public key, or under the secret.
    fn droppable(&mut self, secret: bool) -> Result<Dropped, StudyError> {
        let mut bytes = Vec::new();
        if secret {
            self.owner.encrypt(&[0i64; 8][..], Form::Evaluations, &mut bytes)?;
        } else {
            self.sender.encrypt(&[0i64; 8][..], Form::Evaluations, &mut bytes)?;
        }
        let fresh = server::read_upload(&bytes, &self.parameters, &self.thin)?;
        let [first, second] = server::droppable(&fresh, GROWTH)?;
        Ok([first, if secret { 0 } else { second }])
    }

    /// Sends numbers, answers with them, and compares. Returns the measurement and the numbers of the answer.
    fn send<T: Numbers + ?Sized>(
        &mut self,
        data: &'static str,
        numbers: &T,
        way: &Way,
    ) -> Result<(SwitchRecord, Vec<i64>), StudyError> {
        let (thin, form) = (&self.thin, way.up.map_or(Form::Evaluations, Form::Compact));
        let unit = (-f64::from(thin.fixed_point().fraction_bits())).exp2();
        let [mut encrypting, mut decrypting, mut reading, mut answering] = [const { Vec::new() }; 4];
        let (mut sent, mut answer) = (Vec::with_capacity(thin.ciphertext_bytes()), Vec::new());
        let mut found = vec![0; numbers.count()];
        let (mut worst, mut bound) = (0f64, f64::INFINITY);
        for _ in 0..self.runs {
            sent.clear();
            answer.clear();
            timed(&mut encrypting, || match way.secret {
                true => self.owner.encrypt(numbers, form, &mut sent),
                false => self.sender.encrypt(numbers, form, &mut sent),
            })?;
            let read = timed(&mut reading, || server::read_upload(&sent, &self.parameters, thin))?;
            let estimate =
                timed(&mut answering, || server::write_answer(&read, thin.layout(), way.down, &mut answer))?;
            timed(&mut decrypting, || self.owner.decrypt(&answer, &mut found))?;
            // A client reads to half a unit.
            bound = bound.min(estimate.bound() + unit / 2.0);
            for (index, found) in found.iter().enumerate() {
                let error = (found - numbers.at(index)).abs() as f64 * unit;
                worst = worst.max(error);
                if error > bound {
                    let what = format!("{data}, {}: number {index} is off by {error:e}", way.switches);
                    return Err(StudyError::Wrong(what));
                }
            }
        }
        let width = thin.modulus().bits();
        let word = if width <= 32 { 32 } else { 64 };
        let kept = |dropped: u32| (width - dropped) as usize;
        let carried = |residues: usize, dropped: u32| residues * kept(dropped) / 8;
        let [d0, d1] = way.up.unwrap_or_default();
        let first = if way.up.is_some() { thin.capacity() } else { thin.n() };
        let second = if way.secret { 0 } else { thin.n() };
        let frame = sent.len() - carried(first, d0) - carried(second, d1);
        let record = SwitchRecord {
            log_n: thin.log_n(),
            bits: width,
            data,
            count: numbers.count(),
            switches: way.switches,
            dropped: [way.up.unwrap_or_default(), way.down],
            each: 1,
            bytes_up: sent.len(),
            bytes_up_words: frame + (first + second) * word / 8,
            bytes_down: answer.len(),
            encrypt_s: median(encrypting),
            decrypt_s: median(decrypting),
            read_s: median(reading),
            answer_s: median(answering),
            worst,
            bound,
        };
        Ok((record, found))
    }
}

/// Measures every switch at a ring degree. `emit` gets each result when it is ready.
///
/// # Errors
/// [`StudyError::Runs`] for no runs; [`StudyError::Wrong`] if an answer is not within its bound; errors of the client
/// or the server.
pub fn run_switches(log_n: u32, runs: usize, emit: &mut dyn FnMut(SwitchRecord)) -> Result<(), StudyError> {
    if runs == 0 {
        return Err(StudyError::Runs);
    }
    for (modulus, log_scale) in [(ShiftAdd30::MODULUS, 27), (ShiftAdd60::MODULUS, 57)] {
        let security =
            if insecure(log_n) { Security::InsecureForExperiments } else { Security::Classical128 };
        let secret = SecretDistribution::Ternary;
        let rlwe = ParametersLiteral {
            log_n,
            q: vec![modulus],
            p: Vec::new(),
            secret,
            security,
            subrings: Vec::new(),
        };
        let parameters = CkksParameters::new(CkksLiteral { rlwe, log_scale: f64::from(log_scale) })?;
        for (data, log_slots) in [("full", log_n - 1), ("small", log_n - 7)] {
            numbers(&parameters, log_scale, data, log_slots, runs, emit)?;
        }
        integers(&parameters, log_scale, runs, emit)?;
    }
    Ok(())
}

/// Numbers in units of a coefficient, so that the answer shows every error.
fn numbers(
    parameters: &CkksParameters,
    log_scale: u32,
    data: &'static str,
    log_slots: u32,
    runs: usize,
    emit: &mut dyn FnMut(SwitchRecord),
) -> Result<(), StudyError> {
    let layout = Layout::Slots { log_slots, complex: true };
    let mut parties = Parties::new(parameters, log_scale, log_scale, layout, runs)?;
    let (most, mut source) = (parties.thin.fixed_point().max(), rng(3));
    let numbers: Vec<i64> = (0..parties.thin.capacity())
        .map(|_| (source.next_word() % (2 * most as u64 + 1)) as i64 - most)
        .collect();
    let (public, secret) = (parties.droppable(false)?, parties.droppable(true)?);
    let whole = [0, 0];
    let mut ways = vec![
        Way { switches: "none", secret: false, up: None, down: whole },
        Way { switches: "bits dropped", secret: false, up: Some(public), down: whole },
        Way { switches: "bits of the answer dropped", secret: false, up: None, down: public },
        Way { switches: "seed", secret: true, up: None, down: whole },
        Way { switches: "seed, bits dropped", secret: true, up: Some(secret), down: whole },
    ];
    if data == "small" {
        ways.extend([
            Way { switches: "fewer coefficients", secret: false, up: Some(whole), down: whole },
            Way { switches: "seed, fewer coefficients", secret: true, up: Some(whole), down: whole },
        ]);
    }
    for way in &ways {
        emit(parties.send(data, &numbers[..], way)?.0);
    }
    Ok(())
}

/// Integers of a byte: one to a number, or as many as fit while the unit is above twice the error.
fn integers(
    parameters: &CkksParameters,
    log_scale: u32,
    runs: usize,
    emit: &mut dyn FnMut(SwitchRecord),
) -> Result<(), StudyError> {
    let (log_n, mut source) = (parameters.rlwe().log_n(), rng(5));
    let bytes: Vec<u8> = (0..parameters.rlwe().n()).map(|_| source.next_word() as u8).collect();
    for secret in [false, true] {
        let probe = Parties::new(parameters, log_scale, 0, Layout::Coefficients, runs)?;
        let [public, symmetric, _] = probe.thin.literal().estimate.map(f64::from_bits);
        let fresh = keywright_ckks::ErrorEstimate {
            deviation: if secret { symmetric } else { public },
            magnitude: 1.0,
            real: true,
        };
        let fraction_bits = (1.0 / (2.0 * fresh.bound())).log2().floor() as u32;
        let each = (fraction_bits / SMALL_INTEGER_BITS).max(1) as usize;
        for (each, switches) in [
            (1, if secret { "seed" } else { "none" }),
            (each, if secret { "seed, several" } else { "several" }),
        ] {
            // Only the coefficients that carry numbers, if a number has several integers.
            let numbers = bytes.len().div_ceil(each).next_power_of_two();
            let layout = Layout::Slots { log_slots: numbers.ilog2().min(log_n) - 1, complex: true };
            let bits = SMALL_INTEGER_BITS * each as u32;
            let mut parties = Parties::new(parameters, log_scale, bits, layout, runs)?;
            let groups = Groups::new(&parties.thin, SMALL_INTEGER_BITS)?;
            let way = Way { switches, secret, up: Some([0, 0]), down: [0, 0] };
            let (record, found) = parties.send("integers", &groups.group(&bytes[..])?, &way)?;
            let mut back = vec![0; bytes.len()];
            groups.split(&found, &mut back)?;
            if back.iter().zip(&bytes).any(|(back, &byte)| *back != i64::from(byte)) {
                return Err(StudyError::Wrong(format!(
                    "{switches}: a decrypted integer differs from the one sent"
                )));
            }
            emit(SwitchRecord { count: bytes.len(), each: groups.each(), ..record });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_smaller_than_none() {
        let mut records = Vec::new();
        run_switches(11, 1, &mut |record| records.push(record)).unwrap();
        for bits in [30, 60] {
            for data in ["full", "small", "integers"] {
                let found: Vec<_> = records.iter().filter(|r| r.bits == bits && r.data == data).collect();
                let none = found.iter().find(|record| record.switches == "none").unwrap();
                for record in &found {
                    assert!(record.worst <= record.bound, "{record:?}");
                    let smaller = record.bytes_up < none.bytes_up || record.bytes_down < none.bytes_down;
                    // A number may have bits for only one integer, and then nothing is smaller.
                    assert!(smaller || record.switches == "none" || record.each == 1, "{record:?}");
                    assert!(record.bytes_up <= record.bytes_up_words);
                }
            }
        }
        assert!(records[0].json().starts_with("{\"log_n\":11,\"bits\":30,\"data\":\"full\",\"count\":2048,"));
        assert!(matches!(run_switches(11, 0, &mut |_| ()), Err(StudyError::Runs)));
    }
}
