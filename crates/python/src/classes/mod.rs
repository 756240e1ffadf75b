//! What classes of Python have in common: methods of ciphertexts and evaluators, and attributes.

pub(crate) mod ciphertext;
pub(crate) mod evaluator;
pub(crate) mod getters;
