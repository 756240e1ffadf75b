//! Thin clients.

pub(crate) mod client;
pub(crate) mod encryptor;
mod entropy;
pub(crate) mod key_stream;
pub(crate) mod parameters;
