//! The environment of this folder's programs: a board without an allocator, its counter of instructions, its stack,
//! memory for polynomials, a sensor's numbers.
#![no_std]

mod board;
mod client;
pub mod meter;
pub mod paint;

pub use board::{Pattern, entropy};
pub use client::{FRACTION_BITS, MAX_N, Memory, Polynomial, parameters};
