//! Arguments that this crate itself refuses: unknown words and numbers out of range.

use super::description::table;

/// A refused argument.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// A pool file without its key, or a key without a file.
    #[error("the file of a pool is encrypted; pass both `file` and `file_key`, 32 secret bytes")]
    FileKey,
    /// An insecure class without the acknowledgement.
    #[cfg(feature = "insecure")]
    #[error("this is not secure; pass acknowledge={0:?} to use it nevertheless")]
    Insecure(&'static str),
    /// Parameters whose bytes switch the check of security off.
    #[error(
        "the bytes of these parameters switch the check of their security off; for experiments on data that need no \
         protection, pass insecure=True"
    )]
    Unchecked,
    /// Values that are not a vector of numbers.
    #[error("{0}")]
    Values(String),
    /// A number of slots that is not a power of two up to `N/2`.
    #[error("there are {slots} slots; use a power of two from 1 to {max}")]
    Slots { slots: usize, max: usize },
    /// Different numbers of ciphertexts and transforms.
    #[error("{ciphertexts} ciphertexts and {transforms} transforms; pass one transform per ciphertext")]
    Inputs { ciphertexts: usize, transforms: usize },
    /// An unknown choice of an argument.
    #[error("{argument} is `{value}`; use {known}")]
    Choice { argument: &'static str, value: String, known: String },
    /// A precision without iterations, or iterations without a precision.
    #[error("there are {iterations} iterations; pass log_precision for 2 or more, and only then")]
    LogPrecision { iterations: usize },
    /// A measurement that is impossible.
    #[error("{0}")]
    Bench(String),
    /// An index or a number outside its range.
    #[error("{what} is {value}, outside [0, {count})")]
    Outside { what: &'static str, value: usize, count: usize },
    /// An unknown count of an operation.
    #[error("an operation has no count `{0}`; use those of keywright.plan.Operation")]
    Count(String),
    #[error("{count} threads: {reason}")]
    Threads { count: usize, reason: String, max: usize },
}

impl Refusal {
    /// What a word stands for, of the words that an argument can be and of what else it can be.
    ///
    /// # Errors
    /// [`Refusal::Choice`] for another word.
    pub(crate) fn choice<T: Clone>(
        argument: &'static str,
        word: &str,
        choices: &[(&str, T)],
        other: Option<&str>,
    ) -> Result<T, Self> {
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
            return Ok(choice.clone());
        }
        let names = choices.iter().map(|(name, _)| format!("{name:?}")).chain(other.map(Into::into));
        let mut known: Vec<String> = names.collect();
        let last = known.pop().unwrap_or_default();
        Err(Self::Choice { argument, value: word.into(), known: format!("{} or {last}", known.join(", ")) })
    }
}

table! { refusal(py, Refusal);
    E::FileKey => "ParameterError" { what = "file_key" },
    #[cfg(feature = "insecure")]
    E::Insecure(_) => "SecurityError" { object = "Chem", bound = py.None() },
    E::Unchecked => "SecurityError" { object = "parameters", bound = py.None() },
    E::Values(_) => "EncodeError" {},
    E::Slots { slots, max } => "ParameterError" { what = "slots", value = slots, minimum = 1, maximum = max },
    E::Inputs { transforms, .. } => "ParameterError" { what = "transforms", value = transforms },
    E::Choice { argument, value, .. } => "ParameterError" { what = argument, value },
    E::LogPrecision { iterations } => "ParameterError" { what = "iterations", value = iterations },
    E::Bench(_) => "ParameterError" {},
    E::Outside { what, value, count } => "ParameterError" { what, value, minimum = 0, maximum = count },
    E::Count(name) => "ParameterError" { what = "counts", value = name },
    E::Threads { count, max, .. } =>
        "ParameterError" { what = "threads", value = count, minimum = 1, maximum = max },
}
