use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_circuits::CircuitError;
use keywright_circuits::linear_transform::{
    self, BsgsPlan, Diagonals, LinearTransform, Storage, SwitchShape,
};
use keywright_ckks::Complex64;
use keywright_rlwe::{KeyElement, KeySpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::array::{Numbers, log_slots, matrix_rows, real_rows};
use crate::arguments::integers::{integers, named};
use crate::circuits::plan_arguments::parse_storage;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::evaluator::PyEvaluator;
use crate::classes::getters::getters;
use crate::errors::{Failure, Refusal};
use crate::keys::descriptions::spec::{KeyShape, PyKeySpec, rotation};
use crate::parameters::ckks::PyParameters;
use crate::parameters::keys::KeyParameters;
use crate::stored::not_pickled;
use crate::threads::compute;

/// A matrix on the slots, encoded for one level: `transform @ x`, or `Evaluator.linear_transform`, is its product with
/// the column of slots.
///
/// Diagonal r of a matrix M over n slots is M[i, (i + r) mod n]; zero diagonals take no time. Evaluation is baby-step
/// giant-step with double hoisting (Bossuat et al., Eurocrypt 2021, algorithm 6): r = i + j with the baby step i = r
/// mod n1 and the giant step j. Its rotations share ModUp and ModDown if their keys have the special primes of the
/// transform; `key_specs` lists such keys. With other keys the result is equally right, but each such rotation needs
/// its own ModDown.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: of the ciphertexts.
///     matrix: real or complex, of up to `slots` rows and columns: slots beyond its columns are ignored, results beyond
///         its rows are 0. Or a dict of its diagonals: for each r, a vector of `slots` numbers.
///     slots: a power of two up to N/2, the default.
///     level: of its input ciphertexts, the highest by default; the result is one lower.
///     n1: number of possible baby steps; by default the one of least work.
///     special: indices of the special primes of its keys; by default those of `KeySpec.rotation` at that level.
///     storage: "encoded" keeps a diagonal of period p as its values modulo every prime, 16 p (level + 1 +
///         len(special)) bytes; "coefficients" keeps its integer coefficients, 16 p bytes, and transforms them at every
///         use. A real matrix takes half of these bytes. Results are the same.
///
/// Raises:
///     LevelError: the level does not exist or is 0.
///     EncodeError: a matrix of the wrong shape, a diagonal that is not a vector of `slots` finite numbers, or
///         coefficients of 2^62 or more that must be kept.
///     ParameterError: slots, n1 or a special prime is illegal, there are no diagonals, or the storage is unknown.
#[pyclass(name = "LinearTransform", module = "keywright", frozen)]
pub(crate) struct PyLinearTransform {
    parameters: PyParameters,
    pub(crate) transform: Arc<LinearTransform>,
}

not_pickled!(PyLinearTransform);

#[integers]
#[pymethods]
impl PyLinearTransform {
    #[new]
    #[pyo3(signature = (parameters, matrix, slots=None, level=None, n1=None, special=None, *, storage="encoded"))]
    fn new(
        py: Python<'_>,
        parameters: &PyParameters,
        matrix: &Bound<'_, PyAny>,
        slots: Option<usize>,
        level: Option<usize>,
        n1: Option<usize>,
        special: Option<Vec<usize>>,
        storage: &str,
    ) -> Result<Self, Failure> {
        let shape = Shape::new(parameters, slots, level, n1, special, storage)?;
        if !matrix.is_instance_of::<PyDict>() {
            let (values, columns) = matrix_rows(matrix)?;
            let diagonals = linear_transform::diagonals_of(&values, columns, 1 << shape.log_slots)?;
            return shape.make(py, parameters, Diagonals::Slots(&diagonals));
        }
        let diagonals: BTreeMap<usize, Bound<'_, PyAny>> = named::<usize, _>("matrix", matrix)?;
        let mut vectors = BTreeMap::new();
        for (r, values) in &diagonals {
            let vector = match Numbers::vector(values)? {
                Numbers::Complex(values) => values,
                Numbers::Real(values) => values.into_iter().map(|re| Complex64::new(re, 0.0)).collect(),
                _ => Vec::new(),
            };
            vectors.insert(*r, vector);
        }
        shape.make(py, parameters, Diagonals::Slots(&vectors))
    }

    /// The transform of periodic real diagonals, from one array: encoded on all threads, without the interpreter.
    ///
    /// Args:
    ///     indices: of the diagonals; those equal modulo `slots` are summed.
    ///     values: of shape (len(indices), period), the diagonals as rows. The period is a power of two; a diagonal
    ///         repeats its row up to `slots` values.
    ///     slots, level, n1, special, storage: as for the class.
    ///
    /// Raises:
    ///     as for the class; ParameterError: the period is not a power of two up to `slots`.
    #[staticmethod]
    #[pyo3(signature = (parameters, indices, values, slots=None, level=None, n1=None, special=None, *, storage="encoded"))]
    fn from_rows(
        py: Python<'_>,
        parameters: &PyParameters,
        indices: Vec<usize>,
        values: &Bound<'_, PyAny>,
        slots: Option<usize>,
        level: Option<usize>,
        n1: Option<usize>,
        special: Option<Vec<usize>>,
        storage: &str,
    ) -> Result<Self, Failure> {
        let shape = Shape::new(parameters, slots, level, n1, special, storage)?;
        let (values, period) = real_rows(values, indices.len())?;
        shape.make(py, parameters, Diagonals::Rows { indices: &indices, values: &values, period })
    }

    /// Bytes of the diagonals that a transform would keep.
    ///
    /// Args:
    ///     periods: for each diagonal the smallest power of two after which it repeats; the number of slots always
    ///         works.
    ///     primes: level + 1 + len(special).
    ///     storage: as for the class.
    ///     real: whether all diagonals are real.
    ///
    /// Raises:
    ///     ParameterError: a period is not a power of two up to 2^16, or the storage is unknown.
    #[staticmethod]
    #[pyo3(signature = (periods, primes, storage="encoded", *, real=true))]
    fn predicted_bytes(
        periods: Vec<usize>,
        primes: usize,
        storage: &str,
        real: bool,
    ) -> Result<usize, Failure> {
        Ok(parse_storage(storage)?.bytes(real, checked_periods(periods)?, primes))
    }

    /// The number of whole-polynomial transforms modulo one prime with as many butterflies as an evaluation needs,
    /// modulo each prime, for diagonals kept as coefficients. These have degree 2p for the period p, and at least 2^10.
    ///
    /// Args:
    ///     parameters: of the ciphertexts.
    ///     periods: as for `predicted_bytes`.
    ///
    /// Raises:
    ///     ParameterError: a period is not a power of two up to 2^16.
    #[staticmethod]
    fn coefficient_transforms(parameters: &PyParameters, periods: Vec<usize>) -> Result<f64, Failure> {
        let log_n = parameters.0.rlwe().log_n();
        Ok(linear_transform::coefficient_transforms(log_n, checked_periods(periods)?))
    }

    /// "encoded" or "coefficients": the storage of the diagonals.
    #[getter]
    fn storage(&self) -> &'static str {
        match self.transform.storage() {
            Storage::Encoded => "encoded",
            Storage::Coefficients => "coefficients",
        }
    }

    /// The keys it needs, at its level.
    #[pyo3(signature = (seeded=true))]
    fn key_specs(&self, seeded: bool) -> Result<Vec<PyKeySpec>, Failure> {
        let level = self.level();
        let alpha = (level + 1).max(self.transform.special().len());
        let shape =
            KeyShape { level: Some(level), alpha: Some(alpha), seeded, special: Some(self.special()) };
        let parameters = KeyParameters::Ckks(self.parameters.clone());
        let element = |steps: usize| rotation(self.parameters.0.rlwe(), steps as i64);
        let spec = |steps| PyKeySpec::make(&parameters, element(steps), shape.clone());
        self.rotations().into_iter().map(spec).collect()
    }

    fn __repr__(&self) -> String {
        let plan = self.transform.plan();
        format!(
            "LinearTransform({} of {}, level {}, {})",
            crate::classes::counted(plan.diagonals, "diagonal"),
            crate::classes::counted(self.slots(), "slot"),
            self.level(),
            crate::classes::counted(plan.rotations().len(), "rotation")
        )
    }
}

getters! { PyLinearTransform, self;
    /// The parameters of the encoding.
    parameters: PyParameters = self.parameters.clone();
    /// Number of slots.
    slots: usize = 1 << self.transform.log_slots();
    /// Level of its input ciphertexts.
    level: usize = self.transform.level();
    /// Number of possible baby steps.
    n1: usize = self.transform.plan().n1;
    /// Indices of the special primes of its keys.
    special: Vec<usize> = self.transform.special().to_vec();
    /// Rotations that need a key, ascending.
    rotations: Vec<usize> = self.transform.plan().rotations();
    /// Bytes of the kept diagonals: `predicted_bytes`.
    bytes: usize = self.transform.bytes();
}

/// Arguments of a transform besides its diagonals.
struct Shape {
    log_slots: u32,
    level: usize,
    n1: Option<usize>,
    special: Option<Vec<usize>>,
    storage: Storage,
}

impl Shape {
    fn new(
        parameters: &PyParameters,
        slots: Option<usize>,
        level: Option<usize>,
        n1: Option<usize>,
        special: Option<Vec<usize>>,
        storage: &str,
    ) -> Result<Self, Failure> {
        let log_slots = log_slots(&parameters.0, slots)?;
        let level = level.unwrap_or(parameters.0.max_level());
        parameters.0.rlwe().require_level(level)?;
        Ok(Self { log_slots, level, n1, special, storage: parse_storage(storage)? })
    }

    fn make(
        self,
        py: Python<'_>,
        parameters: &PyParameters,
        diagonals: Diagonals<'_>,
    ) -> Result<PyLinearTransform, Failure> {
        let Self { log_slots, level, n1, special, storage } = self;
        let transform = compute(py, || -> Result<_, Failure> {
            let rlwe = parameters.0.rlwe();
            let special = special.unwrap_or_else(|| {
                let alpha = KeySpec::best_alpha(rlwe, level);
                KeySpec::new(rlwe, KeyElement::Relinearization, level, alpha, true).special
            });
            let bits = special.iter().filter(|&&i| i < rlwe.prime_count()).map(|&i| rlwe.log2_prime(i)).sum();
            let digits = match n1 {
                Some(_) => 0,
                None => rlwe.widths().digits(level, level + 1, bits)?.len(),
            };
            let steps = |indices: Vec<usize>, slots: usize| match n1 {
                Some(n1) => BsgsPlan::new(indices, slots, n1),
                None => {
                    let shape = SwitchShape { level, digits, special: special.len() };
                    BsgsPlan::optimal(indices, slots, rlwe.log_n(), shape, usize::MAX)
                }
            };
            Ok(LinearTransform::with_steps(
                &parameters.0,
                diagonals,
                log_slots,
                level,
                &special,
                storage,
                steps,
            )?)
        })?;
        Ok(PyLinearTransform { parameters: parameters.clone(), transform: Arc::new(transform) })
    }
}

pub(crate) fn checked_periods(periods: Vec<usize>) -> Result<Vec<usize>, Failure> {
    let max = 1usize << (keywright_ring::MAX_LOG_N - 1);
    match periods.iter().find(|period| !period.is_power_of_two() || **period > max) {
        Some(&period) => Err(CircuitError::DiagonalPeriod { period, slots: max }.into()),
        None => Ok(periods),
    }
}

#[pymethods]
impl PyEvaluator {
    /// A transform applied to the slots, or the sum of several transforms of several ciphertexts: a block row of a
    /// matrix. One level less, at the scale of the input; ciphertexts of higher levels are lowered to the transforms'.
    ///
    /// Args:
    ///     a: a ciphertext, or a sequence of them.
    ///     transform: a transform, or one per ciphertext, with equal slots, levels and special primes.
    ///
    /// Raises:
    ///     ParameterError: the numbers of ciphertexts and transforms differ, or the transforms do not match.
    ///     MissingKeyError: a rotation has no key at the level.
    ///     LevelError: a ciphertext is below the level of the transforms.
    fn linear_transform(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        transform: &Bound<'_, PyAny>,
    ) -> Result<PyCiphertext, Failure> {
        let inputs = one_or_more::<PyCiphertext>(a)?;
        let transforms = one_or_more::<PyLinearTransform>(transform)?;
        if inputs.len() != transforms.len() {
            return Err(Refusal::Inputs { ciphertexts: inputs.len(), transforms: transforms.len() }.into());
        }
        self.run(py, |evaluator| {
            let pairs: Vec<_> =
                transforms.iter().zip(&inputs).map(|(t, a)| (&*t.get().transform, &a.get().0)).collect();
            let Some((_, first)) = pairs.first() else {
                return linear_transform::evaluate(evaluator, &pairs);
            };
            linear_transform::evaluate(&evaluator.of(first)?, &pairs)
        })
    }
}

/// An object of a class, or a sequence of them.
fn one_or_more<T: pyo3::PyClass>(value: &Bound<'_, PyAny>) -> Result<Vec<Py<T>>, Failure> {
    match value.cast::<T>() {
        Ok(one) => Ok(vec![one.clone().unbind()]),
        Err(_) => Ok(value.extract()?),
    }
}
