//! Objects of `keywright-search`.

use std::io::{Read, Write};

use keywright_bfv::{BfvParameters, Packing};
use keywright_frame::packing::NARROWEST;
use keywright_frame::{FieldReader, FieldWriter};
use keywright_rlwe::KeyIdentity;
use keywright_search::{Answer, AnswerShape, MAX_ROWS};

use crate::bfv::ValueDescriptor;
use crate::object::{Descriptor, Record};
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError, error::in_range};

/// The shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerDescriptor {
    /// Plaintext modulus.
    pub modulus: u64,
    /// Number of scores, widths of coefficients.
    pub shape: AnswerShape,
}

impl Descriptor for AnswerDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        out.u64(self.modulus);
        out.u32(self.shape.rows as u32);
        out.small("width of the first half", self.shape.width_0 as usize)?;
        Ok(out.small("width of the second half", self.shape.width_1 as usize)?)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let modulus = fields.u64()?;
        let rows = fields.u32()? as usize;
        let (width_0, width_1) = (fields.u8()?.into(), fields.u8()?.into());
        Ok(Self { modulus, shape: AnswerShape { rows, width_0, width_1 } })
    }
}

/// The packed halves of every block, which this crate passes on.
impl Record for Answer {
    type Context = BfvParameters;
    type Descriptor = AnswerDescriptor;
    const KIND: Kind = Kind::SearchAnswer;

    fn key(&self) -> KeyIdentity {
        self.key
    }

    fn descriptor(&self, parameters: &BfvParameters) -> Result<AnswerDescriptor, WireError> {
        Ok(AnswerDescriptor { modulus: parameters.plaintext_modulus(), shape: self.shape })
    }

    fn body_len(descriptor: &AnswerDescriptor, parameters: &BfvParameters) -> Result<u64, WireError> {
        let AnswerDescriptor { modulus, shape } = *descriptor;
        ValueDescriptor { modulus, packing: Packing::Coefficients }.require_fit(parameters)?;
        in_range("number of scores", shape.rows as u64, 1, MAX_ROWS as u64)?;
        let widest = AnswerShape::widest(parameters);
        in_range("width of the second half", shape.width_1.into(), NARROWEST.into(), widest.into())?;
        in_range("width of the first half", shape.width_0.into(), NARROWEST.into(), shape.width_1.into())?;
        Ok(shape.body_len(parameters.rlwe().n()) as u64)
    }

    fn write_body<W: Write>(&self, body: &mut BodyWriter<W>, _: &BfvParameters) -> Result<(), WireError> {
        Ok(body.write_all(&self.body)?)
    }

    /// Memory grows as bytes arrive: a header alone costs nothing.
    fn read_body<R: Read>(
        descriptor: AnswerDescriptor,
        body: &mut BodyReader<R>,
        parameters: &BfvParameters,
    ) -> Result<Self, WireError> {
        let needed = Self::body_len(&descriptor, parameters)?;
        let key = body.key();
        let mut packed = Vec::new();
        body.take(needed).read_to_end(&mut packed)?;
        let missing = needed - packed.len() as u64;
        if missing > 0 {
            return Err(WireError::Truncated { what: "the body", needed, missing });
        }
        Ok(Self { shape: descriptor.shape, key, body: packed })
    }
}

impl Wire for Answer {}
