//! Derivations of keys from master keys.

pub(crate) mod derivation;
pub(crate) mod tree;
