//! **Not secure.** Chem (Zhao, *Chem: Efficient Secure Aggregation with Cached Homomorphic Encryption*), faithful to
//! its Protocol 1, and the [`attack`] that breaks it.
//!
//! Chem caches encryptions of `r^i` and `n` encryptions of zero, and makes every ciphertext as a sum of cached ones.
//! All its ciphertexts therefore lie in one small space of vectors, which an observer of enough of them can compute.
//! Use [`crate::EncryptionPool`].

pub mod attack;
mod bfv;
mod chem;
mod ckks;

pub use bfv::ChemBfv;
pub use chem::{ChemEncryptor, ChemScheme, InsecureAcknowledged};
pub use ckks::ChemCkks;
