use keywright_bfv::BfvLiteral;
use keywright_frame::{FieldReader, FieldWriter};
use keywright_rlwe::ParametersLiteral;

use crate::WireError;
use crate::object::Descriptor;
use crate::scheme::literal;

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

// The identity is that of the RLWE parameters, since keys serve every plaintext modulus.
literal!(BfvLiteral as BfvParameters, identified by |literal| &literal.rlwe);
