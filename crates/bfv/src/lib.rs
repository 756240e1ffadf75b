//! BFV (Brakerski 2012; Fan and Vercauteren, ePrint 2012/144) in RNS: exact arithmetic modulo an integer `t`.
//!
//! [`BfvParameters`] hold everything precomputed; [`Ciphertext`]s carry a derived [`NoiseEstimate`]; an [`Evaluator`]
//! borrows the keys it may use. Every operation is exact or fails. An operation fails if the estimate says that its
//! result may not decrypt, and so does the decryption of a ciphertext with too much noise. `docs/explanation/bfv.md`
//! has the maths, with invariants and noise; ciphertexts multiply as in Kim, Polyakov and Zucca (ePrint 2021/204),
//! based on Halevi, Polyakov and Shoup (ePrint 2018/117).
#![forbid(unsafe_code)]

mod arithmetic;
mod ciphertext;
mod decryption;
mod encryption;
mod error;
mod evaluator;
mod noise;
mod parameters;
mod plaintext;
mod presets;

pub use arithmetic::batching::Packing;
pub use ciphertext::{Ciphertext, SeededCiphertext};
pub use decryption::Decryptor;
pub use encryption::Encryptor;
pub use error::BfvError;
pub use evaluator::Evaluator;
pub use keywright_rlwe::noise::PRODUCT_TAIL;
pub use noise::{NoiseEstimate, SPARE_BITS};
pub use parameters::{BfvLiteral, BfvParameters, MAX_PLAINTEXT_BITS};
pub use plaintext::Plaintext;
pub use presets::{PRESETS, Preset, preset};
