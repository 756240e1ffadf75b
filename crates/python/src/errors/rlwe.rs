//! Rings, parameters and keys.

use keywright_ring::RingError;
use keywright_rlwe::{KeyElement, RlweError};
use pyo3::prelude::*;

use super::description::{Described, described};

pub(super) fn ring<'py>(py: Python<'py>, error: &RingError) -> PyResult<Described<'py>> {
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
        RingError::Randomness(_) => described!(py, "RandomnessError"),
        RingError::Forked { owner, process } | RingError::OtherProcess { owner, process, .. } => {
            described!(py, "ForkedError", owner = owner, process = process)
        }
        RingError::NotPrime(modulus) => described!(py, "ParameterError", what = "modulus", value = modulus),
        RingError::NoRoot { prime, two_n } => {
            described!(py, "ParameterError", what = "modulus", value = prime, two_n = two_n)
        }
        RingError::NotEnoughPrimes { bits, found, required, .. } => described!(
            py,
            "ParameterError",
            what = "number of primes",
            value = required,
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

pub(super) fn element_name(element: &KeyElement) -> String {
    match element {
        KeyElement::Galois(g) => format!("galois {g}"),
        KeyElement::Relinearization => "relinearization".into(),
        KeyElement::Secret(id) => format!("secret {id}"),
        KeyElement::DenseToSparse(weight) => format!("dense_to_sparse {weight}"),
        KeyElement::SparseToDense(weight) => format!("sparse_to_dense {weight}"),
        KeyElement::SparseToDenseGalois { weight, galois } => {
            format!("sparse_to_dense_galois {weight} {galois}")
        }
        KeyElement::RingDown { from, part } => format!("ring_down {from} {part}"),
        KeyElement::RingUp { from } => format!("ring_up {from}"),
        KeyElement::RingUpToSparse { from, weight } => format!("ring_up_to_sparse {from} {weight}"),
    }
}

pub(super) fn rlwe<'py>(py: Python<'py>, error: &RlweError) -> PyResult<Described<'py>> {
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
        RlweError::LastPrime => described!(
            py,
            "LevelError",
            level = 0_usize,
            operation = "division by a prime",
            needed = 1_usize,
            available = 0_usize
        ),
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
        RlweError::KeyMismatch { left_key, right_key, .. } => {
            described!(py, "KeyMismatchError", left = left_key.to_string(), right = right_key.to_string())
        }
        RlweError::MixedParameters { left, right } | RlweError::MixedRings { left, right, .. } => {
            described!(py, "MixedParametersError", left = left, right = right)
        }
        RlweError::EphemeralSecret(element) | RlweError::EphemeralRepeated(element) => {
            described!(py, "ParameterError", what = "ephemeral keys", value = element_name(element))
        }
        RlweError::Subring { log_n, level, .. } => {
            described!(py, "ParameterError", what = "subring", value = log_n, level = level)
        }
        RlweError::NoRing { log_n, known } => {
            described!(py, "ParameterError", what = "log_n", value = log_n, known = known)
        }
        RlweError::RingSwitch { element, log_n, .. } => {
            described!(py, "ParameterError", what = "log_n", value = log_n, element = element_name(element))
        }
        RlweError::Route { level, child, .. } => {
            described!(py, "PlanMismatchError", level = level, galois_element = child)
        }
        RlweError::NotPlanned { level, .. } => described!(py, "PlanMismatchError", level = level),
        RlweError::KeyMemory { element, level, needed, budget } => described!(
            py,
            "KeyMemoryError",
            needed = needed,
            budget = budget,
            element = element_name(element),
            level = level
        ),
        RlweError::KeySource { element, level, .. } => {
            described!(py, "KeySourceError", element = element_name(element), level = level)
        }
        RlweError::NotGalois(element) => {
            described!(py, "DerivationError", element = element_name(element), reason = "kind")
        }
        RlweError::Underivable { element, .. } => {
            described!(py, "DerivationError", element = element_name(element), reason = "unreachable")
        }
        _ => described!(py, "KeywrightError"),
    }
}
