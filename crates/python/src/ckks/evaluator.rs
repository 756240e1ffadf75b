use keywright_ckks::{Ciphertext, Evaluator, Magnitude};
use pyo3::prelude::*;

use crate::arguments::array::{Numbers, log_slots};
use crate::arguments::integers::integers;
use crate::arguments::operand;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::plaintext;
use crate::classes::evaluator::{evaluator_methods, operations};
use crate::errors::{Failure, Refusal};
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::parameters::ckks::PyParameters;
use crate::parameters::keys::KeyParameters;

/// Computes on ciphertexts with the keys it was given. `evaluator(ciphertext)` returns a value with operators.
///
/// Every operation returns a new ciphertext. Operands that are numbers (a scalar or a vector that numpy accepts) are
/// encoded for the level of the ciphertext, at the scale that makes the result exact. Binary operations lower both
/// ciphertexts to the lower of their levels.
///
/// Ciphertexts may be of any ring of the parameters: each operation runs in the ring of its operands, with the keys of
/// that ring. An operand of numbers is a scalar, which stands for every value, or a vector, whose missing values at the
/// end are 0; the operators of values take a number for every slot, or one for all.
///
/// All raise MismatchError for ciphertexts of other parameters, and for two of different rings. Those that need
/// a key raise MissingKeyError, with element, rotation and level, and the nearest keys.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: of the ciphertexts.
///     keys: those of the owner of the data; an empty set by default, which suffices for sums.
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

impl PyEvaluator {
    /// Computes a ciphertext in the ring of an operand, with the keys of that ring.
    pub(crate) fn run_on<E>(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        work: impl FnOnce(&Evaluator<'_>) -> Result<Ciphertext, E> + Send,
    ) -> Result<PyCiphertext, Failure>
    where
        Failure: From<E>,
    {
        self.run::<Failure>(py, |evaluator| Ok(work(&evaluator.of(&a.0)?)?))
    }
}

/// A second operand, and the magnitude that is declared for it if it is of numbers.
fn operand(b: &Bound<'_, PyAny>, magnitude: Option<f64>) -> Result<(Operand, Option<Magnitude>), Failure> {
    let b = Operand::new(b, Numbers::from_python)?;
    if magnitude.is_some() && matches!(b, Operand::Ciphertext(_)) {
        return Err(Refusal::Values("magnitude= declares numbers; a ciphertext states its own".into()).into());
    }
    Ok((b, magnitude.map(Magnitude::new).transpose()?))
}

/// Operations with a ciphertext or with numbers, which [`plaintext`] encodes to match.
macro_rules! binary_operations {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        #[pymethods]
        impl PyEvaluator {$(
            $(#[$doc])*
            #[pyo3(signature = (a, b, *, magnitude=None))]
            fn $name(
                &self,
                py: Python<'_>,
                a: &PyCiphertext,
                b: &Bound<'_, PyAny>,
                magnitude: Option<f64>,
            ) -> Result<PyCiphertext, Failure> {
                let (b, magnitude) = operand(b, magnitude)?;
                self.run_on(py, a, |evaluator| match &b {
                    Operand::Ciphertext(b) => Ok(evaluator.$name(&a.0, &b.get().0)?),
                    Operand::Numbers(b) => plaintext::$name(evaluator, &a.0, b, magnitude),
                })
            }
        )*}
    };
}

binary_operations! {
    /// a + b, with b a ciphertext or numbers.
    ///
    /// Args:
    ///     magnitude: the largest absolute value that the numbers may have. The result states it instead of the largest
    ///         of them, which it states by default. That hides their size from readers of the result alone: whoever has
    ///         a as well can compute the numbers. Encrypt numbers that are secret.
    ///
    /// Raises:
    ///     EncodeError: the numbers are above the declared magnitude, or b is a ciphertext, which states its own.
    ///     ScaleError: the scales differ by more than one part in 2^44.
    ///     OperandError: the packings differ.
    add;
    /// a - b, with b a ciphertext or numbers; arguments and errors as for `add`.
    sub;
    /// a b of two ciphertexts at degree 2, or of a ciphertext and numbers at degree 1; not rescaled. A sum of such
    /// products needs one `relinearize_rescale`. `magnitude` as for `add`.
    ///
    /// Raises:
    ///     ScaleError: the product's scale does not fit the modulus.
    ///     OperandError: as for `multiply`.
    multiply_lazy;
}

operations! { PyEvaluator on PyCiphertext;
    /// a^2, relinearized and rescaled: two products of polynomials instead of four; errors as for `multiply`.
    square();
    /// a at degree 1, rescaled: one division for both.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    relinearize_rescale();
    /// a with message and scale divided by the last prime: one level less.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    rescale();
    /// Rotates the slots to the left: numpy.roll(slots, -steps), modulo their number.
    ///
    /// Raises:
    ///     OperandError: the values are in coefficients.
    ///     OperandError: a has degree 2.
    rotate(steps: i64);
    /// The complex conjugate of all slots.
    ///
    /// Raises:
    ///     OperandError: a has degree 2.
    conjugate();
    /// Each slot times the imaginary unit: exact, consumes no level.
    ///
    /// Raises:
    ///     OperandError: the values are in coefficients.
    multiply_by_i();
    /// a with fewer primes and the same message.
    ///
    /// Raises:
    ///     LevelError: the level is above that of a.
    drop_to_level(level: usize);
    /// a at another scale, exactly, one level lower, so that it can be added to a ciphertext at that scale.
    ///
    /// Raises:
    ///     LevelError: a is at level 0.
    ///     ScaleError: the scale cannot be reached from that of a.
    set_scale(scale: f64);
}

#[integers]
#[pymethods]
impl PyEvaluator {
    /// a b, with b a ciphertext or numbers: relinearized, rescaled, one level less.
    ///
    /// A product with numbers keeps the scale of a exactly; one with a Python integer consumes no level, unless a
    /// magnitude is declared: see `add`. With `scale`, which must be within a factor of 2 of that of a, it has that
    /// scale instead, and consumes a level: a later sum with a ciphertext of that scale then needs no level to match
    /// the two.
    ///
    /// Raises:
    ///     LevelError: there is no level left.
    ///     OperandError: an operand has degree 2; relinearize it first.
    ///     OperandError: the packings differ.
    ///     ScaleError: the scale cannot be reached from that of a.
    #[pyo3(signature = (a, b, *, magnitude=None, scale=None))]
    fn multiply(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        b: &Bound<'_, PyAny>,
        magnitude: Option<f64>,
        scale: Option<f64>,
    ) -> Result<PyCiphertext, Failure> {
        let (b, magnitude) = operand(b, magnitude)?;
        self.run_on(py, a, |evaluator| match (&b, scale) {
            (Operand::Ciphertext(b), None) => Ok(evaluator.multiply(&a.0, &b.get().0)?),
            (Operand::Ciphertext(_), Some(_)) => {
                Err(Refusal::Values("scale= is for products with numbers; use set_scale".into()).into())
            }
            (Operand::Numbers(b), None) => plaintext::multiply(evaluator, &a.0, b, magnitude),
            (Operand::Numbers(b), Some(scale)) => {
                plaintext::multiply_to_scale(evaluator, &a.0, b, magnitude, scale)
            }
        })
    }

    /// Several rotations of one ciphertext, which share its decomposition: cheaper than one by one; errors as for
    /// `rotate`, raised before anything is computed.
    fn rotate_hoisted(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        steps: Vec<i64>,
    ) -> Result<Vec<PyCiphertext>, Failure> {
        let rotated = self.with(py, |evaluator| evaluator.of(&a.0)?.rotate_hoisted(&a.0, &steps))?;
        Ok(rotated.into_iter().map(PyCiphertext).collect())
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
    ///     OperandError: as for `rotate`.
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
        self.run_on(py, a, |evaluator| evaluator.inner_sum(&a.0, stride, count))
    }

    /// The same values in another ring of the parameters, at the same level and scale.
    ///
    /// Switching down to a smaller ring needs the keys of `KeySpec.ring_down`; switching up needs the key of
    /// `KeySpec.ring_up`.
    ///
    /// Args:
    ///     log_n: log2 of the degree of the ring: that of the parameters, or of one of their subrings.
    ///
    /// Raises:
    ///     ParameterError: the parameters have no such ring.
    ///     OperandError: the values are in coefficients, or in more slots than the smaller ring has: see `view_slots`.
    ///     LevelError: a is above the highest level of that ring.
    ///     OperandError: a has degree 2.
    fn switch_ring(&self, py: Python<'_>, a: &PyCiphertext, log_n: u32) -> Result<PyCiphertext, Failure> {
        self.run(py, |evaluator| evaluator.switch_ring(&a.0, log_n))
    }

    /// a read as a ciphertext of another number of slots, without computation.
    ///
    /// With more slots, the values repeat. With fewer, they must repeat already, up to their errors: slot j becomes the
    /// mean of the slots j + m slots, and if these differ, products are not those of the means. The error bound stays
    /// or, with more slots, grows by the square root of their ratio.
    ///
    /// Args:
    ///     slots: a power of two up to half the degree of the ring of a.
    ///
    /// Raises:
    ///     ParameterError: slots is not such a number.
    ///     OperandError: the values are in coefficients.
    fn view_slots(&self, py: Python<'_>, a: &PyCiphertext, slots: usize) -> Result<PyCiphertext, Failure> {
        let log_slots = log_slots(&a.0.parameters, Some(slots))?;
        self.run(py, |evaluator| evaluator.view_slots(&a.0, log_slots))
    }

    /// a with this bound on the absolute values of its message, as `magnitude_bound`. Nothing is computed: its caller
    /// vouches for the bound, for instance after a function whose results are smaller than its operands suggest. Error
    /// bounds and flooding rest on it, and decryption refuses values above it. With `real`, it also vouches that all
    /// values are real, as those of a sum with the conjugate are: imaginary parts are errors.
    ///
    /// Raises:
    ///     ParameterError: magnitude is not a positive number.
    #[pyo3(signature = (a, magnitude, *, real=false))]
    fn declare(
        &self,
        py: Python<'_>,
        a: &PyCiphertext,
        magnitude: f64,
        real: bool,
    ) -> Result<PyCiphertext, Failure> {
        let declared = a.0.clone().declared(Magnitude::new(magnitude)?);
        let out = if real { declared.declared_real() } else { declared };
        self.run_on(py, a, |_| Ok::<_, Failure>(out))
    }
}
