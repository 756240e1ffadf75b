use keywright_ckks::CkksLiteral;
use keywright_frame::{FieldReader, FieldWriter};
use keywright_rlwe::ParametersLiteral;

use crate::WireError;
use crate::object::Descriptor;
use crate::scheme::literal;

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

// The identity is that of the RLWE parameters, since keys serve every scale.
literal!(CkksLiteral as CkksParameters, identified by |literal| &literal.rlwe);
