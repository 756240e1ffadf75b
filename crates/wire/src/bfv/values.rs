use keywright_bfv::{BfvParameters, Packing};
use keywright_frame::{FieldReader, FieldWriter};

use crate::object::Descriptor;
use crate::{WireError, error::in_range};

/// The description of a ciphertext's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueDescriptor {
    /// Plaintext modulus.
    pub modulus: u64,
    /// The places of the values.
    pub packing: Packing,
}

impl ValueDescriptor {
    /// Refuses another plaintext modulus than that of the parameters, and slots if the modulus has none.
    pub(crate) fn require_fit(&self, parameters: &BfvParameters) -> Result<(), WireError> {
        let expected = parameters.plaintext_modulus();
        in_range("plaintext modulus", self.modulus, expected, expected)?;
        let coefficients = u64::from(self.packing == Packing::Coefficients);
        in_range("form of the packing", coefficients, u64::from(!parameters.has_slots()), 1)
    }
}

impl Descriptor for ValueDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        out.u64(self.modulus);
        out.u8(u8::from(self.packing == Packing::Coefficients));
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let modulus = fields.u64()?;
        let coefficients = fields.flag("form of the packing")?;
        let packing = if coefficients { Packing::Coefficients } else { Packing::Slots };
        Ok(Self { modulus, packing })
    }
}
