//! Sets of switching keys, whole or key by key.
//!
//! The directory, in the header, names every key and its length. The body is the keys, each an object of its own with
//! its own checksum. The directory alone determines every position. A set can therefore be written while its keys are
//! generated, read as it arrives, and read key by key from a file, each time with one key in memory.

mod directory;
mod file;
mod loader;
mod reader;
mod shared;
mod writer;

use std::io::{Read, Write};

use keywright_rlwe::{EvaluationKeys, KeySpec, Parameters, SwitchingKey};

pub(crate) use directory::Directory;
pub use directory::KeyEntry;
pub use file::KeySetFile;
pub use loader::{Arrival, KeySetLoader};
pub use reader::KeySetReader;
pub use shared::{KeySharing, SharedKeyLoader, shared_keys};
pub use writer::KeySetWriter;

use super::stream::body::{BodyReader, BodyWriter};
use super::stream::header::Header;
use crate::object::{Record, read_after};
use crate::rlwe::switching_key::require_made;
use crate::{Kind, Wire, WireError};

/// Reads the key at a place of the directory of a set, and nothing after it. Refuses another length or spec.
pub(crate) fn read_key(
    reader: &mut impl Read,
    (index, entry): (usize, &KeyEntry),
    parameters: &Parameters,
) -> Result<SwitchingKey, WireError> {
    let header = Header::read(reader)?;
    let (found, expected) = (header.object_len()?, entry.bytes);
    if found != expected {
        return Err(WireError::Length { what: "a key of the set", found, expected });
    }
    let key: SwitchingKey = read_after(&header, reader, parameters)?;
    require_spec(index, key.spec(), &entry.spec)?;
    Ok(key)
}

/// Refuses a key that differs from the directory's entry at its place.
pub(crate) fn require_spec(index: usize, found: &KeySpec, expected: &KeySpec) -> Result<(), WireError> {
    if found == expected {
        return Ok(());
    }
    Err(WireError::KeyOrder { index, found: Box::new(found.clone()), expected: Box::new(expected.clone()) })
}

/// All keys, in the order of the set.
impl Record for EvaluationKeys {
    type Context = Parameters;
    type Descriptor = Directory;
    const KIND: Kind = Kind::KeySet;

    fn descriptor(&self, parameters: &Parameters) -> Result<Directory, WireError> {
        self.parameters().require_same(parameters, "the key set", "the parameters it is written for")?;
        self.iter().try_for_each(require_made)?;
        Directory::new(self.iter().map(|key| key.spec().clone()), parameters)
    }

    fn body_len(directory: &Directory, parameters: &Parameters) -> Result<u64, WireError> {
        directory.require_lengths(parameters)?;
        directory.body_len()
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        self.iter().try_for_each(|key| key.load()?.write_to(body, parameters))
    }

    fn read_body<R: Read>(
        directory: Directory,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let mut keys = Self::new(parameters);
        for (index, entry) in directory.entries.iter().enumerate() {
            keys.insert(read_key(body, (index, entry), parameters)?)?;
        }
        Ok(keys)
    }
}

impl Wire for EvaluationKeys {}
