use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, Range};

use keywright_ring::sampling::SIGMA;

use crate::{KeyIdentity, KeySpec, Parameters, RlweError, SwitchingKey};

/// What a key is without its residues: all that planning a switch and bounding its error needs.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyLayout {
    /// What the key is.
    pub spec: KeySpec,
    /// Of the secret that it was made with, which it leads to unless that is an ephemeral one.
    pub identity: KeyIdentity,
    /// The primes of each digit.
    pub digits: Vec<Range<usize>>,
    /// Bytes of its residues and seed in memory.
    pub bytes: usize,
    /// Variance of one coefficient of the errors of its rows: [`SwitchingKey::error_variance`].
    pub error_variance: f64,
}

impl KeyLayout {
    /// The layout of a key of this spec, of an unknown secret.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says of the spec.
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

/// Where keys are that are not in memory all the time.
pub trait KeySource: Send + Sync {
    /// The keys at some places of the source, in memory for as long as the results are kept: those of a prefix of
    /// `places` that is not empty, as many as can be had together. May wait for the first of them, and only for that.
    ///
    /// # Errors
    /// [`RlweError::KeySource`] or [`RlweError::KeyMemory`], why it cannot be had.
    fn load(&self, places: &[usize]) -> Result<Vec<LoadedKey>, RlweError>;
}

/// A key in memory; one of a source may leave it when this is dropped.
pub struct LoadedKey {
    key: Arc<SwitchingKey>,
    /// What the source is told by dropping it.
    _lease: Option<Box<dyn Send + Sync>>,
}

impl LoadedKey {
    /// A key of a source, which may drop it when `lease` is dropped.
    pub fn leased(key: Arc<SwitchingKey>, lease: impl Send + Sync + 'static) -> Self {
        Self { key, _lease: Some(Box::new(lease)) }
    }
}

impl Deref for LoadedKey {
    type Target = SwitchingKey;

    fn deref(&self) -> &SwitchingKey {
        &self.key
    }
}

impl fmt::Debug for LoadedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
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
    pub fn in_source(layout: Arc<KeyLayout>, source: Arc<dyn KeySource>, place: usize) -> Self {
        Self { layout, residues: Residues::Source(source, place) }
    }

    /// What the key is.
    pub fn spec(&self) -> &KeySpec {
        &self.layout.spec
    }

    /// That of the secret that it was made with.
    pub fn identity(&self) -> KeyIdentity {
        self.layout.identity
    }

    /// The primes of each digit.
    pub fn digits(&self) -> &[Range<usize>] {
        &self.layout.digits
    }

    /// The key itself. One of a source is read or made where it is not in memory, and may be dropped from there when
    /// the result is.
    ///
    /// # Errors
    /// Those of [`KeySource::load`].
    pub fn load(&self) -> Result<LoadedKey, RlweError> {
        match &self.residues {
            Residues::Memory(key) => Ok(LoadedKey { key: key.clone(), _lease: None }),
            Residues::Source(source, place) => Ok(source.load(&[*place])?.remove(0)),
        }
    }

    /// The keys of a prefix of `keys`, which is empty only if that is: as many as can be in memory together. Who needs
    /// all of them uses these, drops them and asks for the others, so that no more memory is needed than one key takes,
    /// and nobody holds keys while waiting for more.
    ///
    /// # Errors
    /// Those of [`KeySource::load`].
    pub fn load_some<'k>(keys: impl IntoIterator<Item = &'k Self>) -> Result<Vec<LoadedKey>, RlweError> {
        let mut keys = keys.into_iter().peekable();
        let mut out = Vec::new();
        while let Some(key) = keys.next_if(|key| key.in_memory().is_some()) {
            out.push(key.load()?);
        }
        let Some(Residues::Source(source, _)) = keys.peek().map(|key| &key.residues) else { return Ok(out) };
        let place = |key: &Self| match &key.residues {
            Residues::Source(other, place) if Arc::ptr_eq(other, source) => Some(*place),
            _ => None,
        };
        let places: Vec<usize> = keys.map_while(place).collect();
        out.extend(source.load(&places)?);
        Ok(out)
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
