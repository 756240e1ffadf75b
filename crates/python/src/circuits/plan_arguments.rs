//! The words and numbers of a bootstrapping plan's arguments, converted for the engine.

use keywright_circuits::bootstrapping::{
    DigitRule, Iterations, KeyBudget, KeyDesign, KeyLevels, Order, Values,
};
use keywright_circuits::linear_transform::Storage;
use keywright_rlwe::Parameters;

use crate::arguments::integers::CountOrName;
use crate::errors::{Failure, Refusal};

pub(super) fn parse_budget(budget: CountOrName) -> Result<KeyBudget, Refusal> {
    let choices = [("fastest", KeyBudget::Fastest), ("fewest", KeyBudget::Fewest)];
    match budget {
        CountOrName::Count(bytes) => Ok(KeyBudget::Bytes(bytes)),
        CountOrName::Name(name) => Refusal::choice("key_budget", &name, &choices, Some("a number of bytes")),
    }
}

const STORAGES: [(&str, Option<Storage>); 3] =
    [("encoded", Some(Storage::Encoded)), ("coefficients", Some(Storage::Coefficients)), ("streamed", None)];

/// The storage of a transform's diagonals.
pub(super) fn parse_storage(name: &str) -> Result<Storage, Refusal> {
    let kept = STORAGES.map(|(name, storage)| storage.map(|storage| (name, storage)));
    Refusal::choice("storage", name, &kept.into_iter().flatten().collect::<Vec<_>>(), None)
}

/// The storage of a bootstrapping's diagonals, if any are kept.
pub(crate) fn parse_kept(name: &str) -> Result<Option<Storage>, Refusal> {
    Refusal::choice("storage", name, &STORAGES, None)
}

pub(super) fn parse_values(name: &str) -> Result<Values, Refusal> {
    let choices = [("complex", Values::Complex), ("real", Values::Real), ("pair", Values::Pair)];
    Refusal::choice("values", name, &choices, None)
}

fn parse_digits(alpha: CountOrName, parameters: &Parameters) -> Result<DigitRule, Refusal> {
    let choices = [
        ("maximum", DigitRule::maximum(parameters)),
        ("dynamic", DigitRule::Dynamic { dropped_primes: false }),
        ("dynamic_dropped", DigitRule::Dynamic { dropped_primes: true }),
    ];
    match alpha {
        CountOrName::Count(alpha) => Ok(DigitRule::Static { alpha }),
        CountOrName::Name(name) => Refusal::choice("alpha", &name, &choices, Some("a number")),
    }
}

pub(super) fn parse_design(
    alpha: Option<CountOrName>,
    key_levels: &str,
    parameters: &Parameters,
) -> Result<Option<KeyDesign>, Refusal> {
    let choices = [("needed", KeyLevels::Needed), ("top", KeyLevels::Top)];
    let levels = Refusal::choice("key_levels", key_levels, &choices, None)?;
    let digits = alpha.map(|alpha| parse_digits(alpha, parameters)).transpose()?;
    Ok(digits.map(|digits| KeyDesign { digits, levels }))
}

pub(super) const ORDERS: [(&str, Order); 2] =
    [("slots_to_coeffs_first", Order::SlotsToCoeffsFirst), ("mod_raise_first", Order::ModRaiseFirst)];

/// A count of 1 is not an iteration, and would not use a precision.
pub(super) fn parse_iterations(
    count: usize,
    log_precision: Option<u32>,
) -> Result<Option<Iterations>, Failure> {
    match (count, log_precision) {
        (1, None) => Ok(None),
        (1, Some(_)) | (_, None) => Err(Refusal::LogPrecision { iterations: count }.into()),
        (count, Some(log_precision)) => Ok(Some(Iterations { count, log_precision })),
    }
}
