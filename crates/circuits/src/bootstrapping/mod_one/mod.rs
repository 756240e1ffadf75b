//! The approximation of the reduction modulo 1 that `eval_mod` evaluates: the range of the integers, and the
//! polynomials.

mod least_squares;
pub mod range;
pub mod sine;
