//! The matrix: its diagonals, their encodings, and the norms that bound errors.

pub(crate) mod diagonals;
pub(crate) mod norms;
pub(crate) mod real;
pub(crate) mod storage;
pub(crate) mod transform;
