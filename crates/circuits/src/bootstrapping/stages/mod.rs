//! The four stages: the plan of each, and its evaluation.

pub mod coeffs_to_slots;
mod encoded;
pub mod eval_mod;
mod input;
pub mod mod_raise;
pub mod slots_to_coeffs;

pub(crate) use input::require_input;
