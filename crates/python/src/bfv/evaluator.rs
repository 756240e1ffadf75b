use keywright_bfv::{BfvError, Ciphertext, Evaluator};
use pyo3::prelude::*;

use crate::arguments::array::Integers;
use crate::arguments::integers::integers;
use crate::arguments::operand;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::classes::evaluator::{evaluator_methods, operations};
use crate::errors::Failure;
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::parameters::bfv::PyBfvParameters;
use crate::parameters::keys::KeyParameters;

/// Computes on BFV ciphertexts with the keys it was given. `evaluator(ciphertext)` returns a value with operators.
///
/// Every operation returns a new ciphertext. An operand is a ciphertext at the same level, or integers from -t/2 to t -
/// 1: a vector, whose missing values at the end are 0, or a scalar that stands for every value and costs no transform.
/// The operators of values take N integers, or one for all. Values in slots are multiplied one by one, coefficients as
/// polynomials modulo X^N + 1.
///
/// All raise NoiseError if the result may not decrypt by its estimated noise, MismatchError for ciphertexts of
/// other parameters, OperandError and LevelError for operands that do not match, and EncodeError for integers out of
/// range. Those that need a key raise MissingKeyError.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: of the ciphertexts.
///     keys: those of the owner of the data; an empty set by default, which suffices for sums.
#[pyclass(name = "BfvEvaluator", module = "keywright", frozen)]
pub(crate) struct PyBfvEvaluator {
    parameters: PyBfvParameters,
    keys: Py<PyEvaluationKeys>,
}

type Operand = operand::Operand<PyBfvCiphertext, Integers>;

evaluator_methods!(
    PyBfvEvaluator computes by Evaluator on PyBfvCiphertext of PyBfvParameters as Bfv,
    called for "EncryptedIntegers"
);

impl PyBfvEvaluator {
    /// One operation for ciphertexts, or another for a plaintext.
    fn binary(
        &self,
        py: Python<'_>,
        a: &PyBfvCiphertext,
        b: &Bound<'_, PyAny>,
        ciphertexts: fn(&Evaluator<'_>, &Ciphertext, &Ciphertext) -> Result<Ciphertext, BfvError>,
        plain: fn(&Evaluator<'_>, &Ciphertext, &keywright_bfv::Plaintext) -> Result<Ciphertext, BfvError>,
    ) -> Result<PyBfvCiphertext, Failure> {
        let b = Operand::new(b, Integers::from_python)?;
        self.with(py, |evaluator| match &b {
            Operand::Ciphertext(b) => ciphertexts(evaluator, &a.0, &b.get().0),
            Operand::Numbers(integers) => {
                plain(evaluator, &a.0, &integers.encode(evaluator.parameters(), a.0.packing)?)
            }
        })
        .map(PyBfvCiphertext)
    }
}

impl PyBfvEvaluator {
    /// Computes a ciphertext: BFV has one ring.
    fn run_on<E>(
        &self,
        py: Python<'_>,
        _: &PyBfvCiphertext,
        work: impl FnOnce(&Evaluator<'_>) -> Result<Ciphertext, E> + Send,
    ) -> Result<PyBfvCiphertext, Failure>
    where
        Failure: From<E>,
    {
        self.run(py, work)
    }
}

#[integers]
#[pymethods]
impl PyBfvEvaluator {
    /// a + b, with b a ciphertext or integers.
    fn add(
        &self,
        py: Python<'_>,
        a: &PyBfvCiphertext,
        b: &Bound<'_, PyAny>,
    ) -> Result<PyBfvCiphertext, Failure> {
        self.binary(py, a, b, |e, a, b| e.add(a, b), |e, a, p| e.add_plain(a, p))
    }

    /// a - b, with b a ciphertext or integers.
    fn sub(
        &self,
        py: Python<'_>,
        a: &PyBfvCiphertext,
        b: &Bound<'_, PyAny>,
    ) -> Result<PyBfvCiphertext, Failure> {
        self.binary(py, a, b, |e, a, b| e.sub(a, b), |e, a, p| e.sub_plain(a, p))
    }

    /// a b, with b a ciphertext or integers: relinearized.
    ///
    /// Raises:
    ///     OperandError: an operand has degree 2; relinearize it first.
    fn multiply(
        &self,
        py: Python<'_>,
        a: &PyBfvCiphertext,
        b: &Bound<'_, PyAny>,
    ) -> Result<PyBfvCiphertext, Failure> {
        let b = Operand::new(b, Integers::from_python)?;
        self.with(py, |evaluator| match &b {
            Operand::Ciphertext(b) => evaluator.multiply(&a.0, &b.get().0),
            Operand::Numbers(Integers::Scalar(value)) => evaluator.multiply_scalar(&a.0, *value),
            Operand::Numbers(vector) => {
                evaluator.multiply_plain(&a.0, &vector.encode(evaluator.parameters(), a.0.packing)?)
            }
        })
        .map(PyBfvCiphertext)
    }

    /// a b at degree 2; a sum of such products needs one `relinearize`.
    ///
    /// Raises:
    ///     OperandError: an operand has degree 2.
    fn multiply_lazy(
        &self,
        py: Python<'_>,
        a: &PyBfvCiphertext,
        b: &PyBfvCiphertext,
    ) -> Result<PyBfvCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.multiply_lazy(&a.0, &b.0))
    }

    /// Several rotations of one ciphertext, which share its decomposition; errors as for `rotate_rows`, raised before
    /// anything is computed.
    fn rotate_rows_hoisted(
        &self,
        py: Python<'_>,
        a: &PyBfvCiphertext,
        steps: Vec<i64>,
    ) -> Result<Vec<PyBfvCiphertext>, Failure> {
        let rotated = self.with(py, |evaluator| evaluator.rotate_rows_hoisted(&a.0, &steps))?;
        Ok(rotated.into_iter().map(PyBfvCiphertext).collect())
    }
}

operations! { PyBfvEvaluator on PyBfvCiphertext;
    /// a^2, relinearized.
    ///
    /// Raises:
    ///     OperandError: a has degree 2.
    square();
    /// Rotates both rows of slots to the left: numpy.roll(slots.reshape(2, -1), -steps, axis=1).
    ///
    /// Raises:
    ///     OperandError: the values are in coefficients.
    ///     OperandError: a has degree 2.
    rotate_rows(steps: i64);
    /// Swaps the two rows of slots. Needs the key from `KeyGenerator.conjugation_key`.
    ///
    /// Raises:
    ///     OperandError: as for `rotate_rows`.
    swap_rows();
    /// a one level lower, with the same values: smaller and faster, with room for less noise.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    mod_switch();
    /// a at a lower level.
    ///
    /// Raises:
    ///     LevelError: the level is above that of a.
    mod_switch_to(level: usize);
}
