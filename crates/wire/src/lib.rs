//! Versioned byte formats of everything of Keywright that leaves a process.
//!
//! Every object is a header that says what it is and which parameters it belongs to, a body of bit-packed residues, and
//! a checksum; `docs/reference/format.md` describes the bytes. Objects are written and read through [`Wire`], secrets
//! through [`WireSecret`], sets of switching keys also key by key: [`KeySetWriter`], [`KeySetReader`], [`KeySetFile`].
//!
//! Reading trusts nothing: lengths are compared with what the parameters imply before anything is allocated, every
//! residue is checked to be canonical, every key is checked for security, and an object comes back only if its checksum
//! matches. The checksum finds damage, not forgery: authenticate the channel if that is needed.
//!
//! ```
//! use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, SecretKey};
//! use keywright_ring::sampling::SecretRng;
//! use keywright_wire::{KeySetReader, KeySetWriter, Wire};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The client writes its parameters, and every key as soon as it is made.
//! let parameters = Parameters::new(ParametersLiteral::from_bits(12, &[36, 30], &[36])?)?;
//! # let rng = &mut SecretRng::from_entropy(&zeroize::Zeroizing::new([7; 32]));
//! let secret = SecretKey::sample(&parameters, rng)?;
//! let specs = [5, 25].map(|g| KeySpec::new(&parameters, KeyElement::Galois(g), 1, 1, true));
//! let mut generator = KeyGenerator::new(&secret, rng.split()?);
//! let mut writer = KeySetWriter::new(Vec::new(), &specs, &parameters)?;
//! for spec in &specs {
//!     writer.write(&generator.switching_key(spec)?)?;
//! }
//! let (parameter_bytes, key_bytes) = (parameters.literal().to_bytes(&())?, writer.finish()?);
//!
//! // The server reads them, one key in memory at a time.
//! let parameters = Parameters::new(ParametersLiteral::from_bytes(&parameter_bytes, &())?)?;
//! for key in KeySetReader::new(&key_bytes[..], &parameters)? {
//!     println!("{:?}", key?.spec());
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod aggregation;
mod bfv;
mod ckks;
mod error;
mod inspect;
mod key_set;
mod master_keys;
mod object;
mod rlwe;
mod scheme;
mod search;
mod sequence;
mod stream;

pub use aggregation::{SumDescriptor, UpdateDescriptor};
pub use bfv::{BfvCiphertextDescriptor, BfvSeededDescriptor, ValueDescriptor};
pub use ckks::{
    CkksCiphertextDescriptor, CkksDescriptor, CkksSeededDescriptor, MessageDescriptor, PlaintextDescriptor,
};
pub use error::WireError;
pub use inspect::{Content, HEAD_BYTES, Info, contains_secret, inspect, ring_of};
pub use key_set::{
    Arrival, KeyEntry, KeySetFile, KeySetLoader, KeySetReader, KeySetWriter, KeySharing, SharedKeyLoader,
    shared_keys,
};
pub use keywright_frame::{
    CiphertextDescriptor, FORMAT_VERSION, Fingerprint, FrameError, Identity, KeyDescriptor, Kind, MAGIC,
    MAX_DESCRIPTOR_BYTES, MAX_EXTRA_PRIMES, MAX_KEY_ENTRY_BYTES, MAX_KEYS, SeededDescriptor,
};
pub use object::{Wire, WireSecret};
pub use rlwe::ciphertext::MAX_POLYNOMIALS;
pub use rlwe::polynomial::PolynomialDescriptor;
pub use search::AnswerDescriptor;
pub use sequence::{sequence_from_bytes, sequence_to_bytes};
pub use stream::file::{AtomicFile, open_file};
pub use stream::temporary::{TemporaryFile, end_of, sweep};
