#![doc = include_str!("lib.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::disallowed_types)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod client;
mod compact;
mod compact_form;
mod decrypt;
mod derivation;
mod encrypt;
mod engine;
mod entropy;
mod error;
mod fixed_point;
mod groups;
mod key;
mod key_set_stream;
mod key_stream;
mod machine;
mod object;
mod parameters;
pub mod reduction;
#[cfg(feature = "std")]
mod ring_engine;
#[cfg(any(target_arch = "arm", test))]
mod signed;
mod word;

pub use client::{Client, Encryptor};
pub use compact::Compact;
pub use compact_form::{CompactForm, Dropped, SecondHalf, write_compact};
pub use decrypt::Answer;
pub use encrypt::{Form, encrypt, encrypt_symmetric};
pub use engine::{CHUNK, Engine};
pub use entropy::Entropy;
#[cfg(feature = "std")]
pub use entropy::SystemEntropy;
pub use error::{ClientError, SinkError};
pub use fixed_point::{Descale, FixedPoint, Layout, Numbers};
pub use groups::{Grouped, Groups};
pub use key::{
    Half, PublicKey, expand_secret, make_public_key, read_secret, sample_secret, secret_bytes,
    write_public_key, write_secret,
};
pub use key_set_stream::KeySetStream;
pub use key_stream::{KeyStream, Progress};
pub use keywright_frame::IdentityBytes;
pub use keywright_frame::packing::Residue;
pub use machine::Arithmetic;
pub use object::Sink;
pub use parameters::{ClientLiteral, ClientParameters};
#[cfg(feature = "std")]
pub use ring_engine::RingEngine;
pub use word::Word;
