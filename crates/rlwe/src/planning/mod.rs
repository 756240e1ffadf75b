//! The arithmetic of key switches, known from parameters alone: digits, constants, divisions, work and memory.

mod cache;
pub mod coalescing;
pub(crate) mod division;
pub(crate) mod layout;
pub mod plan;
pub(crate) mod scratch;
pub(crate) mod work;
