//! Key sets in shared memory: the first process that needs the keys unpacks and checks them, the others map them.
//!
//! The words are those of every key, in reading order: the rows `b`, then the rows `a` of a key that is not seeded. The
//! tail lists the keys: the head of the set as in its file, then for every key of the directory its own head and the
//! position of its first word. Only the maker could have changed them ([`keywright_ring::SharedFile`]). So residues are
//! not checked again, but everything that determines shapes and security is.

use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keywright_frame::{KeyDescriptor, MAX_DESCRIPTOR_BYTES, MAX_KEYS};
use keywright_ring::{SharedFile, SharedWords, SharedWriter};
use keywright_rlwe::residency::{Each, KeyLoader, Stop};
use keywright_rlwe::{
    EvaluationKeys, KeyIdentity, KeyLayout, KeyRow, Parameters, RlweError, SwitchingKey, UniformPart,
};

use super::{Directory, KeySetLoader, require_spec};
use crate::WireError;
use crate::object::{Record, header, open};
use crate::rlwe::switching_key::digits;
use crate::stream::header::Header;

/// The interval at which a caller that waits for the memory is asked whether to continue.
const PATIENCE: Duration = Duration::from_millis(50);

/// More than the bytes of a head around its descriptor.
const HEAD_BYTES: u64 = 1 << 10;

/// Reads the keys of a file into shared memory, each once, and returns each from there. [`KeySharing::wait`] returns
/// the memory with all of them at the end.
pub struct SharedKeyLoader {
    file: KeySetLoader,
    sharing: Arc<KeySharing>,
}

/// The memory that a [`SharedKeyLoader`] fills.
pub struct KeySharing {
    parameters: Parameters,
    directory: Directory,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// `None` once it is finished.
    writer: Option<SharedWriter>,
    finished: Option<SharedFile>,
    /// For every key: its head, the position of its first word, and the key.
    keys: Vec<Option<(Vec<u8>, u64, SwitchingKey)>>,
    /// The reason why no more keys will come.
    failed: Option<String>,
}

impl SharedKeyLoader {
    /// The keys of a file.
    ///
    /// # Errors
    /// [`WireError::Io`] if the system has no such memory.
    pub fn new(file: KeySetLoader, parameters: &Parameters) -> Result<Self, WireError> {
        let specs = file.layouts().iter().map(|layout| layout.spec.clone());
        let directory = Directory::new(specs, parameters)?;
        let state = State {
            writer: Some(SharedWriter::new()?),
            finished: None,
            keys: vec![None; directory.entries.len()],
            failed: None,
        };
        let (parameters, state) = (parameters.clone(), Mutex::new(state));
        let sharing = Arc::new(KeySharing { parameters, directory, state, changed: Condvar::new() });
        Ok(Self { file, sharing })
    }

    /// The memory that it fills.
    pub fn sharing(&self) -> Arc<KeySharing> {
        self.sharing.clone()
    }
}

impl KeyLoader for SharedKeyLoader {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        self.file.layouts()
    }

    fn calls_back(&self) -> bool {
        self.file.calls_back()
    }

    fn make(&mut self, places: &[usize], each: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError> {
        for &place in places {
            if let Some(key) = self.sharing.key(place) {
                each(place, key);
                continue;
            }
            let mut outcome = Ok(());
            let read = self.file.make(
                &[place],
                &mut |_, key| outcome = self.sharing.put(place, &key).map(|key| each(place, key)),
                stop,
            );
            if let Err(error) = read.and(outcome.map_err(|error| {
                let spec = &self.file.layouts()[place].spec;
                RlweError::KeySource { element: spec.element, level: spec.level, reason: error.to_string() }
            })) {
                self.sharing.fail(&error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for SharedKeyLoader {
    fn drop(&mut self) {
        self.sharing.fail("the reader of the keys has ended");
    }
}

impl KeySharing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, reason: &str) {
        let mut state = self.lock();
        state.failed.get_or_insert_with(|| reason.into());
        self.changed.notify_all();
    }

    fn key(&self, place: usize) -> Option<SwitchingKey> {
        self.lock().keys[place].as_ref().map(|(_, _, key)| key.clone())
    }

    /// Copies a key into the memory, and returns it from there.
    fn put(&self, place: usize, key: &SwitchingKey) -> Result<SwitchingKey, WireError> {
        let descriptor = key.descriptor(&self.parameters)?;
        let mut head = Vec::new();
        header::<SwitchingKey>(&descriptor, &self.parameters, key.identity())?.write(&mut head)?;
        let mut state = self.lock();
        let Some(writer) = &mut state.writer else { return Err(ended("they are whole")) };
        let stored: &[KeyRow] = match key.uniform() {
            UniformPart::Stored(rows) => rows,
            UniformPart::Seeded(_) => &[],
        };
        let (start, words) = writer.append(key.b_rows().iter().chain(stored).map(KeyRow::words))?;
        let shared = shared_key(&self.parameters, key.identity(), descriptor, &Arc::new(words), 0)?;
        state.keys[place] = Some((head, start as u64, shared.clone()));
        if state.keys.iter().all(Option::is_some) {
            self.changed.notify_all();
        }
        Ok(shared)
    }

    /// Waits until all keys are read, and returns the memory: sealed, the same each time. While it waits, it asks
    /// `stop` again and again.
    ///
    /// # Errors
    /// [`RlweError::Interrupted`] once `stop` says so; [`WireError::Io`] if a key cannot be read, or the reader has
    /// ended.
    pub fn wait(&self, mut stop: impl FnMut() -> bool) -> Result<SharedFile, WireError> {
        let mut state = self.lock();
        while state.finished.is_none() && !state.keys.iter().all(Option::is_some) {
            if let Some(reason) = &state.failed {
                return Err(ended(reason));
            }
            let waited = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            drop(waited);
            if stop() {
                return Err(RlweError::Interrupted.into());
            }
            state = self.lock();
        }
        if let Some(writer) = state.writer.take() {
            let mut tail = Vec::new();
            header::<EvaluationKeys>(&self.directory, &self.parameters, KeyIdentity::UNKNOWN)?
                .write(&mut tail)?;
            for (head, start, _) in state.keys.iter().flatten() {
                tail.extend_from_slice(head);
                tail.extend_from_slice(&start.to_ne_bytes());
            }
            state.finished = Some(writer.finish(&tail)?);
        }
        match &state.finished {
            Some(file) => Ok(file.try_clone()?),
            None => Err(ended("the memory could not be finished")),
        }
    }
}

/// The keys in the shared memory of a [`KeySharing`].
///
/// # Errors
/// Any [`WireError`] of a head of the set or of a key; [`WireError::Truncated`] if there are fewer words than the heads
/// need.
pub fn shared_keys(file: &SharedFile, parameters: &Parameters) -> Result<EvaluationKeys, WireError> {
    let heads = (HEAD_BYTES + MAX_DESCRIPTOR_BYTES) * (1 + MAX_KEYS as u64);
    let tail = file.tail(heads + 4 * MAX_DESCRIPTOR_BYTES)?;
    let mut rest = &tail[..];
    let directory: Directory = open::<EvaluationKeys>(&Header::read(&mut rest)?, parameters)?;
    let words = Arc::new(file.words()?);
    let mut keys = EvaluationKeys::new(parameters);
    for (index, entry) in directory.entries.iter().enumerate() {
        let head = Header::read(&mut rest)?;
        let descriptor = open::<SwitchingKey>(&head, parameters)?;
        require_spec(index, &descriptor.spec, &entry.spec)?;
        let mut start = [0; 8];
        rest.read_exact(&mut start)?;
        let first = usize::try_from(u64::from_ne_bytes(start)).unwrap_or(usize::MAX);
        keys.insert(shared_key(parameters, head.key, descriptor, &words, first)?)?;
    }
    match rest.len() as u64 {
        0 => Ok(keys),
        extra => Err(WireError::Trailing { what: "the heads of shared keys", extra }),
    }
}

/// The key whose words begin at a position.
fn shared_key(
    parameters: &Parameters,
    identity: KeyIdentity,
    descriptor: KeyDescriptor,
    words: &Arc<SharedWords>,
    first: usize,
) -> Result<SwitchingKey, WireError> {
    let KeyDescriptor { spec, seed, .. } = descriptor;
    let n = parameters.ring_named(spec.subring)?.n();
    let (rows, limbs) = (digits(&spec, parameters)?, spec.primes().count());
    let row = |number: usize| {
        let start = first.checked_add(number * limbs * n);
        let row = start.and_then(|start| KeyRow::shared(n, limbs, words, start));
        row.ok_or_else(|| {
            let end = (first as u64).saturating_add((limbs * n * (number + 1)) as u64);
            let needed = end.saturating_mul(8);
            let missing = needed.saturating_sub(8 * words.len() as u64);
            WireError::Truncated { what: "the words of shared keys", needed, missing }
        })
    };
    let b: Vec<KeyRow> = (0..rows).map(row).collect::<Result<_, _>>()?;
    let uniform = match seed {
        Some(seed) => UniformPart::Seeded(seed),
        None => UniformPart::Stored((rows..2 * rows).map(row).collect::<Result<_, _>>()?),
    };
    Ok(SwitchingKey::from_parts(parameters, identity, spec, b, uniform)?)
}

fn ended(reason: &str) -> WireError {
    io::Error::other(format!("the keys cannot be shared: {reason}")).into()
}
