//! RLWE layer of Keywright: parameters and their security, keys, gadget decomposition and key switching.
//!
//! Nothing here depends on a scheme: schemes use it through RLWE ciphertexts. [`switch::plan`] has the maths of key
//! switching. A [`KeySpec`] describes a key. [`EvaluationKeys::best`] finds the key of a switch, and
//! [`EvaluationKeys::serve`] those of automorphisms made in several hops. Keys are in memory, or a [`KeySource`]
//! supplies them at use: a [`residency::KeyStore`] does so within a given number of bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod arithmetic;
pub mod derive;
mod encryption;
mod error;
mod identity;
mod keys;
pub mod noise;
mod parallel;
mod parameters;
mod planning;
#[cfg(feature = "std")]
pub mod residency;
pub mod switch;
pub mod ternary;

pub use encryption::{
    AddMessage, ENCRYPTION_STREAM, RlweCiphertext, SeededRlweCiphertext, decrypt, encrypt_zero,
    encrypt_zero_symmetric,
};
pub use error::RlweError;
pub use identity::KeyIdentity;
pub use keys::{
    EvaluationKeys, Hop, KeyGenerator, KeyLayout, KeyRoutes, KeyRow, KeySequence, KeySource, KeyUse,
    LoadedKey, PUBLIC_KEY_STREAM, PublicKey, Route, SecretKey, ServedHop, StoredKey, SwitchingKey,
    SwitchingKeys, UniformPart, stream_id,
};
pub use parallel::{MAX_THREADS, for_each_item, join, prefix, threads};
pub use parameters::Parameters;
pub use parameters::distribution::SecretDistribution;
pub use parameters::key_spec::{KeyElement, KeySpec};
pub use parameters::literal::{MAX_SUBRINGS, ParametersLiteral, Security, SubringLiteral};
pub use parameters::security::{maximum_log_qp, require_secure};
pub use parameters::widths::PrimeWidths;
pub use planning::division::ModDown;
pub use planning::layout::SwitchLayout;
pub use planning::plan::SwitchPlan;
pub use planning::work::{SwitchWork, Work};
pub use switch::{Decomposed, Finish, ModUpDigits, raise_modulus, ring_down, ring_up};
