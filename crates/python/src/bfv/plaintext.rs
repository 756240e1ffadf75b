//! Integers as plaintexts of BFV.

use keywright_bfv::{BfvError, BfvParameters, Packing, Plaintext};
use keywright_ring::sampling::SecretRng;
use pyo3::prelude::*;

use crate::arguments::array::Integers;
use crate::errors::{Failure, Refusal};
use crate::randomness::Randomness;
use crate::threads::compute;

impl Integers {
    /// The plaintext in a packing.
    pub(crate) fn encode(&self, parameters: &BfvParameters, packing: Packing) -> Result<Plaintext, BfvError> {
        match self {
            Self::Vector(values) => parameters.encode(values, packing),
            Self::Scalar(value) => parameters.encode_scalar(*value, packing),
        }
    }
}

/// Encrypts integers as `encrypt` does: makes the plaintext at a level, the highest by default.
pub(crate) fn encrypt<C: Send>(
    py: Python<'_>,
    parameters: &BfvParameters,
    values: &Bound<'_, PyAny>,
    packing: Option<&str>,
    level: Option<usize>,
    rng: &Randomness,
    encrypt: impl FnOnce(&Plaintext, usize, SecretRng) -> Result<C, BfvError> + Send,
) -> Result<C, Failure> {
    let packing = self::packing(parameters, packing)?;
    let integers = Integers::from_python(values)?;
    let level = level.unwrap_or(parameters.max_level());
    let rng = rng.split()?;
    compute(py, || encrypt(&integers.encode(parameters, packing)?, level, rng))
}

/// The packing with a name; that of the parameters by default.
pub(crate) fn packing(parameters: &BfvParameters, name: Option<&str>) -> Result<Packing, Refusal> {
    let choices = [("slots", Packing::Slots), ("coefficients", Packing::Coefficients)];
    name.map_or(Ok(parameters.default_packing()), |name| Refusal::choice("packing", name, &choices, None))
}
