//! What randomness is computed from: the block function, the expander of public seeds, and the distributions of secrets
//! and errors as functions of uniform words.

pub(crate) mod chacha;
pub mod expander;
pub(crate) mod gaussian;
#[cfg(any(target_arch = "arm", test))]
mod sliced;
pub(crate) mod ternary;

#[cfg(not(target_arch = "arm"))]
pub(crate) use gaussian::samples as gaussian_samples;
#[cfg(target_arch = "arm")]
pub(crate) use sliced::samples as gaussian_samples;
