//! The words and numbers of a bootstrapping plan's arguments, converted for the engine.

use crate::errors::{Failure, Refusal};
use crate::integers::CountOrName;
use keywright_circuits::bootstrapping::{
    DigitRule, Iterations, KeyBudget, KeyDesign, KeyLevels, Order, Values,
};
use keywright_circuits::linear_transform::Storage;
use keywright_rlwe::Parameters;

pub(super) fn parse_budget(budget: CountOrName) -> Result<KeyBudget, Failure> {
    match budget {
        CountOrName::Count(bytes) => Ok(KeyBudget::Bytes(bytes)),
        CountOrName::Name(name) => match name.as_str() {
            "fastest" => Ok(KeyBudget::Fastest),
            "fewest" => Ok(KeyBudget::Fewest),
            _ => Err(Refusal::KeyBudget(name).into()),
        },
    }
}

/// The storage of a transform's diagonals.
pub(super) fn parse_storage(name: &str) -> Result<Storage, Failure> {
    match name {
        "encoded" => Ok(Storage::Encoded),
        "coefficients" => Ok(Storage::Coefficients),
        _ => {
            let known = "\"encoded\" or \"coefficients\"";
            Err(Refusal::Choice { argument: "storage", value: name.into(), known }.into())
        }
    }
}

/// The storage of a bootstrapping's diagonals, if any are kept.
pub(crate) fn parse_kept(name: &str) -> Result<Option<Storage>, Failure> {
    match (name, parse_storage(name)) {
        ("streamed", _) => Ok(None),
        (_, Ok(storage)) => Ok(Some(storage)),
        (_, Err(_)) => {
            let known = "\"encoded\", \"coefficients\" or \"streamed\"";
            Err(Refusal::Choice { argument: "storage", value: name.into(), known }.into())
        }
    }
}

pub(super) fn parse_values(name: &str) -> Result<Values, Failure> {
    match name {
        "complex" => Ok(Values::Complex),
        "real" => Ok(Values::Real),
        other => Err(Refusal::SlotValues(other.into()).into()),
    }
}

fn parse_digits(alpha: CountOrName, parameters: &Parameters) -> Result<DigitRule, Failure> {
    let name = match alpha {
        CountOrName::Count(alpha) => return Ok(DigitRule::Static { alpha }),
        CountOrName::Name(name) => name,
    };
    match name.as_str() {
        "maximum" => Ok(DigitRule::maximum(parameters)),
        "dynamic" => Ok(DigitRule::Dynamic { dropped_primes: false }),
        "dynamic_dropped" => Ok(DigitRule::Dynamic { dropped_primes: true }),
        _ => {
            let known = "a number, \"maximum\", \"dynamic\" or \"dynamic_dropped\"";
            Err(Refusal::Choice { argument: "alpha", value: name, known }.into())
        }
    }
}

pub(super) fn parse_design(
    alpha: Option<CountOrName>,
    key_levels: &str,
    parameters: &Parameters,
) -> Result<Option<KeyDesign>, Failure> {
    let levels = parse_key_levels(key_levels)?;
    let digits = alpha.map(|alpha| parse_digits(alpha, parameters)).transpose()?;
    Ok(digits.map(|digits| KeyDesign { digits, levels }))
}

fn parse_key_levels(name: &str) -> Result<KeyLevels, Failure> {
    match name {
        "needed" => Ok(KeyLevels::Needed),
        "top" => Ok(KeyLevels::Top),
        other => {
            let known = "\"needed\" or \"top\"";
            Err(Refusal::Choice { argument: "key_levels", value: other.into(), known }.into())
        }
    }
}

pub(super) fn parse_order(name: &str) -> Result<Order, Failure> {
    match name {
        "slots_to_coeffs_first" => Ok(Order::SlotsToCoeffsFirst),
        "mod_raise_first" => Ok(Order::ModRaiseFirst),
        other => Err(Refusal::StageOrder(other.into()).into()),
    }
}

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
