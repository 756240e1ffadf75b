use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use keywright_ring::sampling::SIGMA;

use crate::{KeySpec, Parameters, RlweError, SwitchingKey};

/// What a key is without its residues: all that planning a switch and bounding its error needs.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyLayout {
    /// What the key is.
    pub spec: KeySpec,
    /// The primes of each digit.
    pub digits: Vec<Range<usize>>,
    /// Bytes of its residues and seed in memory.
    pub bytes: usize,
    /// Variance of one coefficient of the errors of its rows: [`SwitchingKey::error_variance`].
    pub error_variance: f64,
}

impl KeyLayout {
    /// The layout of a key of this spec.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says of the spec.
    pub fn new(parameters: &Parameters, spec: KeySpec) -> Result<Self, RlweError> {
        let digits = spec.validate(parameters)?;
        let half = parameters.n() * 8 * digits.len() * (spec.level + 1 + spec.special.len());
        let bytes = if spec.seeded { half + 32 } else { 2 * half };
        Ok(Self { spec, digits, bytes, error_variance: SIGMA * SIGMA })
    }

    /// Whether the key was derived from master keys.
    pub fn is_derived(&self) -> bool {
        self.error_variance > SIGMA * SIGMA
    }
}

/// Where keys are that are not in memory all the time.
pub trait KeySource: Send + Sync {
    /// The key at a place of the source, in memory for as long as the result is kept.
    ///
    /// # Errors
    /// [`RlweError::KeySource`] or [`RlweError::KeyMemory`], why it cannot be had.
    fn load(&self, place: usize) -> Result<Arc<SwitchingKey>, RlweError>;
}

/// A key of a set, in memory or in a source.
#[derive(Clone)]
pub struct StoredKey {
    layout: Arc<KeyLayout>,
    residues: Residues,
}

#[derive(Clone)]
enum Residues {
    Memory(Arc<SwitchingKey>),
    Source(Arc<dyn KeySource>, usize),
}

impl StoredKey {
    /// The key at a place of a source.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says of the spec.
    pub fn in_source(
        parameters: &Parameters,
        spec: KeySpec,
        source: Arc<dyn KeySource>,
        place: usize,
    ) -> Result<Self, RlweError> {
        let layout = Arc::new(KeyLayout::new(parameters, spec)?);
        Ok(Self { layout, residues: Residues::Source(source, place) })
    }

    /// What the key is.
    pub fn spec(&self) -> &KeySpec {
        &self.layout.spec
    }

    /// The primes of each digit.
    pub fn digits(&self) -> &[Range<usize>] {
        &self.layout.digits
    }

    /// The key itself. One of a source is read where it is not in memory, and may be dropped from there when the result is.
    ///
    /// # Errors
    /// Those of [`KeySource::load`].
    pub fn load(&self) -> Result<Arc<SwitchingKey>, RlweError> {
        match &self.residues {
            Residues::Memory(key) => Ok(key.clone()),
            Residues::Source(source, place) => source.load(*place),
        }
    }

    /// Bytes of its residues and seed in memory.
    pub fn bytes(&self) -> usize {
        self.layout.bytes
    }

    /// The key if it is always in memory.
    pub(crate) fn in_memory(&self) -> Option<&Arc<SwitchingKey>> {
        match &self.residues {
            Residues::Memory(key) => Some(key),
            Residues::Source(..) => None,
        }
    }
}

impl AsRef<KeyLayout> for StoredKey {
    fn as_ref(&self) -> &KeyLayout {
        &self.layout
    }
}

impl From<Arc<SwitchingKey>> for StoredKey {
    fn from(key: Arc<SwitchingKey>) -> Self {
        Self { layout: key.layout().clone(), residues: Residues::Memory(key) }
    }
}

impl From<SwitchingKey> for StoredKey {
    fn from(key: SwitchingKey) -> Self {
        Arc::new(key).into()
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_memory().is_some() { "in memory" } else { "in a source" };
        write!(f, "StoredKey({:?}, {place})", self.layout.spec)
    }
}
