//! The Fourier transform as a sequence of linear transforms: how it is cut into factors, how each factor is
//! evaluated, and which ways a budget of key bytes chooses.

pub mod dft;
mod factor;
mod key_budget;
mod sequence;

pub use dft::{Dft, Direction};
pub use factor::FactorPlan;
pub use key_budget::KeyBudget;
pub(crate) use key_budget::worthwhile;
pub(crate) use sequence::Transforms;
