//! Bootstrapping.

pub mod coeffs_to_slots;
pub mod dft;
mod factor;
pub mod slots_to_coeffs;
mod stage;

pub use coeffs_to_slots::{CoeffsToSlots, CoeffsToSlotsPlan, Values};
pub use dft::{Dft, Direction};
pub use factor::FactorPlan;
pub use slots_to_coeffs::{SlotsToCoeffs, SlotsToCoeffsPlan};
pub use stage::{SCALE_DRIFT, Stage};
