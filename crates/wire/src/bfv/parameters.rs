use std::io::{Read, Write};

use keywright_bfv::BfvLiteral;

use crate::body::{BodyReader, BodyWriter};
use crate::fields::{FieldReader, FieldWriter};
use crate::fingerprint::{decode_literal, encode_literal};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, Wire, WireError};

impl Descriptor for BfvLiteral {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        encode_literal(&self.rlwe, out)?;
        out.u64(self.plaintext_modulus);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { rlwe: decode_literal(fields)?, plaintext_modulus: fields.u64()? })
    }
}

/// The identity is that of the RLWE parameters: keys serve every plaintext modulus. It comes back as unchecked as it was:
/// `BfvParameters::new` is what checks it.
impl Record for BfvLiteral {
    type Context = ();
    type Descriptor = Self;
    const KIND: Kind = Kind::BfvParameters;

    fn identity(descriptor: &Self, (): &()) -> Result<Identity, WireError> {
        Identity::of(&descriptor.rlwe)
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
