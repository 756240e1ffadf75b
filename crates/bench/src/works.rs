//! The measured operations: set up, check once, then time.

use std::time::Instant;

use keywright_circuits::CircuitError;
use keywright_ckks::{
    Ciphertext, CkksError, CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, Magnitude, Packing,
};
use keywright_ring::{Poly, RingError, Seed, StreamId, rotation_element};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, PublicKey, RlweError, SecretKey, SwitchPlan, threads,
};
use thiserror::Error;

use crate::measuring::{peak_rss, rng};
use crate::{BenchSet, KernelCounts, MachineRates, NTT_LOG_Q, Record, SETS};

/// All operations.
pub const WORKS: [&str; 11] = [
    "ntt",
    "intt",
    "rotate",
    "rotate_hoisted",
    "multiply",
    "multiply_relin",
    "rescale",
    "encode",
    "encrypt",
    "decrypt",
    "keygen",
];

/// Rotations that share one decomposition.
const HOISTED: usize = 8;

/// The request for a measurement.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the set.
    pub set: String,
    /// Primes per digit; empty for all of the set.
    pub alpha: Option<usize>,
    /// Operations; empty for all.
    pub works: Vec<String>,
    /// Timed runs of each.
    pub runs: usize,
    /// Whether keys are seeded.
    pub seeded: bool,
}

/// Reasons why a benchmark cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BenchError {
    /// No such set.
    #[error("there is no set `{0}`; use one of {known}", known = SETS.map(|s| s.name).join(", "))]
    Set(String),
    /// No such work.
    #[error("there is no operation `{0}`; use one of {known}", known = WORKS.join(", "))]
    Work(String),
    /// No such bootstrapping preset.
    #[error("there is no bootstrapping preset `{name}`; use one of {known}")]
    Preset { name: String, known: String },
    /// Nothing would be timed.
    #[error("runs = 0; request at least one timed run")]
    Runs,
    /// The circuit refused.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// The scheme refused.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// The keys were refused.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// The ring was refused.
    #[error(transparent)]
    Ring(#[from] RingError),
}

/// Runs the operations of a request. `emit` gets every record when it is made, and returns whether to continue.
///
/// # Errors
/// [`BenchError`]; records emitted before stay valid.
pub fn run(request: &Request, emit: &mut dyn FnMut(Record) -> bool) -> Result<(), BenchError> {
    let set =
        SETS.iter().find(|s| s.name == request.set).ok_or_else(|| BenchError::Set(request.set.clone()))?;
    if let Some(unknown) = request.works.iter().find(|w| !WORKS.contains(&w.as_str())) {
        return Err(BenchError::Work(unknown.clone()));
    }
    if request.runs == 0 {
        return Err(BenchError::Runs);
    }
    let wants = |work: &str| request.works.is_empty() || request.works.iter().any(|w| w == work);
    let backend = keywright_ring::backend::default()?;
    let rates = MachineRates::measure(backend)?;
    let mut run = BenchRun { rates, runs: request.runs, emit, stopped: false };
    for &log_n in set.ntt_log_n {
        for work in ["ntt", "intt"] {
            if wants(work) && !run.stopped {
                transform(&mut run, work, log_n)?;
            }
        }
    }
    if !WORKS.iter().any(|work| wants(work) && !work.ends_with("ntt")) {
        return Ok(());
    }
    for &alpha in set.alphas.iter().filter(|&&a| request.alpha.is_none_or(|alpha| alpha == a)) {
        if !run.stopped {
            scheme(&mut run, set, alpha, request.seeded, &wants)?;
        }
    }
    Ok(())
}

struct BenchRun<'e> {
    rates: MachineRates,
    runs: usize,
    emit: &'e mut dyn FnMut(Record) -> bool,
    stopped: bool,
}

/// The fields of a record besides its times.
struct Subject {
    work: &'static str,
    log_n: u32,
    level: usize,
    alpha: Option<usize>,
    seeded: bool,
    counts: KernelCounts,
    bytes: usize,
    /// Operations that one call performs.
    per_call: usize,
}

impl BenchRun<'_> {
    /// Checks the result of a first, untimed call, then times `runs` calls.
    fn measure<T>(&mut self, subject: Subject, mut work: impl FnMut() -> T, check: impl FnOnce(&T) -> bool) {
        if self.stopped {
            return;
        }
        let checked = check(&work());
        let mut times: Vec<f64> = (0..self.runs)
            .map(|_| {
                let start = Instant::now();
                let result = std::hint::black_box(work());
                let elapsed = start.elapsed().as_secs_f64();
                drop(result);
                elapsed / subject.per_call as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let record = Record {
            work: subject.work,
            log_n: subject.log_n,
            level: subject.level,
            alpha: subject.alpha,
            seeded: subject.seeded,
            threads: threads(),
            backend: keywright_ring::backend::default().map_or("none", |b| b.kind().name()),
            times,
            limit_s: Some(self.rates.limit(subject.counts, threads()) / subject.per_call as f64),
            bytes: subject.bytes,
            checked,
            peak_rss_bytes: peak_rss(),
            bootstrap: None,
        };
        self.stopped = !(self.emit)(record);
    }
}

/// A transform of one narrow prime. Checked as a ring map: multiplication by `X` in evaluation form is the negacyclic
/// shift.
fn transform(run: &mut BenchRun<'_>, work: &'static str, log_n: u32) -> Result<(), BenchError> {
    /// Transforms per timed call, so that the cost of the clock is negligible.
    const BATCH: usize = 8;
    let backend = keywright_ring::backend::default()?;
    let prime = keywright_ring::ntt_primes(log_n, NTT_LOG_Q, 1, &[])?;
    let ring = keywright_ring::Ring::new(log_n, &prime, backend)?;
    let m = ring.modulus(0);
    let mut input = Poly::<keywright_ring::Coefficient>::zero(ring.n(), 1);
    let id = StreamId { object: 0, digit: 0, limb: 0 };
    backend.expand_uniform(&Seed([7; 32]), id, m, input.limb_mut(0));
    let x = {
        let mut x = Poly::<keywright_ring::Coefficient>::zero(ring.n(), 1);
        x.limb_mut(0)[1] = 1;
        ring.forward(x)
    };
    let mut product = ring.forward(input.clone());
    let factor = product.clone();
    backend.mul(m, factor.limb(0), x.limb(0), product.limb_mut(0));
    let shifted = ring.inverse(product);
    let right = (0..ring.n()).all(|i| {
        let expected = if i == 0 { m.neg(input.limb(0)[ring.n() - 1]) } else { input.limb(0)[i - 1] };
        shifted.limb(0)[i] == expected
    }) && ring.inverse(ring.forward(input.clone())) == input;
    let mut limb = input.limb(0).to_vec();
    let mut data = keywright_ring::Buffer::unspecified(limb.len());
    data.copy_from_slice(&limb);
    limb.clear();
    let subject = Subject {
        work,
        log_n,
        level: 0,
        alpha: None,
        seeded: false,
        counts: KernelCounts::transforms(log_n, BATCH),
        bytes: 8 * ring.n(),
        per_call: BATCH,
    };
    let forward = work == "ntt";
    let repeat = || {
        for _ in 0..BATCH {
            if forward { ring.forward_limb(0, &mut data) } else { ring.inverse_limb(0, &mut data) }
        }
    };
    run.measure(subject, repeat, |()| right);
    Ok(())
}

/// Keys and messages of one parameter set.
struct Party {
    parameters: CkksParameters,
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    values: [Vec<Complex64>; 2],
}

fn rotation(parameters: &CkksParameters, steps: usize) -> KeyElement {
    KeyElement::Galois(rotation_element(parameters.rlwe().log_n(), steps as i64))
}

fn spec(parameters: &CkksParameters, element: KeyElement, alpha: usize, seeded: bool) -> KeySpec {
    let rlwe = parameters.rlwe();
    KeySpec {
        element,
        level: rlwe.max_level(),
        alpha,
        special: rlwe.special_primes().collect(),
        seeded,
        subring: rlwe.as_subring(),
    }
}

impl Party {
    fn new(set: &BenchSet, alpha: usize, seeded: bool, rotations: usize) -> Result<Self, BenchError> {
        let parameters = set.parameters(alpha)?;
        let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1))?;
        let mut generator = KeyGenerator::new(&secret, rng(2));
        let public = generator.public_key();
        let elements = (1..=rotations).map(|k| rotation(&parameters, k)).chain([KeyElement::Relinearization]);
        let specs: Vec<_> = elements.map(|element| spec(&parameters, element, alpha, seeded)).collect();
        let keys = generator.evaluation_keys(&specs)?;
        let mut source = rng(3);
        let mut unit = || source.next_word() as f64 / 2f64.powi(63) - 1.0;
        let slots = 1usize << parameters.max_log_slots();
        let mut values = || (0..slots).map(|_| Complex64::new(unit(), unit())).collect::<Vec<_>>();
        let values = [values(), values()];
        Ok(Self { parameters, secret, public, keys, values })
    }

    fn encrypt(&self, which: usize, level: usize) -> Result<Ciphertext, CkksError> {
        let mut encryptor = Encryptor::new(&self.parameters, &self.public, rng(4))?
            .declaring(Magnitude::new(std::f64::consts::SQRT_2)?);
        encryptor.encrypt(&self.values[which], self.parameters.max_log_slots(), level)
    }

    /// Whether a ciphertext decrypts to the expected values, within its own error estimate.
    fn right(&self, ciphertext: &Ciphertext, expected: impl Fn(usize) -> Complex64) -> bool {
        let decrypted = Decryptor::new(&self.parameters, &self.secret)
            .and_then(|decryptor| decryptor.decrypt(ciphertext));
        let bound = ciphertext.error_bound();
        decrypted.is_ok_and(|seen| seen.iter().enumerate().all(|(i, v)| (v - expected(i)).norm() <= bound))
    }
}

fn scheme(
    run: &mut BenchRun<'_>,
    set: &BenchSet,
    alpha: usize,
    seeded: bool,
    wants: &dyn Fn(&str) -> bool,
) -> Result<(), BenchError> {
    let rotations = if wants("rotate_hoisted") { HOISTED } else { 1 };
    let party = Party::new(set, alpha, seeded, rotations)?;
    let parameters = &party.parameters;
    let (rlwe, log_n) = (parameters.rlwe(), parameters.rlwe().log_n());
    let slots = 1usize << parameters.max_log_slots();
    let evaluator = Evaluator::new(parameters, &party.keys)?;
    let decryptor = Decryptor::new(parameters, &party.secret)?;
    let packing = Packing::Slots { log_slots: parameters.max_log_slots() };
    let [x, y] = &party.values;
    let limb_bytes = 8.0 * rlwe.n() as f64;

    if wants("keygen") {
        let mut generator = KeyGenerator::new(&party.secret, rng(5));
        let spec = spec(parameters, rotation(parameters, 3), alpha, seeded);
        let limbs = spec.validate(rlwe)?.len() * spec.primes().count();
        let bytes = spec.bytes(rlwe)?;
        let mut counts = KernelCounts::transforms(log_n, limbs);
        counts.products += (limbs * rlwe.n()) as f64;
        let subject = Subject {
            work: "keygen",
            log_n,
            level: rlwe.max_level(),
            alpha: Some(alpha),
            seeded,
            counts,
            bytes,
            per_call: 1,
        };
        let fresh = party.encrypt(0, rlwe.max_level())?;
        run.measure(
            subject,
            || generator.switching_key(&spec),
            |key| {
                let mut keys = EvaluationKeys::new(rlwe);
                let Ok(key) = key else { return false };
                if keys.insert(key.clone()).is_err() {
                    return false;
                }
                Evaluator::new(parameters, &keys)
                    .and_then(|e| e.rotate(&fresh, 3))
                    .is_ok_and(|rotated| party.right(&rotated, |i| x[(i + 3) % slots]))
            },
        );
    }

    for &level in set.levels {
        let (a, b) = (party.encrypt(0, level)?, party.encrypt(1, level)?);
        let limbs = level + 1;
        let subject = |work, alpha, counts, bytes, per_call| Subject {
            work,
            log_n,
            level,
            alpha,
            seeded: seeded && alpha.is_some(),
            counts,
            bytes,
            per_call,
        };
        let transforms = |count: usize| KernelCounts::transforms(log_n, count);
        let moved =
            |count: usize| KernelCounts { bytes: limb_bytes * count as f64, ..KernelCounts::default() };

        if wants("encode") {
            let encode = || parameters.encode(x, parameters.max_log_slots(), level, parameters.scale());
            let check = |plain: &Result<keywright_ckks::Plaintext, CkksError>| {
                let Ok(plain) = plain else { return false };
                evaluator.add_plain(&b, plain).is_ok_and(|sum| party.right(&sum, |i| x[i] + y[i]))
            };
            let counts = transforms(limbs).plus(moved(limbs));
            run.measure(subject("encode", None, counts, limb_bytes as usize * limbs, 1), encode, check);
        }
        if wants("encrypt") {
            let mut encryptor = Encryptor::new(parameters, &party.public, rng(6))?
                .declaring(Magnitude::new(std::f64::consts::SQRT_2)?);
            let check =
                |c: &Result<Ciphertext, CkksError>| c.as_ref().is_ok_and(|c| party.right(c, |i| x[i]));
            let mut counts = transforms(3 * limbs).plus(moved(4 * limbs));
            counts.products += (2 * limbs * rlwe.n()) as f64;
            run.measure(
                subject("encrypt", None, counts, a.bytes(), 1),
                || encryptor.encrypt(x, parameters.max_log_slots(), level),
                check,
            );
        }
        if wants("decrypt") {
            // Two primes determine a message at this scale; the others are not needed.
            let counts = transforms(limbs.min(3));
            let check = |v: &Result<Vec<Complex64>, CkksError>| {
                let bound = a.error_bound();
                v.as_ref().is_ok_and(|v| v.iter().zip(x).all(|(seen, x)| (seen - x).norm() <= bound))
            };
            run.measure(subject("decrypt", None, counts, a.bytes(), 1), || decryptor.decrypt(&a), check);
        }
        if wants("rescale") && level > 0 {
            let values = vec![1.0; slots];
            let q = rlwe.modulus(level).value() as f64;
            let ones = parameters.encode_real(&values, packing, level, q)?;
            let product = evaluator.multiply_plain_lazy(&a, &ones)?;
            let counts = transforms(2 * limbs).plus(moved(4 * limbs));
            let check =
                |c: &Result<Ciphertext, CkksError>| c.as_ref().is_ok_and(|c| party.right(c, |i| x[i]));
            run.measure(
                subject("rescale", None, counts, a.bytes(), 1),
                || evaluator.rescale(&product),
                check,
            );
        }

        let key_use = party.keys.best(rotation(parameters, 1), level, false)?;
        let key_bytes = used_bytes(rlwe.n(), &key_use.plan, &key_use.key.spec().clone(), key_use.coalesce);
        let switches = |count| KernelCounts::switches(log_n, &key_use.plan, key_bytes, count);
        if wants("rotate") {
            let check = |c: &Result<Ciphertext, CkksError>| {
                c.as_ref().is_ok_and(|c| party.right(c, |i| x[(i + 1) % slots]))
            };
            run.measure(
                subject("rotate", Some(alpha), switches(1), key_use.key.bytes(), 1),
                || evaluator.rotate(&a, 1),
                check,
            );
        }
        if wants("rotate_hoisted") {
            let steps: Vec<i64> = (1..=HOISTED as i64).collect();
            let check = |all: &Result<Vec<Ciphertext>, CkksError>| {
                all.as_ref()
                    .is_ok_and(|all| all.iter().zip(1..).all(|(c, k)| party.right(c, |i| x[(i + k) % slots])))
            };
            run.measure(
                subject("rotate_hoisted", Some(alpha), switches(HOISTED), key_use.key.bytes(), HOISTED),
                || evaluator.rotate_hoisted(&a, &steps),
                check,
            );
        }
        let tensor = KernelCounts { products: (4 * limbs * rlwe.n()) as f64, ..moved(7 * limbs) };
        let product =
            |c: &Result<Ciphertext, CkksError>| c.as_ref().is_ok_and(|c| party.right(c, |i| x[i] * y[i]));
        if wants("multiply_relin") {
            let multiply = || evaluator.multiply_lazy(&a, &b).and_then(|c| evaluator.relinearize(&c));
            run.measure(
                subject("multiply_relin", Some(alpha), switches(1).plus(tensor), key_use.key.bytes(), 1),
                multiply,
                product,
            );
        }
        if wants("multiply") && level > 0 {
            let merged = party.keys.best(KeyElement::Relinearization, level, true)?;
            let counts = KernelCounts::switches(log_n, &merged.plan, key_bytes, 1).plus(tensor);
            run.measure(
                subject("multiply", Some(alpha), counts, merged.key.bytes(), 1),
                || evaluator.multiply(&a, &b),
                product,
            );
        }
    }
    Ok(())
}

/// Bytes of a key that one switch reads: the rows and limbs of its plan.
fn used_bytes(n: usize, plan: &SwitchPlan, spec: &KeySpec, coalesce: usize) -> usize {
    let halves = if spec.seeded { 1 } else { 2 };
    halves * 8 * n * plan.layout.digits.len() * coalesce * plan.layout.target_count()
}
