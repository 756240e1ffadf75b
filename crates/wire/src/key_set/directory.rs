use keywright_frame::{FieldReader, FieldWriter, KeyDescriptor, MAX_KEYS, object_len};
use keywright_rlwe::{KeyIdentity, KeySpec, Parameters, SwitchingKey};

use crate::object::{Descriptor, Record};
use crate::rlwe::switching_key::digits;
use crate::{WireError, error::in_range};

/// One key of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// The description of the key.
    pub spec: KeySpec,
    /// Bytes of the key as an object of its own.
    pub bytes: u64,
}

/// The keys of a set, in stored order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    pub(crate) entries: Vec<KeyEntry>,
}

/// Length of a switching key as an object, from its spec alone.
fn key_len(spec: &KeySpec, parameters: &Parameters) -> Result<u64, WireError> {
    let seed = spec.seeded.then_some(keywright_ring::Seed([0; 32]));
    let descriptor = KeyDescriptor { spec: spec.clone(), digits: digits(spec, parameters)?, seed };
    let body = SwitchingKey::body_len(&descriptor, parameters)?;
    let descriptor_len = KeyIdentity::BYTES + KeyDescriptor::bytes(spec);
    object_len(descriptor_len as u64, body).ok_or(too_long(body))
}

fn too_long(value: u64) -> WireError {
    WireError::Field { what: "length of a key", value, min: 0, max: u64::MAX >> 1 }
}

impl Directory {
    pub(crate) fn new(
        specs: impl Iterator<Item = KeySpec>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let entries = specs
            .map(|spec| Ok(KeyEntry { bytes: key_len(&spec, parameters)?, spec }))
            .collect::<Result<_, WireError>>()?;
        Ok(Self { entries })
    }

    /// Refuses entries with an illegal spec, or with a length that is not that of their spec.
    pub(crate) fn require_lengths(&self, parameters: &Parameters) -> Result<(), WireError> {
        for entry in &self.entries {
            let expected = key_len(&entry.spec, parameters)?;
            if entry.bytes != expected {
                return Err(WireError::Length { what: "a key of the set", found: entry.bytes, expected });
            }
        }
        Ok(())
    }

    /// Bytes of all keys.
    pub(crate) fn body_len(&self) -> Result<u64, WireError> {
        self.entries
            .iter()
            .try_fold(0u64, |sum, entry| sum.checked_add(entry.bytes).ok_or_else(|| too_long(entry.bytes)))
    }
}

impl Descriptor for Directory {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        in_range("number of keys of a set", self.entries.len() as u64, 0, MAX_KEYS as u64)?;
        out.u32(self.entries.len() as u32);
        for entry in &self.entries {
            entry.spec.encode(out)?;
            out.u64(entry.bytes);
        }
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let count = fields.u32()?;
        in_range("number of keys of a set", count.into(), 0, MAX_KEYS as u64)?;
        // Grown entry by entry: a count without entries allocates nothing.
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push(KeyEntry { spec: KeySpec::decode(fields)?, bytes: fields.u64()? });
        }
        Ok(Self { entries })
    }
}
