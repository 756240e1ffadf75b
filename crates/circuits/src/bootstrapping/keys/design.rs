//! Digits and levels of the keys of a bootstrapping.
//!
//! A key is determined by what it switches, by the length of its digits and by its level (Joo, Ha, Oh and Paek,
//! *Efficient Keyset Design for Neural Networks Using Homomorphic Encryption*, Sensors 25(14), 2025, section 5). The
//! stages fix the first; this module chooses the other two, by the same rule for all keys of a plan.

use std::ops::Range;

use keywright_rlwe::{KeyElement, KeySpec, Parameters, RlweError};

use super::quiet::{is_loud, least};

/// How the digits of keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DigitRule {
    /// The same for all keys: digits of at most `alpha` primes over the first `alpha` special primes of the parameters,
    /// at any level. A digit whose product would exceed that of the special primes is closed early.
    Static {
        /// Primes per digit, and special primes.
        alpha: usize,
    },
    /// For each key, the digits and special primes that need the fewest transforms at the level where it is used.
    Dynamic {
        /// Whether ciphertext primes above the key's level, which ciphertexts there have dropped, may join the special
        /// primes of the parameters. The lower the level, the longer the digits they allow.
        dropped_primes: bool,
    },
}

impl DigitRule {
    /// As long as the special primes of the parameters allow, at every level.
    pub fn maximum(parameters: &Parameters) -> Self {
        Self::Static { alpha: parameters.special_primes().len() }
    }
}

/// The levels of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyLevels {
    /// Each key at the level where it is used.
    Needed,
    /// Each key at the highest level that its special primes and the security bound allow, as in a library that makes
    /// keys before it knows their use.
    Top,
}

/// Digits and levels of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDesign {
    /// The choice of digits.
    pub digits: DigitRule,
    /// The choice of levels.
    pub levels: KeyLevels,
}

impl KeyDesign {
    /// The seeded key for `element` at `level`.
    ///
    /// # Errors
    /// [`RlweError::Count`] for a static alpha of 0 or of more special primes than there are;
    /// [`RlweError::SpecialTooSmall`] if one ciphertext prime is larger than the product of the special primes; other
    /// errors of [`KeySpec::validate`] if no key is legal.
    pub fn key(self, rlwe: &Parameters, element: KeyElement, level: usize) -> Result<KeySpec, RlweError> {
        self.cheapest(rlwe, element, level, |_, _| false)
    }

    /// The same for a key that adds less noise than the rounding of its division ([`is_loud`]), if there is one. Most
    /// static digits have none.
    ///
    /// # Errors
    /// As [`Self::key`].
    pub(crate) fn quiet_key(
        self,
        rlwe: &Parameters,
        element: KeyElement,
        level: usize,
    ) -> Result<KeySpec, RlweError> {
        self.cheapest(rlwe, element, level, |spec, digits| is_loud(rlwe, spec, digits))
    }

    /// Prefers legal keys that are not loud, and among them the one with the fewest transforms.
    fn cheapest(
        self,
        rlwe: &Parameters,
        element: KeyElement,
        level: usize,
        loud: impl Fn(&KeySpec, &[Range<usize>]) -> bool,
    ) -> Result<KeySpec, RlweError> {
        rlwe.require_level(level)?;
        let specs = self.candidates(rlwe, level)?.into_iter().map(|(alpha, special)| KeySpec {
            element,
            level,
            alpha,
            special,
            seeded: true,
            subring: rlwe.as_subring(),
        });
        let cost = |spec: &KeySpec, digits: &[Range<usize>]| {
            (loud(spec, digits), spec.transforms(digits.len()), spec.alpha, spec.special.len())
        };
        if let Some(spec) = least(rlwe, specs, cost) {
            return Ok(self.at_its_level(rlwe, spec));
        }
        let spec = match self.digits {
            DigitRule::Static { alpha } => {
                KeySpec { special: first(rlwe, alpha), ..KeySpec::new(rlwe, element, level, alpha, true) }
            }
            DigitRule::Dynamic { .. } => KeySpec::new(rlwe, element, level, 1, true),
        };
        spec.validate(rlwe).map(|_| spec)
    }

    /// Alphas with special primes: more special primes allow longer digits, fewer special primes are fewer targets.
    fn candidates(self, rlwe: &Parameters, level: usize) -> Result<Vec<(usize, Vec<usize>)>, RlweError> {
        let own = rlwe.special_primes().len();
        let dropped_primes = match self.digits {
            DigitRule::Static { alpha } if (1..=own).contains(&alpha) => {
                return Ok(vec![(alpha, first(rlwe, alpha))]);
            }
            DigitRule::Static { alpha } => {
                let what = "alpha, at most the number of special primes,";
                return Err(RlweError::Count { what, count: alpha, min: 1, max: own });
            }
            DigitRule::Dynamic { dropped_primes } => dropped_primes,
        };
        let mut dropped: Vec<usize> = (level + 1..=rlwe.max_level()).collect();
        if !dropped_primes {
            dropped.clear();
        }
        if self.levels == KeyLevels::Top {
            // A key is below its special primes: the highest special primes leave it the most levels.
            dropped.reverse();
        }
        let mut out = Vec::new();
        for (own, dropped_count) in (0..=own).flat_map(|own| (0..=dropped.len()).map(move |d| (own, d))) {
            let special: Vec<usize> =
                first(rlwe, own).into_iter().chain(dropped[..dropped_count].iter().copied()).collect();
            out.extend((1..=level + 1).map(|alpha| (alpha, special.clone())));
        }
        Ok(out)
    }

    fn at_its_level(self, rlwe: &Parameters, spec: KeySpec) -> KeySpec {
        if self.levels == KeyLevels::Needed {
            return spec;
        }
        let above = spec.special.iter().copied().min().unwrap_or(0).min(rlwe.max_level() + 1);
        let higher = (spec.level + 1..above).rev().map(|level| KeySpec { level, ..spec.clone() });
        let legal = higher.into_iter().find(|candidate| candidate.validate(rlwe).is_ok());
        legal.unwrap_or(spec)
    }
}

/// Indices of the first special primes of the parameters.
fn first(rlwe: &Parameters, count: usize) -> Vec<usize> {
    rlwe.special_primes().take(count).collect()
}
