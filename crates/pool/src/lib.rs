//! Encryption moved into idle time.
//!
//! Almost all work of an RLWE encryption is independent of the message: it makes an encryption of zero. An
//! [`EncryptionPool`] makes these ahead of time, in background threads, and returns each of them once. Encrypting a
//! message is then one addition. A pool is independent of the scheme; [`ckks`] and [`bfv`] add messages.
//!
//! The pool is as secure as ordinary encryption, because its outputs are the outputs of that encryption;
//! `docs/explanation/cached-encryption.md` has the proof. An entry is the one-time mask of its message: a reader of
//! entries in memory or in an opened [`PoolFile`] can read the messages that are encrypted with them.
//!
//! The feature `insecure`, off by default, adds the module of that name: a published alternative that reuses its
//! encryptions of zero, and the attack that breaks it.
#![forbid(unsafe_code)]

mod error;
pub mod file;
#[cfg(feature = "insecure")]
pub mod insecure;
mod metrics;
mod options;
mod pool;
mod producer;
mod schemes;
mod shared;
mod zero;

pub use error::{FileProblem, PoolError};
pub use file::{PoolFile, PoolFileOptions};
pub use metrics::Metrics;
pub use options::{PoolOptions, WhenEmpty};
pub use pool::EncryptionPool;
pub use schemes::{bfv, ckks};
pub use zero::{Zero, ZeroKey};
