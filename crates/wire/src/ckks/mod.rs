//! Objects of `keywright-ckks`: those of RLWE with a description of their message.

mod ciphertext;
mod message;
mod parameters;
mod plaintext;

pub use ciphertext::{CkksCiphertextDescriptor, CkksDescriptor, CkksSeededDescriptor};
pub use message::MessageDescriptor;
pub use plaintext::PlaintextDescriptor;
