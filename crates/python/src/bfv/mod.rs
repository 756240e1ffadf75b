//! BFV, exact integers: parameters, ciphertexts, encryption and the evaluator.

pub(crate) mod ciphertext;
pub(crate) mod decryptor;
pub(crate) mod encryptor;
pub(crate) mod evaluator;
pub(crate) mod plaintext;
pub(crate) mod seeded_ciphertext;
