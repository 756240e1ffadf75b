//! What headers say of objects: parameters, shapes and keys.

pub(crate) mod ciphertext;
pub(crate) mod identity;
pub(crate) mod key;
pub(crate) mod message;
pub(crate) mod parameters;
