//! A multiplication with its relinearization at every level, for each static alpha: figure 5 of the KDS paper (Joo, Ha,
//! Oh and Paek, Sensors 25(14), 2025).

use std::time::Instant;

use keywright_bench::measuring::rng;
use keywright_ckks::{CkksLiteral, CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, Magnitude};
use keywright_rlwe::{
    KeyElement, KeyGenerator, KeySpec, SecretDistribution, SecretKey, Security, maximum_log_qp, threads,
};

use crate::StudyError;
use crate::key_design::processor_seconds;

/// Bits of the scale and of all primes except the first prime and the largest special ones.
const LOG_SCALE: u32 = 50;

/// The lowest level with a product: it needs twice the scale, and the bits of its values.
const LOWEST_LEVEL: usize = 2;

/// A run repeats the multiplication for about this long, because the system's clock of a thread counts milliseconds.
const BATCH_SECONDS: f64 = 0.05;

/// Parameters with as many levels as fit under the security bound with `alpha` special primes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelinearizationRequest {
    /// `log2(N)`: 16, or less for a quick run with insecure keys.
    pub log_n: u32,
    /// Primes per digit, and special primes.
    pub alpha: usize,
    /// Whether the key may be used with coarser digits below its own level.
    pub coalescing: bool,
    /// Timed runs of some multiplications at each level, after an untimed one that is checked.
    pub runs: usize,
}

/// Times of one level.
#[derive(Debug, Clone, PartialEq)]
pub struct RelinearizationRecord {
    /// The request.
    pub request: RelinearizationRequest,
    /// Level of the factors.
    pub level: usize,
    /// Level of the key, the highest.
    pub top: usize,
    /// Wall-clock seconds of a multiplication in each run, sorted.
    pub seconds: Vec<f64>,
    /// Seconds of this thread on a processor in each run, sorted; equal to the wall-clock seconds if the system does
    /// not tell them.
    pub processor_seconds: Vec<f64>,
    /// Whether every slot of the product was within its estimate.
    pub checked: bool,
    /// Threads shared among.
    pub threads: usize,
}

/// Widths of the primes of the ciphertexts and of the special primes. The first two special primes are wider, so that
/// no digit is closed early.
fn widths(alpha: usize) -> Result<(Vec<u32>, Vec<u32>), StudyError> {
    let p: Vec<u32> = [61, 60].into_iter().chain(std::iter::repeat(LOG_SCALE)).take(alpha).collect();
    let bound = maximum_log_qp(16, SecretDistribution::Ternary)?;
    let left = bound.saturating_sub(p.iter().sum::<u32>() + LOG_SCALE + 1) / LOG_SCALE;
    Ok((std::iter::once(LOG_SCALE + 1).chain((0..left).map(|_| LOG_SCALE)).collect(), p))
}

/// Measures every level from the top to the lowest that holds a product. `emit` gets each result when it is ready.
///
/// # Errors
/// [`StudyError::Runs`]; errors of the engine: an alpha of 0, or one that leaves no level.
pub fn run_relinearization(
    request: RelinearizationRequest,
    emit: &mut dyn FnMut(RelinearizationRecord),
) -> Result<(), StudyError> {
    if request.runs == 0 {
        return Err(StudyError::Runs);
    }
    let (q, p) = widths(request.alpha)?;
    let mut literal = CkksLiteral::from_bits(request.log_n, &q, &p, f64::from(LOG_SCALE))?;
    if request.log_n < 16 {
        literal.rlwe.security = Security::InsecureForExperiments;
    }
    let parameters = CkksParameters::new(literal)?;
    let rlwe = parameters.rlwe();
    let top = rlwe.max_level();
    let secret = SecretKey::sample(rlwe, &mut rng(1))?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let public = generator.public_key();
    let keys = generator.evaluation_keys(&[KeySpec {
        element: KeyElement::Relinearization,
        level: top,
        alpha: request.alpha,
        special: rlwe.special_primes().collect(),
        seeded: true,
        subring: None,
    }])?;
    let keys = if request.coalescing { keys } else { keys.without_coalescing() };
    let evaluator = Evaluator::new(&parameters, &keys)?;
    let decryptor = Decryptor::new(&parameters, &secret)?;
    let mut encryptor =
        Encryptor::new(&parameters, &public, rng(4))?.declaring(Magnitude::new(std::f64::consts::SQRT_2)?);
    let mut source = rng(3);
    let mut unit = || source.next_word() as f64 / 2f64.powi(63) - 1.0;
    let log_slots = parameters.max_log_slots();
    let mut values =
        || -> Vec<Complex64> { (0..1usize << log_slots).map(|_| Complex64::new(unit(), unit())).collect() };
    let (x, y) = (values(), values());
    for level in (LOWEST_LEVEL..=top).rev() {
        let a = encryptor.encrypt(&x, log_slots, level)?;
        let b = encryptor.encrypt(&y, log_slots, level)?;
        let multiply = || evaluator.multiply_lazy(&a, &b).and_then(|product| evaluator.relinearize(&product));
        let product = multiply()?;
        let bound = product.estimate.bound();
        let found = decryptor.decrypt(&product)?;
        let checked =
            found.iter().zip(x.iter().zip(&y)).all(|(found, (x, y))| (found - x * y).norm() <= bound);
        let start = Instant::now();
        drop(multiply()?);
        let batch = (BATCH_SECONDS / start.elapsed().as_secs_f64()).ceil().max(1.0);
        let (mut seconds, mut processor) = (Vec::new(), Vec::new());
        for _ in 0..request.runs {
            let (start, before) = (Instant::now(), processor_seconds());
            for _ in 0..batch as usize {
                drop(std::hint::black_box(multiply()?));
            }
            let wall = start.elapsed().as_secs_f64();
            let busy = before.and_then(|before| Some(processor_seconds()? - before));
            seconds.push(wall / batch);
            processor.push(busy.unwrap_or(wall) / batch);
        }
        seconds.sort_by(f64::total_cmp);
        processor.sort_by(f64::total_cmp);
        emit(RelinearizationRecord {
            request,
            level,
            top,
            seconds,
            processor_seconds: processor,
            checked,
            threads: threads(),
        });
    }
    Ok(())
}

impl RelinearizationRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let RelinearizationRequest { log_n, alpha, coalescing, .. } = self.request;
        format!(
            "{{\"log_n\":{log_n},\"alpha\":{alpha},\"coalescing\":{coalescing},\"level\":{},\"top\":{},\"seconds\":{:.6?},\
             \"processor_seconds\":{:.6?},\"checked\":{},\"threads\":{}}}",
            self.level, self.top, self.seconds, self.processor_seconds, self.checked, self.threads
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_measured_and_right_with_and_without_coalescing() {
        for coalescing in [false, true] {
            let request = RelinearizationRequest { log_n: 10, alpha: 16, coalescing, runs: 1 };
            let mut records = Vec::new();
            run_relinearization(request, &mut |record| records.push(record)).unwrap();
            let levels: Vec<usize> = records.iter().map(|record| record.level).collect();
            // 51 bits, 17 times 50, and 61 + 60 + 14 times 50 are 1722; one more prime would be above 1747.
            assert_eq!(levels, (LOWEST_LEVEL..=17).rev().collect::<Vec<_>>());
            assert!(records.iter().all(|record| record.checked && record.seconds.len() == 1));
            let text = "{\"log_n\":10,\"alpha\":16,\"coalescing\":";
            assert!(records[0].json().starts_with(text), "{}", records[0].json());
        }
        let none = RelinearizationRequest { log_n: 10, alpha: 1, coalescing: false, runs: 0 };
        assert!(matches!(run_relinearization(none, &mut |_| ()), Err(StudyError::Runs)));
        let zero = RelinearizationRequest { log_n: 10, alpha: 0, coalescing: false, runs: 1 };
        assert!(run_relinearization(zero, &mut |_| ()).is_err());
    }
}
