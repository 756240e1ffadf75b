use std::sync::Arc;

use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::eval_mod::{eval_mod, inspect_input};
use keywright_circuits::bootstrapping::mod_raise::mod_raise;
use keywright_circuits::bootstrapping::{Bootstrapper, Stage};
use keywright_ckks::{Ciphertext, Decryptor, Evaluator};
use pyo3::prelude::*;

use crate::circuits::bootstrapper_plan::PyBootstrapperPlan;
use crate::circuits::plan_arguments::parse_kept;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::evaluator::PyEvaluator;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::secret_key::PySecretKey;
use crate::parameters::ckks::PyParameters;
use crate::stored::not_pickled;
use crate::threads::compute;

/// Bootstrapping with encoded matrices: restores the levels of a ciphertext and keeps its values.
///
/// It belongs to no key: evaluators of several owners may use it. `bootstrap` is the composition of the stages
/// `slots_to_coeffs`, `mod_raise`, `coeffs_to_slots` and `eval_mod`, each of which can be used alone. Before anything
/// is computed, each raises the following, with the stage's name as `stage` and the level of its input as
/// `stage_level`:
///
///     MissingKeyError: a key of `plan.required_keys` is missing.
///     MissingKeyError: the special primes of a key differ from those of its matrices.
///     LevelError: the ciphertext is below the stage's level.
///     ScaleError: its scale differs from the planned one by more than 1 part in 128.
///     OperandError: it has another number of slots, or slots where coefficients are required.
///     OperandError: it has degree 2.
///     MismatchError: it, or the evaluator, belongs to other parameters.
///
/// Values above what their ciphertext declares are not detected: their results are wrong. `inspect_input` checks them
/// for a holder of the secret.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     plan: the plan of the bootstrapping.
///     storage: how the matrices are kept. "encoded" is fastest, and takes up to a gigabyte at N = 2^16. "coefficients"
///         takes a tenth of that or less. "streamed" keeps nothing, and makes them for each use. `plan.diagonal_bytes`
///         gives the bytes. Results are the same.
///
/// Raises:
///     ParameterError: the storage is unknown.
///     EncodeError: coefficients to be kept are 2^62 or more.
#[pyclass(name = "Bootstrapper", module = "keywright", frozen)]
pub(crate) struct PyBootstrapper {
    plan: Py<PyBootstrapperPlan>,
    bootstrapper: Arc<Bootstrapper>,
}

/// Names the stage in errors, as the engine's own stage classes do.
fn named<T>(stage: Stage, level: usize, result: Result<T, CircuitError>) -> Result<T, Failure> {
    result.map_err(|error| match error {
        named @ CircuitError::Stage { .. } => named.into(),
        error => CircuitError::Stage { stage, level, source: Box::new(error) }.into(),
    })
}

impl PyBootstrapper {
    fn run(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        work: impl FnOnce(&Bootstrapper, &Evaluator<'_>) -> Result<Ciphertext, Failure> + Send,
    ) -> Result<PyCiphertext, Failure> {
        evaluator.with(py, |evaluator| work(&self.bootstrapper, evaluator)).map(PyCiphertext)
    }
}

not_pickled!(PyBootstrapper);

#[pymethods]
impl PyBootstrapper {
    #[new]
    #[pyo3(signature = (plan, *, storage="encoded"))]
    fn new(py: Python<'_>, plan: Py<PyBootstrapperPlan>, storage: &str) -> Result<Self, Failure> {
        let kept = parse_kept(storage)?;
        let bootstrapper =
            compute(py, || Bootstrapper::with_storage(&plan.get().parameters.0, &plan.get().plan, kept))?;
        Ok(Self { bootstrapper: Arc::new(bootstrapper), plan })
    }

    /// The plan of the bootstrapping.
    #[getter]
    fn plan(&self, py: Python<'_>) -> Py<PyBootstrapperPlan> {
        self.plan.clone_ref(py)
    }

    /// The same values at the output level and the parameters' scale.
    ///
    /// Args:
    ///     evaluator: with the keys of `plan.required_keys`.
    ///     ciphertext: `plan.slots` slots of values whose parts are at most 1, at the input level or above. Its scale
    ///         is that of the parameters. In the order "mod_raise_first" it is any scale up to
    ///         `plan.coefficients_scale` at level 0, and any scale above. Larger values, by their declared magnitude,
    ///         lose precision, which `Ciphertext.error_bound` of the result states; complex values of absolute value
    ///         up to the square root of 2 count as values whose parts are at most 1.
    ///
    /// Raises:
    ///     NoiseError: by their declared magnitude, values are so large that the result may be off by a tenth of it.
    ///     ParameterError: the bound on the error of a pass has fewer bits than `log_precision`, which the next pass
    ///         needs.
    fn bootstrap(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        ciphertext: &PyCiphertext,
    ) -> Result<PyCiphertext, Failure> {
        self.run(py, evaluator, |b, evaluator| Ok(b.bootstrap(evaluator, &ciphertext.0)?))
    }

    /// Bootstraps two ciphertexts of real values at once, with about two thirds of the work of two bootstraps of real
    /// values. They become the real and the imaginary parts of complex values. The plan is for the values "pair".
    ///
    /// Args:
    ///     evaluator: with the keys of `plan.required_keys`.
    ///     first: as for `bootstrap`, of real values of absolute value at most 1.
    ///     second: the same, at the same scale.
    ///
    /// Returns:
    ///     The two results of `bootstrap`.
    ///
    /// Raises:
    ///     ParameterError: the plan is of another kind.
    ///     OperandError: a ciphertext has complex values.
    fn bootstrap_pair(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        first: &PyCiphertext,
        second: &PyCiphertext,
    ) -> Result<(PyCiphertext, PyCiphertext), Failure> {
        let inputs = [&first.0, &second.0];
        let [first, second] =
            evaluator.with(py, |evaluator| self.bootstrapper.bootstrap_pair(evaluator, inputs))?;
        Ok((PyCiphertext(first), PyCiphertext(second)))
    }

    /// Bootstraps values in coefficients, without `slots_to_coeffs`, to the level at which `eval_mod` leaves them.
    ///
    /// Args:
    ///     ciphertext: coefficients of any level, at the scale `plan.coefficients_scale` within 1 part in 128. Of n
    ///         slots, slot j gets coefficient brv(j) N/2n as its real part, and N/2 + brv(j) N/2n as its imaginary
    ///         part; brv reverses the log2(n) bits of j.
    fn bootstrap_coefficients(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        ciphertext: &PyCiphertext,
    ) -> Result<PyCiphertext, Failure> {
        self.run(py, evaluator, |b, evaluator| Ok(b.bootstrap_coefficients(evaluator, &ciphertext.0)?))
    }

    /// Moves values in slots, at the plan's level of the stage or above, to coefficients.
    ///
    /// Coefficient brv(j) N/2n is the real part of slot j, N/2 + brv(j) N/2n its imaginary part; all others are 0. A
    /// client without a Fourier transform can read such a result.
    fn slots_to_coeffs(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        ciphertext: &PyCiphertext,
    ) -> Result<PyCiphertext, Failure> {
        self.run(py, evaluator, |b, evaluator| Ok(b.slots_to_coeffs().evaluate(evaluator, &ciphertext.0)?))
    }

    /// Raises the modulus from level 0 to the highest level used.
    ///
    /// The result has the scale q_0. Each of its coefficients is m / r + I, for the message m, the ratio r of q_0 to
    /// the input's scale, and a small integer I.
    ///
    /// Raises:
    ///     LevelError: the ciphertext is not at level 0.
    fn mod_raise(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        ciphertext: &PyCiphertext,
    ) -> Result<PyCiphertext, Failure> {
        self.run(py, evaluator, |b, evaluator| {
            named(Stage::ModRaise, 0, mod_raise(evaluator, &b.plan().mod_raise, &ciphertext.0))
        })
    }

    /// Moves coefficients to slots, as fractions of the range of `eval_mod`.
    ///
    /// Returns:
    ///     One ciphertext of n real values, for real values; one of 2n, real parts before imaginary parts, for complex
    ///         values in n < N/2 slots; two, of the real and of the imaginary parts, for N/2.
    fn coeffs_to_slots(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        ciphertext: &PyCiphertext,
    ) -> Result<Vec<PyCiphertext>, Failure> {
        let out = evaluator
            .with(py, |evaluator| self.bootstrapper.coeffs_to_slots().evaluate(evaluator, &ciphertext.0))?;
        Ok(out.into_iter().map(PyCiphertext).collect())
    }

    /// Removes the integers that `mod_raise` added, from one of the ciphertexts of `coeffs_to_slots`.
    ///
    /// Args:
    ///     ratio: q_0 divided by the scale of the input of `mod_raise`; by default that of the plan.
    #[pyo3(signature = (evaluator, ciphertext, ratio=None))]
    fn eval_mod(
        &self,
        py: Python<'_>,
        evaluator: &PyEvaluator,
        ciphertext: &PyCiphertext,
        ratio: Option<f64>,
    ) -> Result<PyCiphertext, Failure> {
        self.run(py, evaluator, |b, evaluator| {
            let (plan, level) = (b.plan(), b.plan().coeffs_to_slots.output_level());
            let ratio = ratio.unwrap_or(plan.ratio());
            named(
                Stage::EvalMod,
                level,
                eval_mod(evaluator, &plan.eval_mod, &ciphertext.0, ratio, plan.scale),
            )
        })
    }

    /// Decrypts an input of `eval_mod` and reports how much of its range is used, for diagnosing a failed bootstrap.
    ///
    /// The result depends on the secret: do not share it.
    ///
    /// Returns:
    ///     The largest absolute value of an integer, and the largest distance from one: the message in units of q_0.
    ///
    /// Raises:
    ///     EncodeError: a slot is outside the range, with its number as `index` and its `value`.
    fn inspect_input(
        &self,
        py: Python<'_>,
        secret: &PySecretKey,
        ciphertext: &PyCiphertext,
    ) -> Result<(usize, f64), Failure> {
        let plan = self.bootstrapper.plan();
        let level = plan.coeffs_to_slots.output_level();
        compute(py, || -> Result<_, Failure> {
            let decryptor = Decryptor::new(secret.parameters.ckks()?, &secret.key)?;
            let seen =
                named(Stage::EvalMod, level, inspect_input(&decryptor, &plan.eval_mod, &ciphertext.0))?;
            Ok((seen.integer, seen.message))
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "Bootstrapper(level {} -> {}, {} bytes)",
            self.input_level(),
            self.output_level(),
            self.bootstrapper.bytes()
        )
    }
}

getters! { PyBootstrapper, self;
    /// Parameters of the ciphertexts.
    parameters: PyParameters = self.plan.get().parameters.clone();
    /// Level at which ciphertexts are bootstrapped; higher ones are lowered to it.
    input_level: usize = self.bootstrapper.plan().input_level();
    /// Level of results.
    output_level: usize = self.bootstrapper.plan().output_level();
    /// Bytes of the kept matrices: `plan.diagonal_bytes`.
    bytes: usize = self.bootstrapper.bytes();
}
