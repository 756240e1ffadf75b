//! The product of encoded matrices with ciphertexts.

pub(crate) mod baby_steps;
pub(crate) mod evaluate;
pub(crate) mod giant_steps;
pub(crate) mod products;
pub(crate) mod raised;
