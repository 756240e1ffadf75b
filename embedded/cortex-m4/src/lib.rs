//! What both programs of this folder run on: a board without an allocator, its counter of instructions, its stack, a sensor's numbers.
#![no_std]

mod board;
pub mod meter;
pub mod paint;

pub use board::{Pattern, entropy};
