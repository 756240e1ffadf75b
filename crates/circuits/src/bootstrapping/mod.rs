//! Bootstrapping.

mod dft;

pub use dft::{Dft, Direction};
