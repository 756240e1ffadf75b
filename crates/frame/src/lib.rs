//! The parts of the byte format of `docs/reference/format.md` that more than one crate writes or reads.
//!
//! `keywright-wire` streams every object of the library through readers and writers of `std`. `keywright-client` writes
//! a few of them to a sink, piece by piece, and reads them from slices, also on a microcontroller. Both share this
//! crate: magic, version, codes of kinds, layout of the header ([`FixedHeader`]), fields of a descriptor
//! ([`FieldWriter`], [`FieldReader`], [`Fields`]), [`Checksum`], [`Identity`] and [`packing`].
//!
//! ```
//! use keywright_frame::{Checksum, FieldWriter, FixedHeader, Kind, object_len};
//! use keywright_rlwe::KeyIdentity;
//!
//! // A header whose descriptor is an identity, its checksum, and the checksum that the body continues.
//! let header = FixedHeader::new(Kind::SecretKey, [0; 20], 0, 1024);
//! let mut head: FieldWriter = FieldWriter::default();
//! let key = KeyIdentity([7; 16]);
//! let checksum: Checksum = header.write(&mut head, &key, &[]);
//! assert_eq!(head.as_slice().len(), 44 + 16 + 4);
//! assert_eq!(object_len(16, 1024), Some(64 + 1024 + 4));
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::disallowed_types)]

extern crate alloc;

mod checksum;
mod descriptors;
mod error;
mod fields;
mod header;
mod kind;
pub mod packing;

pub use checksum::{CHECKSUM_BYTES, Checksum, Mismatch};
pub use descriptors::ciphertext::{CiphertextDescriptor, SeededDescriptor};
pub use descriptors::identity::{Fingerprint, IDENTITY_BYTES, Identity, IdentityBytes};
pub use descriptors::key::KeyDescriptor;
pub use descriptors::message::MessageFields;
pub use error::FrameError;
pub use fields::{FieldReader, FieldSink, FieldWriter, Fields, FixedBuffer};
pub use header::{
    FIXED_BYTES, FORMAT_VERSION, FRAME_BYTES, FixedHeader, MAX_DESCRIPTOR_BYTES, MAX_EXTRA_PRIMES,
    MAX_KEY_ENTRY_BYTES, MAX_KEYS, key_identity_len, object_len,
};
pub use kind::{Kind, MAGIC};
