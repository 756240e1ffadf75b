//! Operands: ciphertexts, bound to an evaluator or not, and numbers.

use pyo3::PyClass;
use pyo3::prelude::*;

use crate::errors::Failure;

/// A ciphertext, or that in a result of operators.
///
/// # Errors
/// A `TypeError` for anything else.
pub(crate) fn unbound<C: PyClass>(value: &Bound<'_, PyAny>) -> Result<Py<C>, Failure> {
    let ciphertext = match value.getattr("ciphertext") {
        Ok(bound) => bound.cast_into::<C>().map_err(PyErr::from)?,
        Err(_) => value.cast::<C>().map_err(PyErr::from)?.clone(),
    };
    Ok(ciphertext.unbind())
}

/// A ciphertext, or numbers that are encoded to match the left-hand side.
pub(crate) enum Operand<C, N> {
    Ciphertext(Py<C>),
    Numbers(N),
}

impl<C: PyClass, N> Operand<C, N> {
    /// The operand in a value: a ciphertext, or by `numbers`.
    pub(crate) fn new(
        value: &Bound<'_, PyAny>,
        numbers: impl FnOnce(&Bound<'_, PyAny>) -> Result<N, Failure>,
    ) -> Result<Self, Failure> {
        match value.cast::<C>() {
            Ok(ciphertext) => Ok(Self::Ciphertext(ciphertext.clone().unbind())),
            Err(_) => Ok(Self::Numbers(numbers(value)?)),
        }
    }
}
