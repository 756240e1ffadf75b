//! RNS-CKKS (Cheon, Kim, Kim and Song 2017; Cheon et al. 2018) on the Keywright ring.
//!
//! [`CkksParameters`] hold everything precomputed; [`Ciphertext`]s carry their scale, packing and a derived
//! [`ErrorEstimate`]; an [`Evaluator`] borrows the keys it may use. Operations that would silently lose precision, such
//! as adding different scales, are errors.

mod ciphertext;
mod circuit;
pub mod encoder;
mod encryption;
mod error;
mod evaluator;
mod flooding;
mod magnitude;
mod parameters;
mod plaintext;

pub use ciphertext::{Ciphertext, ErrorEstimate, Packing};
pub use circuit::Circuit;
pub use encryption::{Decryptor, Encryptor, SeededCiphertext};
pub use error::CkksError;
pub use evaluator::{Evaluator, SCALE_TOLERANCE};
pub use flooding::{Flooding, MAX_FLOODING_BITS, MAX_FLOODING_QUERIES};
pub use keywright_rlwe::noise::PRODUCT_TAIL;
pub use magnitude::Magnitude;
pub use num_complex::Complex64;
pub use parameters::{CkksLiteral, CkksParameters, PRESETS, Preset, preset};
pub use plaintext::Plaintext;
