use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, Range};

use crate::{KeyIdentity, KeyLayout, KeySpec, RlweError, SwitchingKey};

/// The source of keys that are not always in memory.
pub trait KeySource: Send + Sync {
    /// Loads the keys at some places of the source, and keeps them in memory while the results exist. Returns those of
    /// a nonempty prefix of `places`, as many as fit together. May wait for the first of them, and only for that.
    ///
    /// # Errors
    /// [`RlweError::KeySource`] or [`RlweError::KeyMemory`], with the reason.
    fn load(&self, places: &[usize]) -> Result<Vec<LoadedKey>, RlweError>;
}

/// A key in memory; a source may evict its key when this is dropped.
pub struct LoadedKey {
    key: Arc<SwitchingKey>,
    /// Tells the source when it is dropped.
    _lease: Option<Box<dyn Send + Sync>>,
}

impl LoadedKey {
    /// A key of a source, which may evict it when `lease` is dropped.
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

    /// The description of the key.
    pub fn spec(&self) -> &KeySpec {
        &self.layout.spec
    }

    /// The identity of the secret that made it.
    pub fn identity(&self) -> KeyIdentity {
        self.layout.identity
    }

    /// The primes of each digit.
    pub fn digits(&self) -> &[Range<usize>] {
        &self.layout.digits
    }

    /// The key itself. A source reads or makes it if it is not in memory, and may evict it when the result is dropped.
    ///
    /// # Errors
    /// The errors of [`KeySource::load`].
    pub fn load(&self) -> Result<LoadedKey, RlweError> {
        match &self.residues {
            Residues::Memory(key) => Ok(LoadedKey { key: key.clone(), _lease: None }),
            Residues::Source(source, place) => Ok(source.load(&[*place])?.remove(0)),
        }
    }

    /// The keys of a prefix of `keys`, empty only if `keys` is: as many as fit memory together. A caller that needs all
    /// of them uses these, drops them and asks for the others. So the memory of one key suffices, and nobody holds keys
    /// while waiting for more.
    ///
    /// # Errors
    /// The errors of [`KeySource::load`].
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

    /// The key, if it is always in memory.
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
