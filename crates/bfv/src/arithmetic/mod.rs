//! Arithmetic modulo the plaintext modulus, the slots of its polynomials, and the constants of a multiplication.

pub(crate) mod batching;
pub(crate) mod plain_modulus;
pub(crate) mod scaling;
