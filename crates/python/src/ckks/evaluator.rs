use keywright_ckks::{Ciphertext, Evaluator};
use pyo3::prelude::*;

use crate::array::Numbers;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::plaintext;
use crate::errors::Failure;
use crate::evaluator::evaluator_methods;
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::operand;
use crate::parameters::ckks::PyParameters;
use crate::parameters::keys::KeyParameters;

/// Computes on ciphertexts with the keys it was given. `evaluator(ciphertext)` gives a value with operators.
///
/// Every operation returns a new ciphertext. Where an operand may be numbers (a scalar or a vector that numpy takes),
/// they are encoded for the level of the ciphertext at the scale that makes the result exact. Binary operations bring both
/// ciphertexts to the lower of their levels.
///
/// All raise MixedParametersError for ciphertexts of other parameters; those that need a key raise MissingKeyError, naming
/// element, rotation and level, and the nearest keys there are.
///
/// Args:
///     parameters: of the ciphertexts.
///     keys: those of the owner of the data; an empty set by default, which is enough for sums.
#[pyclass(name = "Evaluator", module = "keywright", frozen)]
pub(crate) struct PyEvaluator {
    parameters: PyParameters,
    keys: Py<PyEvaluationKeys>,
}

type Operand = operand::Operand<PyCiphertext, Numbers>;

evaluator_methods!(
    PyEvaluator computes by Evaluator on PyCiphertext of PyParameters as Ckks,
    called for "Encrypted"
);

#[pymethods]
impl PyEvaluator {
    /// a + b, with b a ciphertext or numbers.
    ///
    /// Raises:
    ///     ScaleError: the scales differ by more than one part in 2^30.
    ///     PackingError: the packings differ.
    fn add(&self, py: Python<'_>, a: &PyCiphertext, b: &Bound<'_, PyAny>) -> Result<PyCiphertext, Failure> {
        let b = Operand::new(b, Numbers::from_python)?;
        self.run(py, |evaluator| match &b {
            Operand::Ciphertext(b) => Ok(evaluator.add(&a.0, &b.get().0)?),
            Operand::Numbers(b) => plaintext::add(evaluator, &a.0, b),
        })
    }

    /// a - b, with b a ciphertext or numbers; errors as of `add`.
    fn sub(&self, py: Python<'_>, a: &PyCiphertext, b: &Bound<'_, PyAny>) -> Result<PyCiphertext, Failure> {
        let b = Operand::new(b, Numbers::from_python)?;
        self.run(py, |evaluator| match &b {
            Operand::Ciphertext(b) => Ok(evaluator.sub(&a.0, &b.get().0)?),
            Operand::Numbers(b) => plaintext::sub(evaluator, &a.0, b),
        })
    }

    /// a b, with b a ciphertext or numbers: relinearized, rescaled, one level less.
    ///
    /// A product with numbers keeps the scale of a exactly; one with a Python integer costs no level.
    ///
    /// Raises:
    ///     LevelError: there is no level left.
    ///     DegreeError: an operand has degree 2; relinearize it first.
    ///     PackingError: the packings differ.
    fn multiply(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        b: &Bound<'_, PyAny>,
    ) -> Result<PyCiphertext, Failure> {
        let b = Operand::new(b, Numbers::from_python)?;
        self.run(py, |evaluator| match &b {
            Operand::Ciphertext(b) => Ok(evaluator.multiply(&a.0, &b.get().0)?),
            Operand::Numbers(b) => plaintext::multiply(evaluator, &a.0, b),
        })
    }

    /// a^2, relinearized and rescaled: two products of polynomials instead of four; errors as of `multiply`.
    fn square(&self, py: Python<'_>, a: &PyCiphertext) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.square(&a.0))
    }

    /// a b of two ciphertexts at degree 2, or of a ciphertext and numbers at degree 1; not rescaled. Sums of such
    /// products need one `relinearize_rescale` in all.
    ///
    /// Raises:
    ///     ScaleError: the product's scale does not fit the modulus.
    ///     DegreeError, PackingError: as of `multiply`.
    fn multiply_lazy(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        b: &Bound<'_, PyAny>,
    ) -> Result<PyCiphertext, Failure> {
        let b = Operand::new(b, Numbers::from_python)?;
        self.run(py, |evaluator| match &b {
            Operand::Ciphertext(b) => Ok(evaluator.multiply_lazy(&a.0, &b.get().0)?),
            Operand::Numbers(b) => plaintext::multiply_lazy(evaluator, &a.0, b),
        })
    }

    /// a at degree 1, rescaled: one division for both.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    fn relinearize_rescale(&self, py: Python<'_>, a: &PyCiphertext) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.relinearize_rescale(&a.0))
    }

    /// a with message and scale divided by the last prime: one level less.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    fn rescale(&self, py: Python<'_>, a: &PyCiphertext) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.rescale(&a.0))
    }

    /// The slots moved to the left: numpy.roll(slots, -steps), modulo their number.
    ///
    /// Raises:
    ///     PackingError: the values are in coefficients.
    ///     DegreeError: a has degree 2.
    fn rotate(&self, py: Python<'_>, a: &PyCiphertext, steps: i64) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.rotate(&a.0, steps))
    }

    /// Several rotations of one ciphertext, which share its decomposition: cheaper than one by one; errors as of
    /// `rotate`, before anything is computed.
    fn rotate_hoisted(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        steps: Vec<i64>,
    ) -> Result<Vec<PyCiphertext>, Failure> {
        let rotated = self.with(py, |evaluator| evaluator.rotate_hoisted(&a.0, &steps))?;
        Ok(rotated.into_iter().map(PyCiphertext).collect())
    }

    /// The complex conjugate of all slots.
    ///
    /// Raises:
    ///     DegreeError: a has degree 2.
    fn conjugate(&self, py: Python<'_>, a: &PyCiphertext) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.conjugate(&a.0))
    }

    /// Each slot times the imaginary unit: exact, no level.
    ///
    /// Raises:
    ///     PackingError: the values are in coefficients.
    fn multiply_by_i(&self, py: Python<'_>, a: &PyCiphertext) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.multiply_by_i(&a.0))
    }

    /// In each slot i the sum of the slots i, i + stride, ..., i + (count - 1) stride.
    ///
    /// Needs keys for the rotations by stride 2^k below stride count.
    ///
    /// Args:
    ///     count: a power of two; all slots by default.
    ///
    /// Raises:
    ///     ParameterError: count is not a power of two.
    ///     PackingError, DegreeError: as of `rotate`.
    #[pyo3(signature = (a, stride=1, count=None))]
    fn inner_sum(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        stride: i64,
        count: Option<usize>,
    ) -> Result<PyCiphertext, Failure> {
        let count = count
            .or_else(|| crate::ckks::ciphertext::slots(a.0.packing))
            .unwrap_or(a.0.parameters.rlwe().n());
        self.run(py, |evaluator| evaluator.inner_sum(&a.0, stride, count))
    }

    /// a with fewer primes and the same message.
    ///
    /// Raises:
    ///     LevelError: the level is above that of a.
    fn drop_to_level(&self, py: Python<'_>, a: &PyCiphertext, level: usize) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.drop_to_level(&a.0, level))
    }

    /// a at another scale, exactly, one level lower: so that it can be added to what has that scale.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    ///     ScaleError: the scale cannot be reached from that of a.
    fn set_scale(&self, py: Python<'_>, a: &PyCiphertext, scale: f64) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.set_scale(&a.0, scale))
    }
}
