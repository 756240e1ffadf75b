use std::io::{Read, Write};

use keywright_bfv::BfvLiteral;
use keywright_frame::{FieldReader, FieldWriter};

use keywright_rlwe::ParametersLiteral;

use crate::body::{BodyReader, BodyWriter};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, Wire, WireError};

impl Descriptor for BfvLiteral {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        Descriptor::encode(&self.rlwe, out)?;
        out.u64(self.plaintext_modulus);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { rlwe: ParametersLiteral::decode(fields)?, plaintext_modulus: fields.u64()? })
    }
}

/// The identity is that of the RLWE parameters, since keys serve every plaintext modulus. Reading does not check the
/// literal; `BfvParameters::new` does.
impl Record for BfvLiteral {
    type Context = ();
    type Descriptor = Self;
    const KIND: Kind = Kind::BfvParameters;

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

impl Wire for BfvLiteral {}
