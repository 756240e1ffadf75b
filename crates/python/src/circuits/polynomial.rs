use keywright_circuits::polynomial::{self, Basis, Polynomial, PolynomialPlan};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::array::Numbers;
use crate::arguments::integers::integers;
use crate::circuits::arithmetic::named;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::evaluator::PyEvaluator;
use crate::errors::{Failure, Refusal};

/// The basis with a name; the Chebyshev basis is on [-1, 1] by default.
fn parse_basis(name: &str, interval: Option<(f64, f64)>) -> Result<Basis, Failure> {
    let (a, b) = interval.unwrap_or((-1.0, 1.0));
    let chebyshev = Refusal::choice("basis", name, &[("monomial", false), ("chebyshev", true)], None)?;
    if chebyshev { Ok(Basis::chebyshev(a, b)?) } else { Ok(Basis::Monomial) }
}

/// The engine's evaluation of a polynomial: a plan from its coefficients alone.
pub(crate) fn plan(coefficients: &Bound<'_, PyAny>, basis: &str) -> Result<PolynomialPlan, Failure> {
    let basis = parse_basis(basis, None)?;
    Ok(PolynomialPlan::new(&Polynomial::new(basis, Numbers::real_vector(coefficients)?)?))
}

#[pymethods]
impl PyEvaluator {
    /// A polynomial of every slot, ceil(log2(degree + 1)) levels lower; Paterson-Stockmeyer.
    ///
    /// Args:
    ///     coefficients: real, the constant first.
    ///     basis: "monomial" for powers, "chebyshev" for Chebyshev polynomials of the interval.
    ///     interval: the range of the slots' values, for the Chebyshev basis; (-1, 1) by default. An interval of
    ///         another width than 2 costs one more level. Values outside have the polynomial's value there, which can
    ///         be far from the function that it approximates. Bounds of the result follow from the magnitude that a
    ///         declares; if that reaches no further than the farther end, they rest on the interval.
    ///     scale: exact scale of the result, that of a by default.
    ///
    /// Raises:
    ///     LevelError: there are too few levels.
    ///     EncodeError: a coefficient is not finite.
    ///     ParameterError: the basis is unknown or the interval empty.
    ///     ScaleError, OperandError: as for `multiply`.
    #[pyo3(signature = (a, coefficients, basis="monomial", interval=None, scale=None))]
    fn polynomial(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        coefficients: &Bound<'_, PyAny>,
        basis: &str,
        interval: Option<(f64, f64)>,
        scale: Option<f64>,
    ) -> Result<PyCiphertext, Failure> {
        let coefficients = Numbers::real_vector(coefficients)?;
        let basis = parse_basis(basis, interval)?;
        self.run_on(py, a, |evaluator| {
            let plan = PolynomialPlan::new(&Polynomial::new(basis, coefficients)?);
            polynomial::evaluate(evaluator, &plan, &a.0, scale)
        })
    }
}

/// Levels of the evaluation of a polynomial of a degree: ceil(log2(degree + 1)). In the Chebyshev basis of an interval
/// of another width than 2 it takes one more.
#[integers]
#[pyfunction]
pub(crate) fn polynomial_depth(degree: usize) -> usize {
    polynomial::degree_depth(degree)
}

/// The relinearizations in the evaluation of a polynomial, each as its depth in levels below the input, ascending. Zero
/// coefficients can save some.
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

/// The operations of the evaluation of a polynomial other than relinearizations, as `keywright.plan.Operation` counts
/// them: pairs of the depth below the level of the input, and the counts.
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
