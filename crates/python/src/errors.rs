//! Every error of the engine as its exception of `keywright.errors`, with the offending value and its bound as attributes.

use std::path::{Path, PathBuf};

use keywright_aggregation::AggregationError;
use keywright_bench::BenchError;
use keywright_bfv::BfvError;
use keywright_circuits::CircuitError;
use keywright_ckks::CkksError;
use keywright_ckks::encoder::EncoderError;
use keywright_pool::{FileProblem, PoolError};
use keywright_ring::RingError;
use keywright_rlwe::{KeyElement, RlweError};
use keywright_wire::WireError;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What a method of this crate can fail with.
#[derive(Debug)]
pub(crate) enum Failure {
    Ckks(CkksError),
    Bfv(BfvError),
    Circuit(CircuitError),
    Pool(PoolError),
    /// A word that is no choice of what an empty pool does.
    WhenEmpty(String),
    /// A file of a pool without its key, or a key without a file.
    FileKey,
    /// An insecure class without the acknowledgement.
    Insecure(&'static str),
    Wire(WireError),
    Aggregation(AggregationError),
    /// What is wrong with the contents of a file.
    InFile(PathBuf, WireError),
    /// What the system says of a file.
    File(PathBuf, std::io::Error),
    /// Raised by Python code that was called, or by an argument of the wrong type.
    Python(PyErr),
    /// Values that are not a vector of numbers.
    Values(String),
    /// A name that is no packing.
    Packing(String),
    /// A number of slots that is not a power of two up to `N/2`.
    Slots {
        slots: usize,
        max: usize,
    },
    /// A list of ciphertexts and another number of transforms.
    Inputs {
        ciphertexts: usize,
        transforms: usize,
    },
    /// A name that is no basis.
    Basis(String),
    /// A name that is no kind of slot values.
    SlotValues(String),
    /// A name that is none of those an argument takes.
    Choice {
        argument: &'static str,
        value: String,
        known: &'static str,
    },
    /// A name that is no budget of keys.
    KeyBudget(String),
    /// Not an order of the stages.
    StageOrder(String),
    /// A precision without iterations, or iterations without a precision.
    LogPrecision {
        iterations: usize,
    },
    /// A measurement that cannot be made.
    Bench(String),
    Threads {
        count: usize,
        reason: String,
    },
    /// A class that refuses to be pickled.
    Pickle(&'static str),
}

macro_rules! from {
    ($($source:ty => $make:expr),* $(,)?) => {
        $(impl From<$source> for Failure {
            fn from(error: $source) -> Self {
                let make: fn($source) -> Self = $make;
                make(error)
            }
        })*
    };
}

from! {
    CkksError => Self::Ckks,
    BfvError => Self::Bfv,
    RlweError => |error| Self::Ckks(error.into()),
    RingError => |error| Self::Ckks(RlweError::from(error).into()),
    CircuitError => Self::Circuit,
    PoolError => |error| match error {
        PoolError::Ckks(error) => error.into(),
        PoolError::Rlwe(error) => error.into(),
        PoolError::Wire(error) => error.into(),
        PoolError::Bfv(error) => error.into(),
        other => Self::Pool(other),
    },
    EncoderError => |error| Self::Ckks(error.into()),
    WireError => Self::Wire,
    AggregationError => Self::Aggregation,
    BenchError => |error| match error {
        BenchError::Circuit(error) => error.into(),
        BenchError::Ckks(error) => error.into(),
        BenchError::Rlwe(error) => error.into(),
        BenchError::Ring(error) => error.into(),
        other => Self::Bench(other.to_string()),
    },
    PyErr => Self::Python,
}

/// Names the file in what the system says of it.
pub(crate) fn file(path: &Path) -> impl FnOnce(WireError) -> Failure + '_ {
    |error| match error {
        WireError::Io(error) => Failure::File(path.to_path_buf(), error),
        other => Failure::InFile(path.to_path_buf(), other),
    }
}

/// Class and attributes of an exception.
type Described<'py> = (&'static str, Bound<'py, PyDict>);

macro_rules! described {
    ($py:expr, $class:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        let details = PyDict::new($py);
        $(details.set_item(stringify!($name), $value)?;)*
        Ok(($class, details))
    }};
}

fn ring<'py>(py: Python<'py>, error: &RingError) -> PyResult<Described<'py>> {
    match error {
        RingError::Degree(log_n) => described!(
            py,
            "ParameterError",
            what = "log_n",
            value = log_n,
            minimum = keywright_ring::MIN_LOG_N,
            maximum = keywright_ring::MAX_LOG_N
        ),
        RingError::ModulusRange(modulus) => {
            described!(
                py,
                "ParameterError",
                what = "modulus",
                value = modulus,
                minimum = 3,
                maximum = (1u64 << 61) - 1
            )
        }
        RingError::NotPrime(modulus) => described!(py, "ParameterError", what = "modulus", value = modulus),
        RingError::NoRoot { prime, two_n } => {
            described!(py, "ParameterError", what = "modulus", value = prime, two_n = two_n)
        }
        RingError::NotEnoughPrimes { bits, found, wanted, .. } => described!(
            py,
            "ParameterError",
            what = "number of primes",
            value = wanted,
            maximum = found,
            bits = bits
        ),
        RingError::Repeated(prime) => described!(py, "ParameterError", what = "modulus", value = prime),
        RingError::GaloisElement { element, two_n } => {
            described!(
                py,
                "ParameterError",
                what = "Galois element",
                value = element,
                minimum = 1,
                maximum = two_n - 1
            )
        }
        RingError::BackendUnavailable(name, available) => {
            described!(py, "BackendError", backend = name, available = available)
        }
        RingError::HammingWeight { weight, n } => {
            described!(
                py,
                "ParameterError",
                what = "Hamming weight",
                value = weight,
                minimum = 1,
                maximum = n
            )
        }
        _ => described!(py, "ParameterError"),
    }
}

fn element_name(element: &KeyElement) -> String {
    match element {
        KeyElement::Galois(g) => format!("galois {g}"),
        KeyElement::Relinearization => "relinearization".into(),
        KeyElement::Secret(id) => format!("secret {id}"),
        KeyElement::DenseToSparse(weight) => format!("dense_to_sparse {weight}"),
        KeyElement::SparseToDense(weight) => format!("sparse_to_dense {weight}"),
        KeyElement::SparseToDenseGalois { weight, galois } => {
            format!("sparse_to_dense_galois {weight} {galois}")
        }
    }
}

fn rlwe<'py>(py: Python<'py>, error: &RlweError) -> PyResult<Described<'py>> {
    match error {
        RlweError::Ring(error) => ring(py, error),
        RlweError::Insecure { object, log_qp, log_n, secret, bound } => described!(
            py,
            "SecurityError",
            object = object,
            modulus_bits = log_qp,
            bound = bound,
            log_n = log_n,
            secret = secret
        ),
        RlweError::NoBound { secret, log_n } => described!(
            py,
            "SecurityError",
            object = py.None(),
            modulus_bits = py.None(),
            bound = py.None(),
            log_n = log_n,
            secret = secret
        ),
        RlweError::Count { what, count, min, max } => {
            described!(py, "ParameterError", what = what, value = count, minimum = min, maximum = max)
        }
        RlweError::Level { level, max, object } => {
            described!(py, "LevelError", level = level, maximum = max, object = object)
        }
        RlweError::SpecialPrime { index, level, .. } => {
            described!(py, "ParameterError", what = "special prime", value = index, level = level)
        }
        RlweError::SpecialTooSmall { index, prime_bits, special_bits } => described!(
            py,
            "ParameterError",
            what = "bits of a prime",
            value = prime_bits,
            maximum = special_bits,
            index = index
        ),
        RlweError::MissingKey { element, rotation, level, nearest } => described!(
            py,
            "MissingKeyError",
            element = element_name(element),
            rotation = rotation.parse::<i64>().ok(),
            level = level,
            nearest = nearest
        ),
        RlweError::KeyUse { element, key_level, alpha, level, coalesce, .. } => described!(
            py,
            "KeyUseError",
            element = element_name(element),
            key_level = key_level,
            alpha = alpha,
            level = level,
            coalesce = coalesce
        ),
        RlweError::MixedParameters { left, right } => {
            described!(py, "MixedParametersError", left = left, right = right)
        }
        RlweError::EphemeralSecret(element) | RlweError::EphemeralRepeated(element) => {
            described!(py, "ParameterError", what = "encapsulation keys", value = element_name(element))
        }
        RlweError::Route { level, child, .. } => {
            described!(py, "PlanMismatchError", level = level, galois_element = child)
        }
        RlweError::NotPlanned { level, .. } => described!(py, "PlanMismatchError", level = level),
        RlweError::KeyMemory { needed, budget } => {
            described!(py, "KeyMemoryError", needed = needed, budget = budget)
        }
        RlweError::KeySource { element, level, .. } => {
            described!(py, "KeySourceError", element = element_name(element), level = level)
        }
        RlweError::NotGalois(element) => {
            described!(py, "DerivationError", element = element_name(element), reason = "kind")
        }
        RlweError::Underivable { element, .. } => {
            described!(py, "DerivationError", element = element_name(element), reason = "unreachable")
        }
        RlweError::Randomness(_) => described!(py, "RandomnessError"),
        _ => described!(py, "KeywrightError"),
    }
}

fn encode<'py>(py: Python<'py>, error: &EncoderError) -> PyResult<Described<'py>> {
    match error {
        EncoderError::SlotCount { log_slots, log_n } => described!(
            py,
            "ParameterError",
            what = "slots",
            value = 1u64 << log_slots,
            minimum = 1,
            maximum = 1u64 << (log_n - 1)
        ),
        EncoderError::TooManyValues { count, room, .. } => {
            described!(py, "EncodeError", count = count, bound = room)
        }
        EncoderError::NotFinite { index, value } => {
            described!(py, "EncodeError", value = value, index = index)
        }
        EncoderError::Scale(scale) => described!(py, "ScaleError", log_scale = scale.log2()),
        EncoderError::TooLarge { needed_bits, available_bits } => {
            described!(py, "EncodeError", needed_bits = needed_bits, available_bits = available_bits)
        }
        _ => described!(py, "EncodeError"),
    }
}

fn circuit<'py>(py: Python<'py>, error: &CircuitError) -> PyResult<Described<'py>> {
    match error {
        CircuitError::Ckks(error) => ckks(py, error),
        CircuitError::Stage { stage, level, source } => {
            let (class, details) = circuit(py, source)?;
            details.set_item("stage", stage.name())?;
            details.set_item("stage_level", level)?;
            Ok((class, details))
        }
        CircuitError::BootstrapLevels { needed, output_level, available, .. } => described!(
            py,
            "LevelError",
            level = output_level,
            operation = "bootstrap",
            needed = needed + output_level,
            available = available
        ),
        CircuitError::Iteration { iteration, bits, found } => {
            let passes = *iteration as f64;
            let (value, maximum) = (f64::from(*bits) / passes, found / passes);
            described!(py, "ParameterError", what = "log_precision", value = value, maximum = maximum)
        }
        CircuitError::StageLevel { stage, found, expected } => {
            described!(py, "LevelError", level = found, maximum = expected, object = stage, stage = stage)
        }
        CircuitError::Count { what, count, min, max } => {
            described!(py, "ParameterError", what = what, value = count, minimum = min, maximum = max)
        }
        CircuitError::DftLayers { found, .. } => {
            described!(py, "ParameterError", what = "layers of the transform", value = found)
        }
        CircuitError::Precision { bits, best, .. } => {
            described!(py, "ParameterError", what = "bits", value = bits, maximum = best)
        }
        CircuitError::OutOfRange { slot, value, .. } => {
            described!(py, "EncodeError", index = slot, value = value)
        }
        CircuitError::SpecialPrimes { encoded, level, found } => {
            described!(py, "KeyUseError", special = encoded, level = level, found = found)
        }
        CircuitError::KeyBudget { budget, minimum } => {
            described!(py, "ParameterError", what = "key_budget", value = budget, minimum = minimum)
        }
        CircuitError::StagesFused | CircuitError::NoEphemeralSecret => described!(py, "ParameterError"),
        CircuitError::FailureProbability { log2 } => {
            described!(py, "ParameterError", what = "log2_failure", value = *log2, maximum = 0.0)
        }
        CircuitError::BabySteps { n1, slots } => {
            described!(py, "ParameterError", what = "n1", value = n1, minimum = 1, maximum = slots)
        }
        CircuitError::LogSlots { log_slots, max } => {
            described!(py, "ParameterError", what = "log_slots", value = log_slots, maximum = max)
        }
        CircuitError::DiagonalLength { index, found, expected } => {
            described!(py, "EncodeError", index = index, count = found, bound = expected)
        }
        CircuitError::Empty(what) => described!(py, "ParameterError", what = what, value = 0, minimum = 1),
        CircuitError::Mismatch { what, .. } => described!(py, "ParameterError", what = what),
        CircuitError::NotFinite { index, value, .. } => {
            described!(py, "EncodeError", index = index, value = value)
        }
        CircuitError::Interval { a, b } => {
            described!(py, "ParameterError", what = "interval", value = b, minimum = a)
        }
        _ => described!(py, "KeywrightError"),
    }
}

fn ckks<'py>(py: Python<'py>, error: &CkksError) -> PyResult<Described<'py>> {
    match error {
        CkksError::Rlwe(error) => rlwe(py, error),
        CkksError::Encode(error) => encode(py, error),
        CkksError::ScaleMismatch { left, right } => {
            described!(py, "ScaleError", left_log_scale = left, right_log_scale = right)
        }
        CkksError::PackingMismatch { left, right } => {
            described!(py, "PackingError", left = left.to_string(), right = right.to_string())
        }
        CkksError::LevelsExhausted { operation, needed, available } => {
            described!(py, "LevelError", operation = operation, needed = needed, available = available)
        }
        CkksError::Degree { operation, degree } => {
            described!(py, "DegreeError", operation = operation, degree = degree)
        }
        CkksError::Scale { log_scale, log_q, level } => {
            described!(py, "ScaleError", log_scale = log_scale, log_q = log_q, level = level)
        }
        CkksError::NotFinite(value) => described!(py, "EncodeError", value = value),
        CkksError::NotPowerOfTwo(count) => {
            described!(py, "ParameterError", what = "number of slots", value = count)
        }
        CkksError::UnknownPreset { name, known } => {
            described!(py, "ParameterError", what = "preset", value = name, known = known)
        }
        _ => described!(py, "KeywrightError"),
    }
}

fn aggregation<'py>(py: Python<'py>, error: &AggregationError) -> PyResult<Described<'py>> {
    match error {
        AggregationError::Rlwe(error) => rlwe(py, error),
        AggregationError::Range { what, value, min, max } => {
            described!(py, "ParameterError", what = what, value = value, minimum = min, maximum = max)
        }
        AggregationError::NoModulus { bits, max, .. } => {
            described!(py, "ParameterError", what = "bits of the modulus", value = bits, maximum = max)
        }
        AggregationError::Magnitude { index, value, magnitude } => {
            described!(py, "EncodeError", value = value, index = index, bound = magnitude)
        }
        AggregationError::Mismatch { what, client, found, expected } => described!(
            py,
            "AggregationError",
            reason = what,
            client = client,
            found = found,
            expected = expected
        ),
        AggregationError::Duplicate(client) => {
            described!(py, "AggregationError", reason = "duplicate", client = client)
        }
        AggregationError::Undecodable { .. } => {
            described!(py, "AggregationError", reason = "undecodable")
        }
        _ => described!(py, "KeywrightError"),
    }
}

fn pool<'py>(py: Python<'py>, error: &PoolError) -> PyResult<Described<'py>> {
    match error {
        PoolError::Range { what, value, min, max } => {
            described!(py, "ParameterError", what = what, value = value, minimum = min, maximum = max)
        }
        PoolError::Stopped(_) => described!(py, "PoolEmptyError", made = py.None(), taken = py.None()),
        PoolError::Empty { made, taken } => described!(py, "PoolEmptyError", made = made, taken = taken),
        PoolError::Threads { wanted, .. } => {
            described!(py, "ParameterError", what = "threads", value = wanted)
        }
        PoolError::Forked { owner, process } => {
            described!(py, "PoolForkedError", owner = owner, process = process)
        }
        PoolError::Producer(error) => pool(py, error),
        PoolError::ChemUnit { unit, smallest } => {
            described!(py, "ParameterError", what = "unit", value = unit, minimum = smallest)
        }
        PoolError::ChemInteger { unit } => {
            described!(py, "ParameterError", what = "unit", value = unit)
        }
        PoolError::ChemMessage { value, bits } => {
            described!(py, "EncodeError", value = value, available_bits = f64::from(*bits))
        }
        PoolError::File { path, problem } => {
            described!(py, "PoolFileError", reason = file_reason(problem), path = path)
        }
        _ => described!(py, "KeywrightError"),
    }
}

fn file_reason(problem: &FileProblem) -> &'static str {
    match problem {
        FileProblem::Foreign => "foreign",
        FileProblem::Length { .. } => "length",
        FileProblem::Key => "file key",
        FileProblem::ForeignParameters { .. } => "parameters",
        FileProblem::ForeignKey => "key",
        FileProblem::ForeignEntries { .. } => "entries",
        FileProblem::Unregistered { .. } => "unregistered",
        FileProblem::Copied { .. } => "copied",
        FileProblem::Register { .. } => "register",
        FileProblem::Tampered { .. } => "tampered",
        _ => "contents",
    }
}

fn bfv<'py>(py: Python<'py>, error: &BfvError) -> PyResult<Described<'py>> {
    match error {
        BfvError::Rlwe(error) => rlwe(py, error),
        BfvError::PlaintextModulus { value, smallest } => described!(
            py,
            "ParameterError",
            what = "plaintext_modulus",
            value = value,
            minimum = 2,
            maximum = (1 << keywright_bfv::MAX_PLAINTEXT_BITS).min(*smallest) - 1
        ),
        BfvError::NoSlots { modulus, .. } => {
            described!(py, "ParameterError", what = "plaintext_modulus", value = modulus)
        }
        BfvError::MixedPlaintextModuli { left, right } => {
            described!(py, "MixedParametersError", left = left.to_string(), right = right.to_string())
        }
        BfvError::Value { index, value, min, max } => {
            described!(py, "EncodeError", index = index, value = value, minimum = min, maximum = max)
        }
        BfvError::TooManyValues { count, max } => {
            described!(py, "EncodeError", count = count, bound = max)
        }
        BfvError::PackingMismatch { left, right } => {
            described!(py, "PackingError", left = left.to_string(), right = right.to_string())
        }
        BfvError::LevelMismatch { left, right } => described!(
            py,
            "LevelError",
            level = left.max(right),
            maximum = left.min(right),
            object = "the other operand"
        ),
        BfvError::Degree { operation, degree } => {
            described!(py, "DegreeError", operation = operation, degree = degree)
        }
        BfvError::NoiseExhausted { operation, budget } => {
            described!(py, "NoiseError", operation = operation, budget = budget)
        }
        BfvError::NoiseOverflow => described!(py, "NoiseError", operation = "decrypt"),
        BfvError::UnknownPreset { name, known } => {
            described!(py, "ParameterError", what = "preset", value = name, known = known)
        }
        _ => described!(py, "KeywrightError"),
    }
}

fn wire<'py>(py: Python<'py>, error: &WireError) -> PyResult<Described<'py>> {
    match error {
        WireError::Aggregation(error) => aggregation(py, error),
        WireError::Rlwe(error) => rlwe(py, error),
        WireError::ForeignParameters { found, expected } => {
            described!(py, "MixedParametersError", left = found.to_string(), right = expected.to_string())
        }
        WireError::NoSuchKey { element, level } => described!(
            py,
            "MissingKeyError",
            element = element_name(element),
            rotation = py.None(),
            level = level,
            nearest = py.None()
        ),
        WireError::DerivedKey { element } => {
            described!(py, "DerivationError", element = element_name(element), reason = "written")
        }
        WireError::Truncated { needed, missing, .. } => {
            described!(py, "FormatError", reason = "truncated", found = needed - missing, expected = needed)
        }
        WireError::Trailing { extra, .. } => {
            described!(py, "FormatError", reason = "trailing", found = extra, expected = 0)
        }
        WireError::Magic { found } => described!(
            py,
            "FormatError",
            reason = "foreign",
            found = found.to_vec(),
            expected = keywright_wire::MAGIC.to_vec()
        ),
        WireError::Version { found, supported } => {
            described!(py, "FormatError", reason = "version", found = found, expected = supported)
        }
        WireError::UnknownKind(kind) => described!(py, "FormatError", reason = "kind", found = kind),
        WireError::WrongKind { found, expected } => described!(
            py,
            "FormatError",
            reason = "kind",
            found = found.to_string(),
            expected = expected.to_string()
        ),
        WireError::Checksum { stored, computed, .. } => {
            described!(py, "FormatError", reason = "checksum", found = computed, expected = stored)
        }
        WireError::Length { found, expected, .. } => {
            described!(py, "FormatError", reason = "length", found = found, expected = expected)
        }
        WireError::Number { value, .. } => described!(py, "FormatError", reason = "field", found = value),
        WireError::Field { value, .. } => described!(py, "FormatError", reason = "field", found = value),
        WireError::Residue { value, modulus, .. } => {
            described!(py, "FormatError", reason = "residue", found = value, expected = modulus)
        }
        WireError::SecretCoefficient { count } => {
            described!(py, "FormatError", reason = "secret", found = count)
        }
        WireError::KeyCount { found, expected } => {
            described!(py, "FormatError", reason = "number of keys", found = found, expected = expected)
        }
        _ => described!(py, "FormatError", reason = "contents"),
    }
}

/// The system's words for an error, without the number that Rust appends.
fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

fn exception(py: Python<'_>, message: &str, described: PyResult<Described<'_>>) -> PyResult<PyErr> {
    let (class, details) = described?;
    let class = py.import("keywright.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(&details))?))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| {
            let (message, described) = match failure {
                Failure::Python(error) => return error,
                Failure::Wire(WireError::Io(error)) => return error.into(),
                Failure::File(path, error) => {
                    return match error.raw_os_error() {
                        // Three arguments make the subclass that suits the number, FileNotFoundError for one.
                        Some(number) => {
                            PyOSError::new_err((number, system_text(&error), path.into_os_string()))
                        }
                        None => PyOSError::new_err(format!("{}: {error}", path.display())),
                    };
                }
                Failure::Pickle(class) => {
                    return PyTypeError::new_err(format!(
                        "{class} is not pickled, because unpickling runs code; send its to_bytes(), which from_bytes() checks"
                    ));
                }
                Failure::Ckks(error) => (error.to_string(), ckks(py, &error)),
                Failure::Bfv(error) => (error.to_string(), bfv(py, &error)),
                Failure::Circuit(error) => (error.to_string(), circuit(py, &error)),
                Failure::Pool(PoolError::Io { path, source }) => {
                    return Failure::File(path, source).into();
                }
                Failure::Pool(error) => (error.to_string(), pool(py, &error)),
                Failure::WhenEmpty(choice) => (
                    format!("an empty pool cannot `{choice}`; use \"encrypt\", \"block\" or \"error\""),
                    (|| described!(py, "ParameterError", what = "when_empty", value = choice))(),
                ),
                Failure::FileKey => (
                    "the file of a pool is encrypted: give both `file` and `file_key`, 32 secret bytes"
                        .into(),
                    (|| described!(py, "ParameterError", what = "file_key"))(),
                ),
                Failure::Insecure(sentence) => (
                    format!("this is not secure; to use it all the same say acknowledge={sentence:?}"),
                    (|| described!(py, "SecurityError", object = "Chem", bound = py.None()))(),
                ),
                Failure::Inputs { ciphertexts, transforms } => (
                    format!(
                        "{ciphertexts} ciphertexts and {transforms} transforms; give one transform for each ciphertext"
                    ),
                    (|| described!(py, "ParameterError", what = "transforms", value = transforms))(),
                ),
                Failure::Basis(basis) => (
                    format!("there is no basis `{basis}`; use \"monomial\" or \"chebyshev\""),
                    (|| described!(py, "ParameterError", what = "basis", value = basis))(),
                ),
                Failure::Packing(packing) => (
                    format!("there is no packing `{packing}`; use \"slots\" or \"coefficients\""),
                    (|| described!(py, "ParameterError", what = "packing", value = packing))(),
                ),
                Failure::SlotValues(values) => (
                    format!("there are no `{values}` values; use \"complex\" or \"real\""),
                    (|| described!(py, "ParameterError", what = "values", value = values))(),
                ),
                Failure::Choice { argument, value, known } => (
                    format!("{argument} `{value}`: use {known}"),
                    (|| described!(py, "ParameterError", what = argument, value = value))(),
                ),
                Failure::KeyBudget(name) => (
                    format!(
                        "there is no key budget `{name}`; use \"fastest\", \"fewest\" or a number of bytes"
                    ),
                    (|| described!(py, "ParameterError", what = "key_budget", value = name))(),
                ),
                Failure::StageOrder(order) => (
                    format!(
                        "there is no order `{order}`; use \"slots_to_coeffs_first\" or \"mod_raise_first\""
                    ),
                    (|| described!(py, "ParameterError", what = "order", value = order))(),
                ),
                Failure::LogPrecision { iterations } => (
                    format!(
                        "log_precision is given for 2 iterations or more, and only then; there are {iterations}"
                    ),
                    (|| described!(py, "ParameterError", what = "iterations", value = iterations))(),
                ),
                Failure::Bench(reason) => (reason, described!(py, "ParameterError")),
                Failure::InFile(path, error) => (format!("{}: {error}", path.display()), wire(py, &error)),
                Failure::Wire(error) => (error.to_string(), wire(py, &error)),
                Failure::Aggregation(error) => (error.to_string(), aggregation(py, &error)),
                Failure::Values(reason) => (reason, described!(py, "EncodeError")),
                Failure::Slots { slots, max } => (
                    format!("{slots} slots: the number of slots is a power of two from 1 to {max}"),
                    (|| {
                        described!(
                            py,
                            "ParameterError",
                            what = "slots",
                            value = slots,
                            minimum = 1,
                            maximum = max
                        )
                    })(),
                ),
                Failure::Threads { count, reason } => (
                    format!("{count} threads: {reason}"),
                    (|| {
                        described!(
                            py,
                            "ParameterError",
                            what = "threads",
                            value = count,
                            minimum = 1,
                            maximum = crate::pool::MAX_THREADS
                        )
                    })(),
                ),
            };
            exception(py, &message, described).unwrap_or_else(|error| error)
        })
    }
}
