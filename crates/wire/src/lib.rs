//! Versioned byte formats of everything of Keywright that leaves a process.
//!
//! Every object is a header that says what it is and which parameters it belongs to, a body of bit-packed residues, and
//! a checksum; `docs/format.md` describes the bytes. Objects are written and read through [`Wire`], secrets through
//! [`WireSecret`], sets of switching keys also key by key: [`KeySetWriter`], [`KeySetReader`], [`KeySetFile`].
//!
//! Reading trusts nothing: lengths are compared with what the parameters imply before anything is allocated, every
//! residue is checked to be canonical, every key is checked for security, and an object comes back only if its checksum
//! matches. The checksum finds damage, not forgery: authenticate the channel if that is needed.
#![forbid(unsafe_code)]

mod body;
mod ckks;
mod error;
mod fields;
mod file;
mod fingerprint;
mod header;
mod inspect;
mod key_set;
mod kind;
mod object;
mod packing;
mod rlwe;

pub use ckks::{CkksCiphertextDescriptor, CkksSeededDescriptor, MessageDescriptor, PlaintextDescriptor};
pub use error::WireError;
pub use file::AtomicFile;
pub use fingerprint::{Fingerprint, Identity};
pub use header::{FORMAT_VERSION, MAGIC, MAX_DESCRIPTOR_BYTES, MAX_KEY_ENTRY_BYTES, MAX_KEYS};
pub use inspect::{Content, Info, inspect};
pub use key_set::{KeyEntry, KeySetFile, KeySetReader, KeySetWriter};
pub use kind::Kind;
pub use object::{Wire, WireSecret};
pub use rlwe::ciphertext::{CiphertextDescriptor, MAX_POLYNOMIALS, SeededDescriptor};
pub use rlwe::polynomial::PolynomialDescriptor;
pub use rlwe::switching_key::KeyDescriptor;
