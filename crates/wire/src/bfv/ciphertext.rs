use std::io::{Read, Write};

use keywright_bfv::{BfvParameters, Ciphertext, NoiseEstimate, SeededCiphertext};
use keywright_frame::{CiphertextDescriptor, FieldReader, FieldWriter, SeededDescriptor};
use keywright_rlwe::{KeyIdentity, RlweCiphertext, SeededRlweCiphertext};

use super::ValueDescriptor;
use crate::body::{BodyReader, BodyWriter};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, Wire, WireError};

/// Shape, values and noise of a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BfvCiphertextDescriptor {
    /// The fields of the RLWE ciphertext.
    pub rlwe: CiphertextDescriptor,
    /// The description of its values.
    pub values: ValueDescriptor,
    /// The sender's claim about its noise. Decryption measures the noise.
    pub estimate: NoiseEstimate,
}

/// Refuses NaN and infinities.
fn require_finite(what: &'static str, value: f64) -> Result<(), WireError> {
    if value.is_finite() { Ok(()) } else { Err(WireError::Number { what, value }) }
}

impl Descriptor for BfvCiphertextDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.rlwe.encode(out)?;
        self.values.encode(out)?;
        let NoiseEstimate { log_deviation, log_peak, order } = self.estimate;
        for (what, value) in [
            ("log2 of the deviation of the noise", log_deviation),
            ("log2 of the peak of the noise", log_peak),
        ] {
            require_finite(what, value)?;
            out.u64(value.to_bits());
        }
        Ok(out.small("order of the noise", order as usize)?)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let (rlwe, values) = (CiphertextDescriptor::decode(fields)?, ValueDescriptor::decode(fields)?);
        let mut number = |what| {
            let value = f64::from_bits(fields.u64()?);
            require_finite(what, value).map(|()| value)
        };
        let log_deviation = number("log2 of the deviation of the noise")?;
        let log_peak = number("log2 of the peak of the noise")?;
        let order = fields.u8()?.into();
        Ok(Self { rlwe, values, estimate: NoiseEstimate { log_deviation, log_peak, order } })
    }
}

/// An RLWE ciphertext with the description of its values and noise.
impl Record for Ciphertext {
    type Context = BfvParameters;
    type Descriptor = BfvCiphertextDescriptor;
    const KIND: Kind = Kind::BfvCiphertext;

    fn identity(_: &BfvCiphertextDescriptor, parameters: &BfvParameters) -> Result<Identity, WireError> {
        Ok(Identity::of(parameters.rlwe().literal())?)
    }

    fn key(&self) -> KeyIdentity {
        self.rlwe.key
    }

    fn descriptor(&self, parameters: &BfvParameters) -> Result<BfvCiphertextDescriptor, WireError> {
        let own = self.parameters.rlwe();
        own.require_same(parameters.rlwe(), "the ciphertext", "the parameters it is written for")?;
        let modulus = self.parameters.plaintext_modulus();
        Ok(BfvCiphertextDescriptor {
            rlwe: self.rlwe.descriptor(parameters.rlwe())?,
            values: ValueDescriptor { modulus, packing: self.packing },
            estimate: self.estimate,
        })
    }

    fn body_len(descriptor: &BfvCiphertextDescriptor, parameters: &BfvParameters) -> Result<u64, WireError> {
        descriptor.values.require_fit(parameters)?;
        RlweCiphertext::body_len(&descriptor.rlwe, parameters.rlwe())
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &BfvParameters,
    ) -> Result<(), WireError> {
        self.rlwe.write_body(body, parameters.rlwe())
    }

    fn read_body<R: Read>(
        descriptor: BfvCiphertextDescriptor,
        body: &mut BodyReader<R>,
        parameters: &BfvParameters,
    ) -> Result<Self, WireError> {
        let rlwe = RlweCiphertext::read_body(descriptor.rlwe, body, parameters.rlwe())?;
        let BfvCiphertextDescriptor { values, estimate, .. } = descriptor;
        Ok(Self { parameters: parameters.clone(), rlwe, packing: values.packing, estimate })
    }
}

impl Wire for Ciphertext {}

/// Shape, seed and values of a seeded ciphertext. Its noise is that of a fresh encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfvSeededDescriptor {
    /// The fields of the seeded RLWE ciphertext.
    pub rlwe: SeededDescriptor,
    /// The description of its values.
    pub values: ValueDescriptor,
}

impl Descriptor for BfvSeededDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.rlwe.encode(out)?;
        self.values.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { rlwe: SeededDescriptor::decode(fields)?, values: ValueDescriptor::decode(fields)? })
    }
}

/// A seeded RLWE ciphertext with the description of its values.
impl Record for SeededCiphertext {
    type Context = BfvParameters;
    type Descriptor = BfvSeededDescriptor;
    const KIND: Kind = Kind::BfvSeededCiphertext;

    fn identity(_: &BfvSeededDescriptor, parameters: &BfvParameters) -> Result<Identity, WireError> {
        Ok(Identity::of(parameters.rlwe().literal())?)
    }

    fn key(&self) -> KeyIdentity {
        self.seeded.key
    }

    fn descriptor(&self, parameters: &BfvParameters) -> Result<BfvSeededDescriptor, WireError> {
        let own = self.parameters.rlwe();
        own.require_same(parameters.rlwe(), "the ciphertext", "the parameters it is written for")?;
        let modulus = self.parameters.plaintext_modulus();
        Ok(BfvSeededDescriptor {
            rlwe: self.seeded.descriptor(parameters.rlwe())?,
            values: ValueDescriptor { modulus, packing: self.packing },
        })
    }

    fn body_len(descriptor: &BfvSeededDescriptor, parameters: &BfvParameters) -> Result<u64, WireError> {
        descriptor.values.require_fit(parameters)?;
        SeededRlweCiphertext::body_len(&descriptor.rlwe, parameters.rlwe())
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &BfvParameters,
    ) -> Result<(), WireError> {
        self.seeded.write_body(body, parameters.rlwe())
    }

    fn read_body<R: Read>(
        descriptor: BfvSeededDescriptor,
        body: &mut BodyReader<R>,
        parameters: &BfvParameters,
    ) -> Result<Self, WireError> {
        let seeded = SeededRlweCiphertext::read_body(descriptor.rlwe, body, parameters.rlwe())?;
        Ok(Self { parameters: parameters.clone(), seeded, packing: descriptor.values.packing })
    }
}

impl Wire for SeededCiphertext {}
