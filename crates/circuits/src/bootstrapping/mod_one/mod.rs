//! Reduction modulo 1, of which `eval_mod` evaluates an approximation: the range of the integers, and the polynomials
//! for it.

mod least_squares;
pub mod range;
pub mod sine;
