//! Bootstrapping gives a ciphertext without levels new ones (Cheon, Han, Kim, Kim and Song, Eurocrypt 2018). By default
//! it runs SlotsToCoeffs first, and raises the modulus under a sparse ephemeral secret (Bossuat, Troncoso-Pastoriza and
//! Hubaux, ePrint 2022/024).
//!
//! Four public stages, each usable alone. The module of each gives its form, scale, level and error:
//!
//! | stage | from | to | level |
//! |---|---|---|---|
//! | [`slots_to_coeffs`] | values in slots | the same values in coefficients | its number of factors to 0 |
//! | [`mod_raise`] | coefficients modulo `q_0` | coefficients that are off by multiples of `q_0` | 0 to the highest used |
//! | [`coeffs_to_slots`] | coefficients | slots: one real number in each | its number of factors lower |
//! | [`eval_mod`] | slots that are off by multiples of `q_0` | slots | its depth lower |
//!
//! [`Bootstrapper`] composes them, and joins real and imaginary parts at the end. It runs them in the order of the
//! table or, with [`Order::ModRaiseFirst`], with the first of them last, and several times for [`Iterations`]. A
//! ciphertext with values in coefficients enters at [`Bootstrapper::bootstrap_coefficients`]; [`SlotsToCoeffs`] leaves
//! a result in coefficients.
//!
//! [`BootstrapperPlan`] is plain data: the level, scale and baby and giant steps of every transform, and every required
//! key, with the digits and level from a [`KeyDesign`]. A plan exists before any key is made. [`BOOTSTRAP_PRESETS`]
//! pairs parameters with a matching plan. `docs/explanation/bootstrapping.md` explains how to choose others, and how
//! errors propagate.
//!
//! Folders, each built on those before it: `keys/` digits and levels of keys; `transforms/` the factors of the Fourier
//! transform; `mod_one/` the approximation of the reduction modulo 1; `stages/` the four stages; `plan/` the plan of a
//! whole bootstrapping; `error_prediction/` its precision. `bootstrapper.rs` and `passes.rs` run it.

mod bootstrapper;
mod error_prediction;
mod keys;
mod mod_one;
mod passes;
mod plan;
pub mod presets;
mod stage;
mod stages;
mod transforms;

pub use bootstrapper::Bootstrapper;
pub use error_prediction::{ErrorPrediction, ErrorsOfMessages};
pub use keys::{DigitRule, KeyDesign, KeyLevels, StageKeys};
pub use mod_one::{range, sine};
pub use plan::{
    BootstrapperLiteral, BootstrapperPlan, FactorSteps, Iterations, KeyGroup, Order, StageOperation,
    SwitchForm,
};
pub use presets::{BOOTSTRAP_PRESETS, BootstrapPreset, bootstrap_preset};
pub use stage::{SCALE_DRIFT, Stage};
pub use stages::coeffs_to_slots::{CoeffsToSlots, CoeffsToSlotsPlan, Values};
pub use stages::slots_to_coeffs::{SlotsToCoeffs, SlotsToCoeffsPlan};
pub use stages::{coeffs_to_slots, eval_mod, mod_raise, slots_to_coeffs};
pub use transforms::{Dft, Direction, FactorPlan, KeyBudget, dft};
