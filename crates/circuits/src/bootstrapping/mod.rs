//! Bootstrapping of CKKS ciphertexts in four stages.

pub mod eval_mod;
mod least_squares;
pub mod mod_raise;
pub mod range;
pub mod sine;
