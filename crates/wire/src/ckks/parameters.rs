use std::io::{Read, Write};

use keywright_ckks::CkksLiteral;
use keywright_frame::{FieldReader, FieldWriter};

use keywright_rlwe::ParametersLiteral;

use crate::body::{BodyReader, BodyWriter};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, Wire, WireError};

impl Descriptor for CkksLiteral {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        if !self.log_scale.is_finite() {
            return Err(WireError::Number { what: "log2 of the scale", value: self.log_scale });
        }
        Descriptor::encode(&self.rlwe, out)?;
        out.u64(self.log_scale.to_bits());
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let rlwe = ParametersLiteral::decode(fields)?;
        let log_scale = f64::from_bits(fields.u64()?);
        if !log_scale.is_finite() {
            return Err(WireError::Number { what: "log2 of the scale", value: log_scale });
        }
        Ok(Self { rlwe, log_scale })
    }
}

/// The identity is that of the RLWE parameters, since keys serve every scale. Reading does not check the literal;
/// `CkksParameters::new` does.
impl Record for CkksLiteral {
    type Context = ();
    type Descriptor = Self;
    const KIND: Kind = Kind::CkksParameters;

    fn identity(descriptor: &Self, (): &()) -> Result<Identity, WireError> {
        Ok(Identity::of(&descriptor.rlwe)?)
    }

    fn descriptor(&self, (): &()) -> Result<Self, WireError> {
        Ok(self.clone())
    }

    fn body_len(_: &Self, (): &()) -> Result<u64, WireError> {
        Ok(0)
    }

    fn write_body<W: Write>(&self, _: &mut BodyWriter<W>, (): &()) -> Result<(), WireError> {
        Ok(())
    }

    fn read_body<R: Read>(descriptor: Self, _: &mut BodyReader<R>, (): &()) -> Result<Self, WireError> {
        Ok(descriptor)
    }
}

impl Wire for CkksLiteral {}
