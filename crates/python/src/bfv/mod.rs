//! BFV, the exact integers: parameters, ciphertexts, encryption and the evaluator.

pub(crate) mod ciphertext;
pub(crate) mod decryptor;
pub(crate) mod encryptor;
pub(crate) mod evaluator;
pub(crate) mod operand;
pub(crate) mod parameters;
pub(crate) mod seeded_ciphertext;
