use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::sampling::SIGMA;

use crate::{KeyIdentity, KeySpec, Parameters, RlweError};

/// A key without its residues: all that planning a switch and bounding its error needs.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyLayout {
    /// The description of the key.
    pub spec: KeySpec,
    /// The identity of the secret that made it; also its target secret unless that is ephemeral.
    pub identity: KeyIdentity,
    /// The primes of each digit.
    pub digits: Vec<Range<usize>>,
    /// Bytes of its residues and seed in memory.
    pub bytes: usize,
    /// Variance of one coefficient of the errors of its rows: [`crate::SwitchingKey::error_variance`].
    pub error_variance: f64,
}

impl KeyLayout {
    /// The layout of a key of this spec, of an unknown secret.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`].
    pub fn new(parameters: &Parameters, spec: KeySpec) -> Result<Self, RlweError> {
        let digits = spec.validate(parameters)?;
        let parameters = parameters.ring_named(spec.subring)?;
        let bytes = parameters.widths().key_bytes(digits.len(), spec.primes().count(), spec.seeded);
        Ok(Self { spec, identity: KeyIdentity::UNKNOWN, digits, bytes, error_variance: SIGMA * SIGMA })
    }

    /// Whether the key was derived from master keys.
    pub fn is_derived(&self) -> bool {
        self.error_variance > SIGMA * SIGMA
    }
}
