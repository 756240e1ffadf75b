//! Memory of the engine's buffers, and predicted memory of operations.

use keywright_circuits::linear_transform::{ScratchShape, transformed_words};
use keywright_circuits::polynomial::PolynomialPlan;
use keywright_ring::{buffer_use, reset_peak, trim_cache};
use keywright_rlwe::SwitchLayout;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::integers::integers;
use crate::circuits::bootstrapper_plan::PyBootstrapperPlan;
use crate::circuits::linear_transform::checked_periods;
use crate::circuits::plan_arguments::parse_kept;
use crate::circuits::polynomial::plan;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::descriptions::spec::PyKeySpec;
use crate::parameters::ckks::PyParameters;
use crate::threads::thread_count;

/// Bytes of the buffers of at least 8 KiB that hold ciphertexts, keys, diagonals and scratch: "live" bytes are in use,
/// "idle" bytes are kept for reuse, and "peak" is the most in use at a time since `reset_memory_peak`, or the start.
#[pyfunction]
pub(crate) fn memory_use(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (now, out) = (buffer_use(), PyDict::new(py));
    out.set_item("live", now.live)?;
    out.set_item("idle", now.idle)?;
    out.set_item("peak", now.peak)?;
    Ok(out)
}

/// Resets the peak of `memory_use`.
#[pyfunction]
pub(crate) fn reset_memory_peak() {
    reset_peak();
}

/// Returns idle buffers, and what the system's allocator can spare, to the operating system.
#[pyfunction]
pub(crate) fn trim_memory(py: Python<'_>) {
    py.detach(trim_cache);
}

/// Whether the process keeps freed blocks of up to 32 MiB that are no buffers, such as arrays. At first it does not:
/// blocks of 128 KiB and more go back to the operating system at once.
#[pyfunction]
pub(crate) fn keep_large_blocks(kept: bool) {
    keywright_ring::keep_large_blocks(kept);
}

/// The most bytes of idle buffers that a process keeps, given the peak of its buffers in use.
#[integers]
#[pyfunction]
pub(crate) fn recycled_bytes(peak: usize) -> usize {
    keywright_ring::recycled_bytes(peak)
}

/// Peak bytes of `Evaluator.linear_transform`, including its result but not its inputs, keys and diagonals.
///
/// Args:
///     parameters: of the ciphertexts.
///     level: of the transforms.
///     special: indices of their special primes.
///     babies: baby steps other than 0, of all transforms of a block row.
///     giants: giant steps of all of them, including 0.
///     inputs: transforms of a block row.
///     made: ciphertexts that are made from the inputs before baby steps.
///     decomposed: decompositions of these and of the inputs; one for each by default.
///     above: inputs above the level, which are copied.
///     periods: of the diagonals kept as coefficients.
///     threads: number of computing threads; those of the process by default.
///
/// Raises:
///     LevelError: the level does not exist.
///     ParameterError: a special prime does not exist, or a period is not a power of two.
#[integers]
#[pyfunction]
#[pyo3(signature = (parameters, level, special, *, babies, giants, inputs=1, made=0, decomposed=None, above=0, periods=None, threads=None))]
pub(crate) fn transform_scratch(
    py: Python<'_>,
    parameters: &PyParameters,
    level: usize,
    special: Vec<usize>,
    babies: usize,
    giants: usize,
    inputs: usize,
    made: usize,
    decomposed: Option<usize>,
    above: usize,
    periods: Option<Vec<usize>>,
    threads: Option<usize>,
) -> Result<usize, Failure> {
    let rlwe = parameters.0.rlwe();
    rlwe.require_level(level)?;
    let known = special.iter().filter(|&&i| i < rlwe.prime_count());
    let digits = rlwe.widths().digits(level, level + 1, known.map(|&i| rlwe.log2_prime(i)).sum())?;
    let layout = SwitchLayout { level, digits, special, merged: Vec::new(), raises: false };
    let shape = ScratchShape {
        above,
        tiers: inputs + made,
        decomposed: decomposed.unwrap_or(inputs + made),
        switched: babies,
        lifted: inputs,
        giants,
        rotated: giants.saturating_sub(1),
        chained: false,
        transformed: transformed_words(checked_periods(periods.unwrap_or_default())?),
    };
    Ok(shape.bytes(rlwe.log_n(), &layout, thread_count(py, threads)?))
}

/// Peak bytes of `Evaluator.polynomial`, including its result but not its input and keys.
///
/// Args:
///     relinearization: a key, which also gives the parameters.
///     level: of the input.
///     coefficients: by ascending degree.
///     basis: "monomial", or "chebyshev" on [-1, 1].
///     threads: number of computing threads; those of the process by default.
///
/// Raises:
///     ParameterError: another basis, a coefficient that is not finite.
///     LevelError: the level is above that of the key, or below the depth of the polynomial.
#[integers]
#[pyfunction]
#[pyo3(signature = (relinearization, level, coefficients, basis="monomial", *, threads=None))]
pub(crate) fn polynomial_scratch(
    py: Python<'_>,
    relinearization: &PyKeySpec,
    level: usize,
    coefficients: &Bound<'_, PyAny>,
    basis: &str,
    threads: Option<usize>,
) -> Result<usize, Failure> {
    let spec = &relinearization.spec;
    let rlwe = relinearization.parameters.rlwe().ring_named(spec.subring)?;
    let plan: PolynomialPlan = plan(coefficients, basis)?;
    spec.best_layout(rlwe, level, false)?;
    if plan.depth() > level {
        let (operation, needed) = ("polynomial evaluation", plan.depth());
        return Err(keywright_ckks::CkksError::LevelsExhausted { operation, needed, available: level }.into());
    }
    let threads = thread_count(py, threads)?;
    let limbs = |level: usize| {
        spec.best_layout(rlwe, level, true).map_or(0, |layout| layout.switch_limbs(1, true, threads))
    };
    Ok(plan.scratch_limbs(level, &limbs) * (8 << rlwe.log_n()))
}

#[integers]
#[pymethods]
impl PyKeySpec {
    /// Peak bytes of a key switch with such a key, including its results but not its input and keys. A product of
    /// ciphertexts holds three more polynomials.
    ///
    /// Args:
    ///     level: of the ciphertext; that of the key by default.
    ///     keys: number of keys of this shape that serve one ciphertext at once.
    ///     rescale: whether the switch ends with a rescaling, as in `multiply`.
    ///     threads: number of computing threads; those of the process by default.
    ///
    /// Raises:
    ///     LevelError: the level is above that of the key.
    #[pyo3(signature = (level=None, *, keys=1, rescale=false, threads=None))]
    fn scratch_bytes(
        &self,
        py: Python<'_>,
        level: Option<usize>,
        keys: usize,
        rescale: bool,
        threads: Option<usize>,
    ) -> Result<usize, Failure> {
        let rlwe = self.parameters.rlwe().ring_named(self.spec.subring)?;
        let layout = self.spec.best_layout(rlwe, level.unwrap_or(self.spec.level), rescale)?;
        Ok(layout.switch_limbs(keys, rescale, thread_count(py, threads)?) * (8 << rlwe.log_n()))
    }
}

#[integers]
#[pymethods]
impl PyBootstrapperPlan {
    /// For each stage, in order, the peak bytes of its buffers, including its results but not its input, keys and kept
    /// matrices.
    ///
    /// Args:
    ///     storage: of the matrices in a `Bootstrapper`.
    ///     threads: number of computing threads; those of the process by default.
    ///
    /// Raises:
    ///     ParameterError: the storage is unknown.
    #[pyo3(signature = (storage="encoded", *, threads=None))]
    fn scratch_bytes<'py>(
        &self,
        py: Python<'py>,
        storage: &str,
        threads: Option<usize>,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        let (kept, threads) = (parse_kept(storage)?, thread_count(py, threads)?);
        let out = PyDict::new(py);
        for (stage, bytes) in self.plan.scratch_bytes(&self.parameters.0, kept, threads)? {
            out.set_item(stage.name(), bytes)?;
        }
        Ok(out)
    }
}

getters! { PyBootstrapperPlan, self;
    /// Peak bytes of the numbers from which the matrices of a stage are made, for each use if they are "streamed".
    /// They are not buffers, and idle buffers make no room for them.
    making_bytes: usize = self.plan.making_bytes();
}
