//! Circuits of CKKS operations: [`linear_transform`]s by diagonals, [`polynomial`] evaluation and [`bootstrapping`].
//!
//! Each has a plan, plain data that needs no keys, so that a planner can count levels, rotations and relinearizations
//! before anything runs. The evaluation does exactly what the plan lists.
#![forbid(unsafe_code)]

pub mod approximate;
mod arithmetic;
pub mod bootstrapping;
mod error;
pub mod linear_transform;
pub mod polynomial;

pub use arithmetic::Arithmetic;
pub use error::CircuitError;
