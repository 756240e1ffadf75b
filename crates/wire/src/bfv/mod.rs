//! Objects of `keywright-bfv`: those of RLWE with what says how to read the values.

mod ciphertext;
mod parameters;
mod values;

pub use ciphertext::{BfvCiphertextDescriptor, BfvSeededDescriptor};
pub use values::ValueDescriptor;
