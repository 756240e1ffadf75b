use std::io::{Read, Write};

use keywright_ckks::{Ciphertext, CkksParameters, SeededCiphertext};
use keywright_frame::{CiphertextDescriptor, FieldReader, FieldWriter, SeededDescriptor};
use keywright_rlwe::{KeyIdentity, RlweCiphertext, SeededRlweCiphertext};

use super::MessageDescriptor;
use crate::body::{BodyReader, BodyWriter};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, Wire, WireError};

/// Shape and message of a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CkksCiphertextDescriptor {
    /// The fields of the RLWE ciphertext.
    pub rlwe: CiphertextDescriptor,
    /// The description of its message.
    pub message: MessageDescriptor,
}

impl Descriptor for CkksCiphertextDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.rlwe.encode(out)?;
        self.message.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { rlwe: CiphertextDescriptor::decode(fields)?, message: MessageDescriptor::decode(fields)? })
    }
}

/// An RLWE ciphertext with its message's description.
impl Record for Ciphertext {
    type Context = CkksParameters;
    type Descriptor = CkksCiphertextDescriptor;
    const KIND: Kind = Kind::CkksCiphertext;

    fn identity(_: &CkksCiphertextDescriptor, parameters: &CkksParameters) -> Result<Identity, WireError> {
        Ok(Identity::of(parameters.rlwe().literal())?)
    }

    fn key(&self) -> KeyIdentity {
        self.rlwe.key
    }

    fn descriptor(&self, parameters: &CkksParameters) -> Result<CkksCiphertextDescriptor, WireError> {
        self.parameters.require_same(parameters, "the ciphertext", "the parameters it is written for")?;
        let message = MessageDescriptor { scale: self.scale, packing: self.packing, estimate: self.estimate };
        Ok(CkksCiphertextDescriptor { rlwe: self.rlwe.descriptor(parameters.rlwe())?, message })
    }

    fn body_len(
        descriptor: &CkksCiphertextDescriptor,
        parameters: &CkksParameters,
    ) -> Result<u64, WireError> {
        descriptor.message.require_fit(parameters)?;
        RlweCiphertext::body_len(&descriptor.rlwe, parameters.rlwe())
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &CkksParameters,
    ) -> Result<(), WireError> {
        self.rlwe.write_body(body, parameters.rlwe())
    }

    fn read_body<R: Read>(
        descriptor: CkksCiphertextDescriptor,
        body: &mut BodyReader<R>,
        parameters: &CkksParameters,
    ) -> Result<Self, WireError> {
        let rlwe = RlweCiphertext::read_body(descriptor.rlwe, body, parameters.rlwe())?;
        let MessageDescriptor { scale, packing, estimate } = descriptor.message;
        Ok(Self { parameters: parameters.clone(), rlwe, scale, packing, estimate })
    }
}

impl Wire for Ciphertext {}

/// Shape, seed and message of a seeded ciphertext.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CkksSeededDescriptor {
    /// The fields of the seeded RLWE ciphertext.
    pub rlwe: SeededDescriptor,
    /// The description of its message.
    pub message: MessageDescriptor,
}

impl Descriptor for CkksSeededDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.rlwe.encode(out)?;
        self.message.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { rlwe: SeededDescriptor::decode(fields)?, message: MessageDescriptor::decode(fields)? })
    }
}

/// A seeded RLWE ciphertext with its message's description.
impl Record for SeededCiphertext {
    type Context = CkksParameters;
    type Descriptor = CkksSeededDescriptor;
    const KIND: Kind = Kind::CkksSeededCiphertext;

    fn identity(_: &CkksSeededDescriptor, parameters: &CkksParameters) -> Result<Identity, WireError> {
        Ok(Identity::of(parameters.rlwe().literal())?)
    }

    fn key(&self) -> KeyIdentity {
        self.seeded.key
    }

    fn descriptor(&self, parameters: &CkksParameters) -> Result<CkksSeededDescriptor, WireError> {
        self.parameters.require_same(parameters, "the ciphertext", "the parameters it is written for")?;
        let message = MessageDescriptor { scale: self.scale, packing: self.packing, estimate: self.estimate };
        Ok(CkksSeededDescriptor { rlwe: self.seeded.descriptor(parameters.rlwe())?, message })
    }

    fn body_len(descriptor: &CkksSeededDescriptor, parameters: &CkksParameters) -> Result<u64, WireError> {
        descriptor.message.require_fit(parameters)?;
        SeededRlweCiphertext::body_len(&descriptor.rlwe, parameters.rlwe())
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &CkksParameters,
    ) -> Result<(), WireError> {
        self.seeded.write_body(body, parameters.rlwe())
    }

    fn read_body<R: Read>(
        descriptor: CkksSeededDescriptor,
        body: &mut BodyReader<R>,
        parameters: &CkksParameters,
    ) -> Result<Self, WireError> {
        let seeded = SeededRlweCiphertext::read_body(descriptor.rlwe, body, parameters.rlwe())?;
        let MessageDescriptor { scale, packing, estimate } = descriptor.message;
        Ok(Self { parameters: parameters.clone(), seeded, scale, packing, estimate })
    }
}

impl Wire for SeededCiphertext {}
