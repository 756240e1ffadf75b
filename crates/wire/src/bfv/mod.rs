//! Objects of `keywright-bfv`: those of RLWE with a description of their values.

mod ciphertext;
mod parameters;
mod values;

pub use ciphertext::{BfvCiphertextDescriptor, BfvSeededDescriptor};
pub use values::ValueDescriptor;
