#![doc = include_str!("lib.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::disallowed_types)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod client;
mod engine;
mod entropy;
mod error;
mod keys;
mod messages;
mod numbers;
mod object;
mod parameters;

pub use client::{Client, Encryptor};
#[cfg(feature = "std")]
pub use engine::RingEngine;
pub use engine::{CHUNK, Engine, EngineChoice, SmallEngine, Word, reduction};
pub use entropy::Entropy;
#[cfg(feature = "std")]
pub use entropy::SystemEntropy;
pub use error::{ClientError, SinkError};
pub use keys::{
    Half, KeySetStream, KeyStream, Progress, PublicKey, expand_secret, make_public_key, read_secret,
    sample_secret, secret_bytes, write_public_key, write_secret,
};
pub use keywright_frame::IdentityBytes;
pub use keywright_frame::packing::Residue;
pub use keywright_rlwe::KeyIdentity;
pub use messages::{
    Answer, CompactForm, Dropped, Form, Grouped, Groups, SecondHalf, encrypt, encrypt_symmetric,
    write_compact,
};
pub use numbers::{Descale, FixedPoint, Layout, Numbers};
pub use object::Sink;
pub use parameters::{ClientLiteral, ClientParameters};
