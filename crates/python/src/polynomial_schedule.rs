use keywright_circuits::polynomial::{Basis, Polynomial, PolynomialPlan};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arithmetic::named;
use crate::array::Numbers;
use crate::errors::{Failure, Refusal};

/// How the engine evaluates a polynomial: a plan of its coefficients alone.
fn plan(coefficients: &Bound<'_, PyAny>, basis: &str) -> Result<PolynomialPlan, Failure> {
    let basis = match basis {
        "monomial" => Basis::Monomial,
        "chebyshev" => Basis::chebyshev(-1.0, 1.0)?,
        other => return Err(Refusal::Basis(other.into()).into()),
    };
    Ok(PolynomialPlan::new(&Polynomial::new(basis, Numbers::real_vector(coefficients)?)?))
}

/// The relinearizations that the evaluation of a polynomial does, each as how many levels below its input it is, ascending. Zeros among
/// the coefficients can save some.
///
/// Args:
///     coefficients: by ascending degree.
///     basis: "monomial", or "chebyshev" on [-1, 1].
///
/// Raises:
///     ParameterError: another basis, a coefficient that is not finite.
#[pyfunction]
pub(crate) fn polynomial_relinearizations(
    coefficients: &Bound<'_, PyAny>,
    basis: &str,
) -> Result<Vec<usize>, Failure> {
    Ok(plan(coefficients, basis)?.relinearizations())
}

/// What the evaluation of a polynomial computes beside relinearizations, as `keywright.plan.Operation` counts it: pairs of how far below
/// the level of the input it is, and the counts.
///
/// Args:
///     coefficients: by ascending degree.
///     basis: "monomial", or "chebyshev" on [-1, 1].
///
/// Raises:
///     ParameterError: another basis, a coefficient that is not finite.
#[pyfunction]
pub(crate) fn polynomial_arithmetic<'py>(
    py: Python<'py>,
    coefficients: &Bound<'py, PyAny>,
    basis: &str,
) -> Result<Vec<(usize, Bound<'py, PyDict>)>, Failure> {
    let steps = plan(coefficients, basis)?.arithmetic();
    Ok(steps.iter().map(|(below, step)| Ok((*below, named(py, step)?))).collect::<PyResult<_>>()?)
}
