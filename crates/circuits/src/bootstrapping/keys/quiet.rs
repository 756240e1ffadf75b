//! Keys that add less noise than the rounding of their division.

use std::ops::Range;

use keywright_rlwe::{KeyElement, KeySpec, Parameters, RlweError};

/// Bits by which the digits of a quiet key are smaller than its special modulus.
const MARGIN_BITS: f64 = 5.0;

/// Whether a key with these digits is loud: whether a digit exceeds `2^-5` of the special modulus.
///
/// Below it the variance of a switch is `N sigma^2 d 2^-10 / 12` for `d` digits. For up to 67 digits that is less than
/// the variance of the rounding, `N / 18` under a ternary secret. A digit as large as the special modulus adds four
/// times the rounding's deviation, which matters if no rescaling follows.
pub(super) fn is_loud(rlwe: &Parameters, spec: &KeySpec, digits: &[Range<usize>]) -> bool {
    let bits = |digit: &Range<usize>| digit.clone().map(|i| rlwe.log2_prime(i)).sum::<f64>();
    let largest = digits.iter().map(bits).fold(0.0, f64::max);
    largest + MARGIN_BITS > spec.special_bits(rlwe)
}

/// The cheapest of the legal specs, the first of equals.
pub(super) fn least<T: Ord>(
    rlwe: &Parameters,
    specs: impl Iterator<Item = KeySpec>,
    cost: impl Fn(&KeySpec, &[Range<usize>]) -> T,
) -> Option<KeySpec> {
    let legal = specs.filter_map(|spec| Some((cost(&spec, &spec.validate(rlwe).ok()?), spec)));
    legal.min_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, spec)| spec)
}

/// The quiet seeded key at `level` with the fewest transforms, over all alphas and numbers of special primes, including
/// dropped ciphertext primes. Returns a loud key if no quiet one exists.
///
/// # Errors
/// The errors of [`KeySpec::validate`] if no key is legal.
pub(crate) fn quiet_key(rlwe: &Parameters, element: KeyElement, level: usize) -> Result<KeySpec, RlweError> {
    rlwe.require_level(level)?;
    let primes: Vec<usize> = rlwe.special_primes().chain(level + 1..=rlwe.max_level()).collect();
    let specs = (1..=primes.len()).flat_map(|count| {
        let special = primes[..count].to_vec();
        let alphas = 1..=(level + 1).max(count);
        alphas.map(move |alpha| KeySpec {
            element,
            level,
            alpha,
            special: special.clone(),
            seeded: true,
            subring: rlwe.as_subring(),
        })
    });
    let cost = |spec: &KeySpec, digits: &[Range<usize>]| {
        (is_loud(rlwe, spec, digits), spec.transforms(digits.len()))
    };
    least(rlwe, specs, cost).map_or_else(
        || {
            let spec = KeySpec::new(rlwe, element, level, 1, true);
            spec.validate(rlwe).map(|_| spec)
        },
        Ok,
    )
}
