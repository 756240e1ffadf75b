//! Clients in a browser, without logic: an adapter of `keywright-client`, and of `keywright-ckks` for models whose
//! clients encrypt slots.
//!
//! The page passes in randomness of `crypto.getRandomValues`; without it nothing starts. Errors are JavaScript `Error`s
//! with a `code`.
#![forbid(unsafe_code)]

mod client;
mod encryptor;
mod errors;
mod key_stream;
mod parameters;
mod slots_client;

pub use client::Client;
pub use encryptor::Encryptor;
pub use key_stream::KeyStream;
pub use parameters::{ClientParameters, SlotsParameters};
pub use slots_client::SlotsClient;
