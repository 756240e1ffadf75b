//! CKKS and its circuits.

use keywright_circuits::CircuitError;
use keywright_ckks::CkksError;
use keywright_ckks::encoder::EncoderError;
use pyo3::prelude::*;

use super::rlwe::rlwe;
use crate::errors::description::{described, table};

table! { encode(py, EncoderError);
    E::SlotCount { log_slots, log_n } =>
        "ParameterError" {
            what = "slots", value = 1u64 << log_slots, minimum = 1, maximum = 1u64 << (log_n - 1)
        },
    E::TooManyValues { count, room, .. } => "EncodeError" { count, bound = room },
    E::NotFinite { index, value } => "EncodeError" { value, index },
    E::Scale(scale) => "ScaleError" { log_scale = scale.log2() },
    E::TooLarge { needed_bits, available_bits } => "EncodeError" { needed_bits, available_bits },
    _ => "EncodeError" {},
}

table! { circuit(py, CircuitError);
    E::Ckks(error) => ckks(error),
    E::Stage { stage, level, source } => {
        let (class, details) = circuit(py, source)?;
        details.set_item("stage", stage.name())?;
        details.set_item("stage_level", level)?;
        Ok((class, details))
    },
    E::BootstrapLevels { needed, output_level, available, .. } =>
        "LevelError" {
            level = output_level, operation = "bootstrap", needed = needed.saturating_add(*output_level), available
        },
    E::Iteration { iteration, bits, found } => {
        let passes = *iteration as f64;
        let (value, maximum) = (f64::from(*bits) / passes, found / passes);
        described!(py, "ParameterError", what = "log_precision", value = value, maximum = maximum)
    },
    E::Magnitude { largest, error } => "NoiseError" { code = "values", error_bound = error, limit = largest },
    E::StageLevel { stage, found, expected } =>
        "LevelError" { level = found, maximum = expected, object = stage, stage },
    E::Count { what, count, min, max } =>
        "ParameterError" { what, value = count, minimum = min, maximum = max },
    E::DftLayers { found, .. } => "ParameterError" { what = "layers of the transform", value = found },
    E::Precision { bits, best, .. } => "ParameterError" { what = "bits", value = bits, maximum = best },
    E::OutOfRange { slot, value, .. } => "EncodeError" { index = slot, value },
    E::SpecialPrimes { encoded, level, found } => "MissingKeyError" { code = "use", special = encoded, level, found },
    E::KeyBudget { budget, minimum } => "ParameterError" { what = "key_budget", value = budget, minimum },
    E::StagesFused | E::NoEphemeralSecret | E::InputRing | E::PairPlan => "ParameterError" {},
    E::PairValues { .. } => "OperandError" { code = "range", operation = "bootstrap_pair" },
    E::FailureProbability { log2 } =>
        "ParameterError" { what = "log2_failure", value = *log2, maximum = 0.0 },
    E::BabySteps { n1, slots } => "ParameterError" { what = "n1", value = n1, minimum = 1, maximum = slots },
    E::LogSlots { log_slots, max } =>
        "ParameterError" { what = "log_slots", value = log_slots, maximum = max },
    E::MatrixShape { rows, columns, slots } => "EncodeError" { count = rows.max(columns), bound = slots },
    E::DiagonalLength { index, found, expected } => "EncodeError" { index, count = found, bound = expected },
    E::DiagonalPeriod { period, slots } =>
        "ParameterError" { what = "period", value = period, minimum = 1, maximum = slots },
    E::CoefficientWidth { index, bits } => "EncodeError" { index, needed_bits = bits, available_bits = 62.0 },
    E::Empty(what) => "ParameterError" { what, value = 0, minimum = 1 },
    E::Mismatch { what, .. } => "ParameterError" { what },
    E::NotFinite { index, value, .. } => "EncodeError" { index, value },
    E::Interval { a, b } => "ParameterError" { what = "interval", value = b, minimum = a },
    _ => "KeywrightError" {},
}

table! { ckks(py, CkksError);
    E::Rlwe(error) => rlwe(error),
    E::Encode(error) => encode(error),
    E::ScaleMismatch { left, right } => "ScaleError" { left_log_scale = left, right_log_scale = right },
    E::PackingMismatch { left, right } =>
        "OperandError" { code = "packing", left = left.to_string(), right = right.to_string() },
    E::LevelsExhausted { operation, needed, available } => "LevelError" { operation, needed, available },
    E::Degree { operation, degree } => "OperandError" { code = "degree", operation, degree },
    E::Scale { log_scale, log_q, level } => "ScaleError" { log_scale, log_q, level },
    E::Overflow { log_value, log_limit, .. } => "NoiseError" { code = "overflow", log_value, log_limit },
    E::MayOverflow { log_value, log_limit } => "NoiseError" { code = "overflow", log_value, log_limit },
    E::AboveMagnitude { value, magnitude } => "EncodeError" { value, magnitude },
    E::MagnitudeAboveModulus { magnitude, .. } => "EncodeError" { magnitude },
    E::Magnitude(value) => "ParameterError" { what = "magnitude", value },
    E::NotFinite(value) => "EncodeError" { value },
    E::FloodingRange { what, value, max } => "ParameterError" { what, value, minimum = 1, maximum = max },
    E::FloodingTooLarge { bits, queries, lost, error, limit, .. } =>
        "NoiseError" { code = "flooding", bits, queries, lost_bits = lost, error_bound = error, limit },
    E::FloodingSpent { queries } => "NoiseError" { code = "queries", queries },
    E::FloodingForked { owner, process } => "RandomnessError" { code = "forked", owner, process },
    E::NotPowerOfTwo(count) => "ParameterError" { what = "number of slots", value = count },
    E::Circuit { what, value, .. } => "ParameterError" { what, value },
    E::NoRing { depth, .. } => "ParameterError" { what = "depth", value = depth },
    E::UnknownPreset { name, known } => "ParameterError" { what = "preset", value = name, known },
    _ => "KeywrightError" {},
}
