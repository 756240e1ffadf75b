//! RLWE layer of Keywright: parameters and their security, keys, gadget decomposition and key switching.
//!
//! Nothing here knows a scheme: schemes use it through RLWE ciphertexts. The maths of key switching is written in
//! [`plan`]; keys are described by [`KeySpec`] and found by [`EvaluationKeys::best`] or, for automorphisms made of several, by
//! [`EvaluationKeys::serve`]. They are in memory, or a [`KeySource`] brings them when they are used:
//! a [`residency::KeyStore`] within a given number of bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod arithmetic;
pub mod derive;
mod division;
mod encryption;
mod error;
mod key_generator;
mod key_sequence;
mod key_set;
mod key_spec;
pub mod noise;
mod parallel;
mod parameters;
pub mod plan;
mod public_key;
mod raise;
#[cfg(feature = "std")]
pub mod residency;
mod route;
mod secret;
mod security;
mod stored_key;
mod switch;
mod switching_key;

pub use division::Division;
pub use encryption::{
    AddMessage, ENCRYPTION_STREAM, RlweCiphertext, SeededCiphertext, decrypt, encrypt_zero,
    encrypt_zero_symmetric,
};
pub use error::RlweError;
pub use key_generator::KeyGenerator;
pub use key_sequence::{KeySequence, SwitchingKeys};
pub use key_set::{EvaluationKeys, KeyUse, ServedHop};
pub use key_spec::{KeyElement, KeySpec, digit_ranges};
pub use parallel::{for_each_index, for_each_item, join, threads};
pub use parameters::{Parameters, ParametersLiteral, Security};
pub use plan::SwitchPlan;
pub use public_key::{PUBLIC_KEY_STREAM, PublicKey};
pub use raise::raise_modulus;
pub use route::{Hop, KeyRoutes, Route};
pub use secret::{SecretDistribution, SecretKey};
pub use security::{maximum_log_qp, require_secure};
pub use stored_key::{KeyLayout, KeySource, LoadedKey, StoredKey};
pub use switch::{Decomposed, Finish, RaisedDigits};
pub use switching_key::{SwitchingKey, UniformPart, stream_id};
