//! Master keys, from which a server derives other keys.
//!
//! The object belongs to the parameters that keys are derived for. Its descriptor names the extra primes, which with
//! those of the parameters are the chain that the keys belong to, and the directory of the keys; the body is the keys,
//! each an object of its own.

use std::io::{Read, Write};
use std::sync::OnceLock;

use keywright_frame::{FieldReader, FieldWriter, MAX_EXTRA_PRIMES};
use keywright_rlwe::Parameters;
use keywright_rlwe::derive::{MasterKeys, MasterParameters};

use crate::error::in_range;
use crate::key_set::{Directory, read_key};
use crate::object::{Descriptor, Record};
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError};

/// The extra primes, and the keys in stored order.
#[derive(Debug, Clone)]
pub struct MasterDescriptor {
    pub(crate) extra: Vec<u64>,
    pub(crate) directory: Directory,
    /// Made once, when the extra primes join the parameters.
    chain: OnceLock<MasterParameters>,
}

impl MasterDescriptor {
    fn chain(&self, parameters: &Parameters) -> Result<&MasterParameters, WireError> {
        if let Some(chain) = self.chain.get() {
            return Ok(chain);
        }
        let chain = MasterParameters::new(parameters, self.extra.clone())?;
        Ok(self.chain.get_or_init(|| chain))
    }
}

impl Descriptor for MasterDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        in_range("number of extra primes", self.extra.len() as u64, 1, MAX_EXTRA_PRIMES as u64)?;
        out.small("number of extra primes", self.extra.len())?;
        self.extra.iter().for_each(|&prime| out.u64(prime));
        self.directory.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let count = fields.small()?;
        in_range("number of extra primes", count as u64, 1, MAX_EXTRA_PRIMES as u64)?;
        let extra = (0..count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
        Ok(Self { extra, directory: Directory::decode(fields)?, chain: OnceLock::new() })
    }
}

impl Record for MasterKeys {
    type Context = Parameters;
    type Descriptor = MasterDescriptor;
    const KIND: Kind = Kind::MasterKeys;

    fn descriptor(&self, parameters: &Parameters) -> Result<MasterDescriptor, WireError> {
        let own = self.parameters();
        own.evaluation().require_same(
            parameters,
            "the master keys",
            "the parameters they are written for",
        )?;
        let directory = Directory::new(self.keys().iter().map(|key| key.spec().clone()), own.chain())?;
        Ok(MasterDescriptor { extra: own.extra().to_vec(), directory, chain: OnceLock::from(own.clone()) })
    }

    fn body_len(descriptor: &MasterDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        // A directory without keys needs no tables.
        if !descriptor.directory.entries.is_empty() {
            descriptor.directory.require_lengths(descriptor.chain(parameters)?.chain())?;
        }
        descriptor.directory.body_len()
    }

    fn write_body<W: Write>(&self, body: &mut BodyWriter<W>, _: &Parameters) -> Result<(), WireError> {
        self.keys().iter().try_for_each(|key| key.load()?.write_to(body, self.parameters().chain()))
    }

    fn read_body<R: Read>(
        descriptor: MasterDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let chain = descriptor.chain(parameters)?;
        let mut keys = Self::new(chain);
        for (index, entry) in descriptor.directory.entries.iter().enumerate() {
            keys.insert(read_key(body, (index, entry), chain.chain())?)?;
        }
        Ok(keys)
    }
}

impl Wire for MasterKeys {}
