//! Circuits on ciphertexts against the same computation in `f64`, with the error within the derived estimate.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bootstrapper;
mod bootstrapping;
mod diagonal_storage;
mod eval_mod;
mod fixture;
mod input_ring;
mod iterations;
mod key_design;
mod linear_transform;
mod mod_raise;
mod mod_raise_first;
mod polynomial;
mod prediction;
mod raised;
mod routes;
