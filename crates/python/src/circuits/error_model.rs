use keywright_circuits::linear_transform::{BsgsPlan, SwitchErrors, diagonal_variance};
use keywright_circuits::polynomial::rounding_gains;
use keywright_ckks::{Evaluator, Packing};
use keywright_rlwe::noise::{self, Variance};
use pyo3::prelude::*;

use crate::arguments::array::{Numbers, log_slots};
use crate::arguments::integers::integers;
use crate::circuits::polynomial::plan;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::parameters::ckks::PyParameters;
use crate::stored::not_pickled;

/// Variances of the errors that operations add, computed by the engine for keys that need not exist
/// (`EvaluationKeys.outline`).
///
/// Every variance is a pair `(plain, secret)`, of one coefficient. With `X` the squared absolute value of the secret at
/// a slot divided by its mean, the variance there is `plain + secret X`. `deviation_unit` converts its square root to a
/// part of a slot, in units of the message.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: of the ciphertexts: those of the keys, or of one of their subrings for operations in that ring.
///     keys: those that the operations would use.
///
/// Raises:
///     MismatchError: the keys are of other parameters.
#[pyclass(name = "ErrorModel", module = "keywright", frozen)]
pub(crate) struct PyErrorModel {
    parameters: PyParameters,
    keys: Py<PyEvaluationKeys>,
}

type Pair = (f64, f64);

fn pair(variance: Variance) -> Pair {
    (variance.plain, variance.secret)
}

not_pickled!(PyErrorModel);

#[integers]
#[pymethods]
impl PyErrorModel {
    #[new]
    fn new(parameters: &PyParameters, keys: Py<PyEvaluationKeys>) -> Result<Self, Failure> {
        Evaluator::new(&parameters.0, &keys.get().snapshot())?;
        Ok(Self { parameters: parameters.clone(), keys })
    }

    /// The error in each part of a slot, in units of a message at a scale, that a coefficient error of deviation 1
    /// causes.
    ///
    /// Raises:
    ///     ParameterError: the number of slots is illegal.
    fn deviation_unit(&self, slots: usize, scale: f64) -> Result<f64, Failure> {
        let packing = Packing::Slots { log_slots: log_slots(&self.parameters.0, Some(slots))? };
        Ok((packing.spread() / 2.0).sqrt() / scale)
    }

    /// Variance of a fresh encryption, with the public key or with the secret one, including the rounding of its
    /// encoding.
    #[pyo3(signature = (public=false))]
    fn encryption(&self, public: bool) -> Pair {
        let encoding = Variance { plain: 1.0 / 12.0, secret: 0.0 };
        let fresh = if public {
            noise::fresh_public_parts(self.parameters.0.rlwe())
        } else {
            Variance { plain: noise::fresh_symmetric(), secret: 0.0 }
        };
        pair(fresh + encoding)
    }

    /// Variance of a rotation to the left of a ciphertext with this many slots at a level, including all its hops.
    ///
    /// Raises:
    ///     MissingKeyError, MismatchError: as for `Evaluator.rotate`.
    fn rotation(&self, steps: i64, slots: usize, level: usize) -> Result<Pair, Failure> {
        let log_slots = log_slots(&self.parameters.0, Some(slots))?;
        let keys = self.keys.get().snapshot();
        let evaluator = Evaluator::new(&self.parameters.0, &keys)?;
        Ok(pair(evaluator.rotation_variance(steps, log_slots, level)?))
    }

    /// Variance of a conjugation at a level, including all its hops.
    ///
    /// Raises:
    ///     MissingKeyError, MismatchError: as for `Evaluator.conjugate`.
    fn conjugation(&self, level: usize) -> Result<Pair, Failure> {
        let keys = self.keys.get().snapshot();
        Ok(pair(Evaluator::new(&self.parameters.0, &keys)?.conjugation_variance(level)?))
    }

    /// Variance of a switch from the ring of degree 2^source to that of degree 2^log_n, at a level.
    ///
    /// Raises:
    ///     MissingKeyError: as for `Evaluator.switch_ring`.
    ///     ParameterError: the parameters have no such ring.
    fn switch_ring(&self, source: u32, log_n: u32, level: usize) -> Result<Pair, Failure> {
        let keys = self.keys.get().snapshot();
        let evaluator = Evaluator::new(&self.parameters.0, &keys)?;
        Ok(pair(evaluator.switch_ring_variance(source, log_n, level)?))
    }

    /// Variances of a linear transform of one or several ciphertexts. For each ciphertext and each of its baby steps,
    /// ascending: the error added to the rotated ciphertext before the diagonals multiply it. Then the error added to
    /// the result. Does not include `diagonal`.
    ///
    /// Args:
    ///     diagonals: for each ciphertext the indices of its diagonals.
    ///     slots: of the ciphertexts.
    ///     n1: number of possible baby steps.
    ///     level: of the ciphertexts.
    ///     special: indices of the primes that the transform's key switches divide by.
    ///
    /// Raises:
    ///     MissingKeyError, MismatchError: as for `Evaluator.linear_transform`.
    ///     ParameterError: n1 is illegal, or there are no diagonals.
    #[expect(clippy::type_complexity, reason = "pairs of pairs, as Python has them")]
    fn linear_transform(
        &self,
        diagonals: Vec<Vec<usize>>,
        slots: usize,
        n1: usize,
        level: usize,
        special: Vec<usize>,
    ) -> Result<(Vec<Vec<(usize, Pair)>>, Pair), Failure> {
        let plans = diagonals
            .into_iter()
            .map(|indices| BsgsPlan::new(indices, slots, n1))
            .collect::<Result<Vec<_>, _>>()?;
        let keys = self.keys.get().snapshot();
        let evaluator = Evaluator::new(&self.parameters.0, &keys)?;
        let errors = SwitchErrors::new(&evaluator, &plans, level, &special)?;
        let babies = plans.iter().zip(errors.babies).map(|(plan, variances)| {
            plan.babies.iter().copied().zip(variances.into_iter().map(pair)).collect()
        });
        Ok((babies.collect(), pair(errors.end)))
    }

    /// Variance of each part of every slot of an encoded diagonal, for a transform at a level.
    ///
    /// Args:
    ///     period: of its entries, a power of two.
    ///     level: of the transform.
    ///
    /// Raises:
    ///     LevelError: there is no such level.
    fn diagonal(&self, period: usize, level: usize) -> Result<f64, Failure> {
        let rlwe = self.parameters.0.rlwe();
        rlwe.require_level(level)?;
        Ok(diagonal_variance(period, rlwe.log2_prime(level).exp2()) / 2.0)
    }

    /// The factor by which the evaluation of a polynomial amplifies a rounding (`rescaling`) at scale 1, at each of
    /// some values of the input.
    ///
    /// Args:
    ///     coefficients, basis: as for `Evaluator.polynomial`, on [-1, 1].
    ///     level, scale: of the input; the result has its scale.
    ///     values: real.
    ///
    /// Raises:
    ///     LevelError: there are too few levels.
    ///     ParameterError: another basis, a coefficient that is not finite.
    fn polynomial(
        &self,
        coefficients: &Bound<'_, PyAny>,
        basis: &str,
        level: usize,
        scale: f64,
        values: &Bound<'_, PyAny>,
    ) -> Result<Vec<f64>, Failure> {
        let values = Numbers::real_vector(values)?;
        let plan = plan(coefficients, basis)?;
        Ok(rounding_gains(&plan, self.parameters.0.rlwe(), level, scale, scale, &values)?)
    }
}

getters! { PyErrorModel, self;
    /// The parameters of the ciphertexts.
    parameters: PyParameters = self.parameters.clone();
    /// Variance of a rescaling, at the scale after it. A relinearization before it adds nothing of that size, since it
    /// is divided by the prime.
    rescaling: Pair = pair(noise::division_parts(self.parameters.0.rlwe()));
}
