//! Rings, parameters and keys.

use keywright_ring::RingError;
use keywright_rlwe::{KeyElement, RlweError};

use crate::errors::description::table;

table! { ring(py, RingError);
    E::Degree(log_n) =>
        "ParameterError" {
            what = "log_n", value = log_n, minimum = keywright_ring::MIN_LOG_N, maximum = keywright_ring::MAX_LOG_N
        },
    E::ModulusRange(modulus) =>
        "ParameterError" { what = "modulus", value = modulus, minimum = 3, maximum = (1u64 << 61) - 1 },
    E::Randomness(_) => "RandomnessError" {},
    E::Forked { owner, process } | E::OtherProcess { owner, process, .. } => "RandomnessError" { code = "forked", owner, process },
    E::Width { bits } =>
        "ParameterError" {
            what = "bits of a prime", value = bits, minimum = keywright_ring::MIN_BITS, maximum = keywright_ring::MAX_BITS
        },
    E::NotPrime(modulus) => "ParameterError" { what = "modulus", value = modulus },
    E::NoRoot { prime, two_n } => "ParameterError" { what = "modulus", value = prime, two_n },
    E::NotEnoughPrimes { bits, found, required, .. } =>
        "ParameterError" { what = "number of primes", value = required, maximum = found, bits },
    E::Repeated(prime) => "ParameterError" { what = "modulus", value = prime },
    E::GaloisElement { element, two_n } =>
        "ParameterError" { what = "Galois element", value = element, minimum = 1, maximum = two_n - 1 },
    E::BackendUnavailable(name, available) => "ParameterError" { code = "backend", backend = name, available },
    E::HammingWeight { weight, n } =>
        "ParameterError" { what = "Hamming weight", value = weight, minimum = 1, maximum = n },
    _ => "ParameterError" {},
}

pub(crate) fn element_name(element: &KeyElement) -> String {
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

table! { rlwe(py, RlweError);
    E::Ring(error) => ring(error),
    E::Insecure { object, log_qp, log_n, secret, bound } =>
        "SecurityError" { object, modulus_bits = log_qp, bound, log_n, secret },
    E::NoBound { secret, log_n } =>
        "SecurityError" { object = py.None(), modulus_bits = py.None(), bound = py.None(), log_n, secret },
    E::Count { what, count, min, max } =>
        "ParameterError" { what, value = count, minimum = min, maximum = max },
    E::Level { level, max, object } => "LevelError" { level, maximum = max, object },
    E::LastPrime =>
        "LevelError" {
            level = 0_usize, operation = "division by a prime", needed = 1_usize, available = 0_usize
        },
    E::Unmoved => "ParameterError" { what = "rotation", value = 0 },
    E::SpecialPrime { index, level, .. } => "ParameterError" { what = "special prime", value = index, level },
    E::SpecialTooSmall { index, prime_bits, special_bits } =>
        "ParameterError" { what = "bits of a prime", value = prime_bits, maximum = special_bits, index },
    E::MissingKey { element, rotation, level, nearest } =>
        "MissingKeyError" {
            element = element_name(element), rotation = rotation.parse::<i64>().ok(), level, nearest
        },
    E::KeyUse { element, key_level, alpha, level, coalesce, .. } =>
        "MissingKeyError" { code = "use", element = element_name(element), key_level, alpha, level, coalesce },
    E::KeyMismatch { left_key, right_key, .. } =>
        "MismatchError" { code = "key", left = left_key.to_string(), right = right_key.to_string() },
    E::MixedParameters { left, right } | E::MixedRings { left, right, .. } =>
        "MismatchError" { code = "parameters", left, right },
    E::EphemeralSecret(element) | E::EphemeralRepeated(element) =>
        "ParameterError" { what = "ephemeral keys", value = element_name(element) },
    E::Subring { log_n, level, .. } => "ParameterError" { what = "subring", value = log_n, level },
    E::NoRing { log_n, known } => "ParameterError" { what = "log_n", value = log_n, known },
    E::RingSwitch { element, log_n, .. } =>
        "ParameterError" { what = "log_n", value = log_n, element = element_name(element) },
    E::Route { level, child, .. } => "MismatchError" { code = "plan", level, galois_element = child },
    E::NotPlanned { level, .. } => "MismatchError" { code = "plan", level },
    E::KeyMemory { element, level, needed, budget } =>
        "OutOfMemoryError" { code = "keys", needed, budget, element = element_name(element), level },
    E::KeySource { element, level, .. } => "KeySourceError" { element = element_name(element), level },
    E::NotGalois(element) => "MissingKeyError" { element = element_name(element), code = "kind" },
    E::Underivable { element, .. } =>
        "MissingKeyError" { element = element_name(element), code = "unreachable" },
    _ => "KeywrightError" {},
}
