//! Arguments that this crate itself refuses: unknown words and numbers out of range.

use pyo3::prelude::*;

use super::description::{Described, described};

/// A refused argument.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// An unknown choice for an empty pool.
    WhenEmpty(String),
    /// A pool file without its key, or a key without a file.
    FileKey,
    /// An insecure class without the acknowledgement.
    #[cfg(feature = "insecure")]
    Insecure(&'static str),
    /// Values that are not a vector of numbers.
    Values(String),
    /// An unknown packing.
    Packing(String),
    /// A number of slots that is not a power of two up to `N/2`.
    Slots {
        slots: usize,
        max: usize,
    },
    /// Different numbers of ciphertexts and transforms.
    Inputs {
        ciphertexts: usize,
        transforms: usize,
    },
    /// An unknown basis.
    Basis(String),
    /// An unknown kind of slot values.
    SlotValues(String),
    /// An unknown choice of an argument.
    Choice {
        argument: &'static str,
        value: String,
        known: &'static str,
    },
    /// An unknown budget of keys.
    KeyBudget(String),
    /// An unknown order of the stages.
    StageOrder(String),
    /// A precision without iterations, or iterations without a precision.
    LogPrecision {
        iterations: usize,
    },
    /// A measurement that is impossible.
    Bench(String),
    /// An index or a number outside its range.
    Outside {
        what: &'static str,
        value: usize,
        count: usize,
    },
    /// An unknown count of an operation.
    Count(String),
    Threads {
        count: usize,
        reason: String,
        max: usize,
    },
}

impl Refusal {
    /// The message, and its attributes.
    pub(super) fn describe(self, py: Python<'_>) -> (String, PyResult<Described<'_>>) {
        match self {
            Self::WhenEmpty(choice) => (
                format!("when_empty is `{choice}`; use \"encrypt\", \"block\" or \"error\""),
                (|| described!(py, "ParameterError", what = "when_empty", value = choice))(),
            ),
            Self::FileKey => (
                "the file of a pool is encrypted; pass both `file` and `file_key`, 32 secret bytes".into(),
                (|| described!(py, "ParameterError", what = "file_key"))(),
            ),
            #[cfg(feature = "insecure")]
            Self::Insecure(sentence) => (
                format!("this is not secure; pass acknowledge={sentence:?} to use it nevertheless"),
                (|| described!(py, "SecurityError", object = "Chem", bound = py.None()))(),
            ),
            Self::Inputs { ciphertexts, transforms } => (
                format!(
                    "{ciphertexts} ciphertexts and {transforms} transforms; pass one transform per ciphertext"
                ),
                (|| described!(py, "ParameterError", what = "transforms", value = transforms))(),
            ),
            Self::Basis(basis) => (
                format!("there is no basis `{basis}`; use \"monomial\" or \"chebyshev\""),
                (|| described!(py, "ParameterError", what = "basis", value = basis))(),
            ),
            Self::Packing(packing) => (
                format!("there is no packing `{packing}`; use \"slots\" or \"coefficients\""),
                (|| described!(py, "ParameterError", what = "packing", value = packing))(),
            ),
            Self::SlotValues(values) => (
                format!("there are no `{values}` values; use \"complex\" or \"real\""),
                (|| described!(py, "ParameterError", what = "values", value = values))(),
            ),
            Self::Choice { argument, value, known } => (
                format!("{argument} is `{value}`; use {known}"),
                (|| described!(py, "ParameterError", what = argument, value = value))(),
            ),
            Self::KeyBudget(name) => (
                format!("there is no key budget `{name}`; use \"fastest\", \"fewest\" or a number of bytes"),
                (|| described!(py, "ParameterError", what = "key_budget", value = name))(),
            ),
            Self::StageOrder(order) => (
                format!("there is no order `{order}`; use \"slots_to_coeffs_first\" or \"mod_raise_first\""),
                (|| described!(py, "ParameterError", what = "order", value = order))(),
            ),
            Self::LogPrecision { iterations } => (
                format!("there are {iterations} iterations; pass log_precision for 2 or more, and only then"),
                (|| described!(py, "ParameterError", what = "iterations", value = iterations))(),
            ),
            Self::Outside { what, value, count } => (
                format!("{what} is {value}, outside [0, {count})"),
                (|| {
                    described!(py, "ParameterError", what = what, value = value, minimum = 0, maximum = count)
                })(),
            ),
            Self::Count(name) => (
                format!("an operation has no count `{name}`; use those of keywright.plan.Operation"),
                (|| described!(py, "ParameterError", what = "counts", value = name))(),
            ),
            Self::Bench(reason) => (reason, described!(py, "ParameterError")),
            Self::Values(reason) => (reason, described!(py, "EncodeError")),
            Self::Slots { slots, max } => (
                format!("there are {slots} slots; use a power of two from 1 to {max}"),
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
            Self::Threads { count, reason, max } => (
                format!("{count} threads: {reason}"),
                (|| {
                    described!(
                        py,
                        "ParameterError",
                        what = "threads",
                        value = count,
                        minimum = 1,
                        maximum = max
                    )
                })(),
            ),
        }
    }
}
