use std::io::{Read, Write};

use keywright_ckks::{CkksParameters, ErrorEstimate, Plaintext};
use keywright_frame::{FieldReader, FieldWriter};

use super::MessageDescriptor;
use crate::object::{Descriptor, Record};
use crate::rlwe::{moduli, poly_len, require_shape};
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError, error::in_range};

/// Shape and message of a plaintext. Its deviation is 0: its error is the rounding that its scale implies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaintextDescriptor {
    /// Number of limbs less one.
    pub level: usize,
    /// The description of its message.
    pub message: MessageDescriptor,
}

impl Descriptor for PlaintextDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        out.small("level of a plaintext", self.level)?;
        self.message.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let (level, message) = (fields.small()?, MessageDescriptor::decode(fields)?);
        if message.estimate.deviation != 0.0 {
            let value = message.estimate.deviation;
            return Err(WireError::Number { what: "deviation of a plaintext, which is 0,", value });
        }
        Ok(Self { level, message })
    }
}

/// The polynomial over `q_0 .. q_level`.
impl Record for Plaintext {
    type Context = CkksParameters;
    type Descriptor = PlaintextDescriptor;
    const KIND: Kind = Kind::CkksPlaintext;

    fn descriptor(&self, parameters: &CkksParameters) -> Result<PlaintextDescriptor, WireError> {
        self.parameters.require_same(parameters, "the plaintext", "the parameters it is written for")?;
        let limbs = self.poly.limb_count();
        in_range("number of limbs of a plaintext", limbs as u64, 1, parameters.max_level() as u64 + 1)?;
        require_shape(parameters.rlwe(), self.poly.n(), limbs, limbs)?;
        let estimate = ErrorEstimate { deviation: 0.0, magnitude: self.magnitude, real: self.real };
        let message = MessageDescriptor { scale: self.scale, packing: self.packing, estimate };
        Ok(PlaintextDescriptor { level: limbs - 1, message })
    }

    fn body_len(descriptor: &PlaintextDescriptor, parameters: &CkksParameters) -> Result<u64, WireError> {
        descriptor.message.require_fit(parameters)?;
        parameters.rlwe().require_level(descriptor.level)?;
        Ok(poly_len(parameters.rlwe(), 0..=descriptor.level))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &CkksParameters,
    ) -> Result<(), WireError> {
        body.poly(&self.poly, moduli(parameters.rlwe(), self.poly.limb_count()))
    }

    fn read_body<R: Read>(
        descriptor: PlaintextDescriptor,
        body: &mut BodyReader<R>,
        parameters: &CkksParameters,
    ) -> Result<Self, WireError> {
        let poly = body.poly(parameters.rlwe().n(), moduli(parameters.rlwe(), descriptor.level + 1))?;
        let MessageDescriptor { scale, packing, estimate } = descriptor.message;
        Ok(Self {
            parameters: parameters.clone(),
            poly,
            scale,
            packing,
            magnitude: estimate.magnitude,
            real: estimate.real,
        })
    }
}

impl Wire for Plaintext {}
