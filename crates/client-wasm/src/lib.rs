//! The thin client in a browser: an adapter of `keywright-client` for encryption and decryption, and of the engine's key generator for the
//! keys that a server asks for. No logic.
//!
//! Randomness is passed in by the page's `crypto.getRandomValues`; without it nothing starts. Errors are JavaScript `Error`s with a `code`.
#![forbid(unsafe_code)]

mod client;
mod errors;
mod key_stream;
mod parameters;

pub use client::Client;
pub use key_stream::KeyStream;
