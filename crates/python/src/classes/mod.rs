//! What classes of Python have in common: methods of ciphertexts and evaluators, and attributes.

pub(crate) mod ciphertext;
pub(crate) mod evaluator;
pub(crate) mod getters;

/// A number with its noun in the singular: 1 key, 2 keys.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
