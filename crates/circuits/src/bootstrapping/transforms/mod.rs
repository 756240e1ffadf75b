//! The Fourier transform as a sequence of linear transforms: its factors, the evaluation of each factor, and the choice
//! of ways by a budget of key bytes.

pub mod dft;
mod factor;
mod key_budget;
mod sequence;

pub use dft::{Dft, Direction};
pub use factor::FactorPlan;
pub use key_budget::KeyBudget;
pub(crate) use key_budget::worthwhile;
pub(crate) use sequence::Transforms;
