//! The arithmetic of key switches, known from parameters alone: digits, constants, divisions, work and memory.

mod cache;
pub mod coalescing;
pub(crate) mod layout;
pub(crate) mod mod_down;
pub mod plan;
pub(crate) mod scratch;
pub(crate) mod work;
