use keywright_bfv::{BfvParameters, Ciphertext, NoiseEstimate, SeededCiphertext};
use keywright_frame::{CiphertextDescriptor, FieldReader, FieldWriter, SeededDescriptor};
use keywright_rlwe::{RlweCiphertext, SeededRlweCiphertext};

use super::ValueDescriptor;
use crate::WireError;
use crate::object::Descriptor;
use crate::scheme::ciphertext;

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

// RLWE ciphertexts with the description of their values and noise.

ciphertext! {
    Ciphertext as BfvCiphertext of BfvParameters, with rlwe: RlweCiphertext;
    BfvCiphertextDescriptor { values, estimate } from |this|
        (ValueDescriptor { modulus: this.parameters.plaintext_modulus(), packing: this.packing }, this.estimate);
    packing = values.packing, estimate = estimate
}

ciphertext! {
    SeededCiphertext as BfvSeededCiphertext of BfvParameters, with seeded: SeededRlweCiphertext;
    BfvSeededDescriptor { values } from |this|
        (ValueDescriptor { modulus: this.parameters.plaintext_modulus(), packing: this.packing },);
    packing = values.packing
}
