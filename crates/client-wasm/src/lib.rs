//! The thin client in a browser: an adapter of `keywright-client`, without logic.
//!
//! The page passes in randomness of `crypto.getRandomValues`; without it nothing starts. Errors are JavaScript `Error`s
//! with a `code`.
#![forbid(unsafe_code)]

mod client;
mod encryptor;
mod errors;
mod key_stream;
mod parameters;

pub use client::Client;
pub use encryptor::Encryptor;
pub use key_stream::KeyStream;
pub use parameters::ClientParameters;
