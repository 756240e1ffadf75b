//! Encryption moved into idle time.
//!
//! Almost all work of an RLWE encryption does not depend on the message: it makes an encryption of zero. An
//! [`EncryptionPool`] makes those ahead, in background threads, and gives each of them out once; what is left when the
//! message is known is one addition. A pool knows no scheme: messages are added by [`ckks`] and [`bfv`].
//!
//! The pool is as secure as the encryption that it makes ahead, because its outputs are the outputs of that encryption;
//! `docs/explanation/cached-encryption.md` has the proof. An entry is the one-time mask of its message: who reads
//! entries in memory or in an opened [`PoolFile`] reads the messages that are encrypted with them.
//!
//! The feature `insecure`, off by default, adds the module of that name: a published alternative that reuses its
//! encryptions of zero, and the attack that breaks it.
#![forbid(unsafe_code)]

pub mod bfv;
pub mod ckks;
mod error;
pub mod file;
#[cfg(feature = "insecure")]
pub mod insecure;
mod metrics;
mod options;
mod pool;
mod producer;
mod shared;
mod zero;

pub use error::{FileProblem, PoolError};
pub use file::{PoolFile, PoolFileOptions};
pub use metrics::Metrics;
pub use options::{PoolOptions, WhenEmpty};
pub use pool::EncryptionPool;
pub use zero::{Zero, ZeroKey};
