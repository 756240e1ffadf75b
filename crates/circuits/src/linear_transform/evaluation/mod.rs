//! The product of encoded matrices with ciphertexts by double hoisting: baby steps share a decomposition, and all
//! products share the division by the special primes.

pub(crate) mod baby_steps;
pub(crate) mod evaluate;
pub(crate) mod giant_steps;
pub(crate) mod products;
pub(crate) mod raised;
