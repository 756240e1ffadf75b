use keywright_ckks::{Ciphertext, CkksParameters, SeededCiphertext};
use keywright_frame::{CiphertextDescriptor, FieldReader, FieldWriter, SeededDescriptor};
use keywright_rlwe::{RlweCiphertext, SeededRlweCiphertext};

use super::MessageDescriptor;
use crate::WireError;
use crate::object::Descriptor;
use crate::scheme::ciphertext;

/// Shape and message of a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CkksDescriptor<R> {
    /// The fields of the RLWE ciphertext.
    pub rlwe: R,
    /// The description of its message.
    pub message: MessageDescriptor,
}

/// Shape and message of a ciphertext.
pub type CkksCiphertextDescriptor = CkksDescriptor<CiphertextDescriptor>;

/// Shape, seed and message of a seeded ciphertext.
pub type CkksSeededDescriptor = CkksDescriptor<SeededDescriptor>;

impl<R: Descriptor> Descriptor for CkksDescriptor<R> {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.rlwe.encode(out)?;
        self.message.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { rlwe: R::decode(fields)?, message: MessageDescriptor::decode(fields)? })
    }
}

// RLWE ciphertexts with their message's description.

ciphertext! {
    Ciphertext as CkksCiphertext of CkksParameters, with rlwe: RlweCiphertext;
    CkksCiphertextDescriptor { message } from |this|
        (MessageDescriptor { scale: this.scale, packing: this.packing, estimate: this.estimate },);
    scale = message.scale, packing = message.packing, estimate = message.estimate
}

ciphertext! {
    SeededCiphertext as CkksSeededCiphertext of CkksParameters, with seeded: SeededRlweCiphertext;
    CkksSeededDescriptor { message } from |this|
        (MessageDescriptor { scale: this.scale, packing: this.packing, estimate: this.estimate },);
    scale = message.scale, packing = message.packing, estimate = message.estimate
}
