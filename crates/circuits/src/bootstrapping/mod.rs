//! Bootstrapping: a ciphertext that has no level left gets new ones (Cheon, Han, Kim, Kim and Song, Eurocrypt 2018), with slots-to-coefficients
//! first and a sparse ephemeral secret (Bossuat, Troncoso-Pastoriza and Hubaux, ePrint 2022/024).
//!
//! Four public stages, each usable alone, each with its form, scale, level and error in its module:
//!
//! | stage | from | to | level |
//! |---|---|---|---|
//! | [`slots_to_coeffs`] | values in slots | the same values in coefficients | its number of factors to 0 |
//! | [`mod_raise`] | coefficients modulo `q_0` | coefficients that are off by multiples of `q_0` | 0 to the highest used |
//! | [`coeffs_to_slots`] | coefficients | slots: one real number in each | its number of factors lower |
//! | [`eval_mod`] | slots that are off by multiples of `q_0` | slots | its depth lower |
//!
//! [`Bootstrapper`] composes them, and joins real and imaginary parts at the end; in the order of the table or, with [`Order::ModRaiseFirst`],
//! with the first of them last, and several times over for [`Iterations`]. A ciphertext whose values are in coefficients already
//! enters at [`Bootstrapper::bootstrap_coefficients`]; a result is left in coefficients by [`SlotsToCoeffs`].
//!
//! [`BootstrapperPlan`] is plain data: the level, scale and baby and giant steps of every transform, and every key that is needed, each with
//! the digits and level that a [`KeyDesign`] gives it. It is there before any key is made. [`BOOTSTRAP_PRESETS`] are parameters with a
//! plan that fits them. How to choose others, and what becomes of errors, is in `docs/bootstrapping.md`.

mod bootstrapper;
pub mod coeffs_to_slots;
pub mod dft;
pub mod eval_mod;
mod factor;
mod iterations;
mod key_budget;
mod key_design;
mod key_groups;
mod key_supply;
mod least_squares;
pub mod mod_raise;
mod operations;
mod plan;
pub mod prediction;
pub mod presets;
pub mod range;
pub mod sine;
pub mod slots_to_coeffs;
mod stage;
mod transforms;

pub use bootstrapper::Bootstrapper;
pub use coeffs_to_slots::{CoeffsToSlots, CoeffsToSlotsPlan, Values};
pub use dft::{Dft, Direction};
pub use factor::FactorPlan;
pub use iterations::Iterations;
pub use key_budget::KeyBudget;
pub use key_design::{Digits, KeyDesign, KeyLevels};
pub use key_groups::{KeyGroup, SwitchForm};
pub use key_supply::KeySupply;
pub use operations::Operation;
pub use plan::{BootstrapperLiteral, BootstrapperPlan, FactorSteps, Order};
pub use prediction::Prediction;
pub use presets::{BOOTSTRAP_PRESETS, BootstrapPreset, bootstrap_preset};
pub use slots_to_coeffs::{SlotsToCoeffs, SlotsToCoeffsPlan};
pub use stage::{SCALE_DRIFT, Stage};
pub use transforms::Diagonals;
