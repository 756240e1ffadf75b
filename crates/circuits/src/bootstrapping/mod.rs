//! Bootstrapping of CKKS ciphertexts in four stages.

pub mod eval_mod;
pub mod mod_raise;
pub mod range;
pub mod sine;
