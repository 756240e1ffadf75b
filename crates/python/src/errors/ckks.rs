//! CKKS and its circuits.

use keywright_circuits::CircuitError;
use keywright_ckks::CkksError;
use keywright_ckks::encoder::EncoderError;
use pyo3::prelude::*;

use super::description::{Described, described};
use super::rlwe::rlwe;

pub(super) fn encode<'py>(py: Python<'py>, error: &EncoderError) -> PyResult<Described<'py>> {
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

pub(super) fn circuit<'py>(py: Python<'py>, error: &CircuitError) -> PyResult<Described<'py>> {
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
            needed = needed.saturating_add(*output_level),
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
        CircuitError::StagesFused | CircuitError::NoEphemeralSecret | CircuitError::InputRing => {
            described!(py, "ParameterError")
        }
        CircuitError::FailureProbability { log2 } => {
            described!(py, "ParameterError", what = "log2_failure", value = *log2, maximum = 0.0)
        }
        CircuitError::BabySteps { n1, slots } => {
            described!(py, "ParameterError", what = "n1", value = n1, minimum = 1, maximum = slots)
        }
        CircuitError::LogSlots { log_slots, max } => {
            described!(py, "ParameterError", what = "log_slots", value = log_slots, maximum = max)
        }
        CircuitError::MatrixShape { rows, columns, slots } => {
            described!(py, "EncodeError", count = rows.max(columns), bound = slots)
        }
        CircuitError::DiagonalLength { index, found, expected } => {
            described!(py, "EncodeError", index = index, count = found, bound = expected)
        }
        CircuitError::DiagonalPeriod { period, slots } => {
            described!(py, "ParameterError", what = "period", value = period, minimum = 1, maximum = slots)
        }
        CircuitError::CoefficientWidth { index, bits } => {
            described!(py, "EncodeError", index = index, needed_bits = bits, available_bits = 62.0)
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

pub(super) fn ckks<'py>(py: Python<'py>, error: &CkksError) -> PyResult<Described<'py>> {
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
        CkksError::Overflow { log_value, log_limit } => {
            described!(py, "MessageOverflowError", log_value = log_value, log_limit = log_limit)
        }
        CkksError::AboveMagnitude { value, magnitude } => {
            described!(py, "EncodeError", value = value, magnitude = magnitude)
        }
        CkksError::Magnitude(value) => described!(py, "ParameterError", what = "magnitude", value = value),
        CkksError::NotFinite(value) => described!(py, "EncodeError", value = value),
        CkksError::FloodingRange { what, value, max } => {
            described!(py, "ParameterError", what = *what, value = value, minimum = 1, maximum = max)
        }
        CkksError::FloodingTooLarge { bits, queries, lost, error, limit, .. } => described!(
            py,
            "FloodingError",
            bits = bits,
            queries = queries,
            lost_bits = lost,
            error_bound = error,
            limit = limit
        ),
        CkksError::FloodingSpent { queries } => described!(py, "FloodingError", queries = queries),
        CkksError::FloodingForked { owner, process } => {
            described!(py, "ForkedError", owner = owner, process = process)
        }
        CkksError::NotPowerOfTwo(count) => {
            described!(py, "ParameterError", what = "number of slots", value = count)
        }
        CkksError::Circuit { what, value, .. } => {
            described!(py, "ParameterError", what = what, value = value)
        }
        CkksError::NoRing { depth, .. } => described!(py, "ParameterError", what = "depth", value = depth),
        CkksError::UnknownPreset { name, known } => {
            described!(py, "ParameterError", what = "preset", value = name, known = known)
        }
        _ => described!(py, "KeywrightError"),
    }
}
