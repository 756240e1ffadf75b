//! The environment of this folder's programs: a board without an allocator, its counter of instructions, its stack,
//! memory for polynomials, a sensor's numbers.
#![no_std]

mod board;
mod client;
pub mod full_modulus;
mod line;
pub mod meter;
mod numbers;
pub mod paint;

pub use client::{FRACTION_BITS, MAX_N, Memory, Polynomial, parameters};
use cortex_m::singleton;
pub use line::Line;
pub use numbers::{Pattern, entropy};
