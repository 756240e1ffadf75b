//! Bootstrapping.

mod bootstrapper;
pub mod coeffs_to_slots;
pub mod dft;
pub mod eval_mod;
mod factor;
mod least_squares;
pub mod mod_raise;
mod plan;
pub mod presets;
pub mod range;
pub mod sine;
pub mod slots_to_coeffs;
mod stage;

pub use bootstrapper::Bootstrapper;
pub use coeffs_to_slots::{CoeffsToSlots, CoeffsToSlotsPlan, Values};
pub use dft::{Dft, Direction};
pub use factor::FactorPlan;
pub use plan::{BootstrapperLiteral, BootstrapperPlan};
pub use presets::{BOOTSTRAP_PRESETS, BootstrapPreset, bootstrap_preset};
pub use slots_to_coeffs::{SlotsToCoeffs, SlotsToCoeffsPlan};
pub use stage::{SCALE_DRIFT, Stage};
