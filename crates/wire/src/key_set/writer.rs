use std::io::Write;

use keywright_rlwe::{EvaluationKeys, KeyIdentity, KeySpec, Parameters, SwitchingKey};

use super::{Directory, require_spec};
use crate::object::header;
use crate::stream::body::BodyWriter;
use crate::{Wire, WireError};

/// Writes a key set key by key: the specs first, then every key as soon as it exists.
pub struct KeySetWriter<W: Write> {
    parameters: Parameters,
    directory: Directory,
    body: BodyWriter<W>,
    written: usize,
    /// The identity of the keys written so far.
    identity: KeyIdentity,
}

impl<W: Write> KeySetWriter<W> {
    /// Writes the directory of a set that will hold a key for each of `specs`, in that order.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`]; [`WireError::Field`] for more than [`crate::MAX_KEYS`] keys;
    /// [`WireError::Io`].
    pub fn new(writer: W, specs: &[KeySpec], parameters: &Parameters) -> Result<Self, WireError> {
        let directory = Directory::new(specs.iter().cloned(), parameters)?;
        let body = BodyWriter::start(
            writer,
            header::<EvaluationKeys>(&directory, parameters, KeyIdentity::UNKNOWN)?,
        )?;
        let (parameters, identity) = (parameters.clone(), KeyIdentity::UNKNOWN);
        Ok(Self { parameters, directory, body, written: 0, identity })
    }

    /// The spec of the next key; `None` after the last.
    pub fn next_spec(&self) -> Option<&KeySpec> {
        self.directory.entries.get(self.written).map(|entry| &entry.spec)
    }

    /// Writes the next key.
    ///
    /// # Errors
    /// [`WireError::KeyOrder`] if it is not the directory's next key, [`WireError::KeyCount`] if none is left;
    /// [`keywright_rlwe::RlweError::KeyMismatch`] for keys of two secrets; otherwise as [`Wire::write_to`].
    pub fn write(&mut self, key: &SwitchingKey) -> Result<(), WireError> {
        let expected = self.directory.entries.len();
        let Some(spec) = self.next_spec() else {
            return Err(WireError::KeyCount { found: self.written + 1, expected });
        };
        require_spec(self.written, key.spec(), spec)?;
        self.identity = self.identity.join(key.identity(), "the key set", "the key")?;
        key.write_to(&mut self.body, &self.parameters)?;
        self.written += 1;
        Ok(())
    }

    /// Ends the set and returns the writer. Without this call the bytes are a truncated set, which readers refuse.
    ///
    /// # Errors
    /// [`WireError::KeyCount`] if keys are missing; [`WireError::Io`].
    pub fn finish(self) -> Result<W, WireError> {
        let expected = self.directory.entries.len();
        if self.written != expected {
            return Err(WireError::KeyCount { found: self.written, expected });
        }
        self.body.finish()
    }
}
