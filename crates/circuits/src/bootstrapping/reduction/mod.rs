//! What `eval_mod` is an approximation of: the range of the integers, and the polynomials for it.

mod least_squares;
pub mod range;
pub mod sine;
