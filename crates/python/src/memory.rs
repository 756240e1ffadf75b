//! What the engine's buffers take, and what operations will take of memory while they run.

use keywright_circuits::linear_transform::{ScratchShape, transformed_words};
use keywright_circuits::polynomial::PolynomialPlan;
use keywright_ring::{buffer_use, reset_peak, trim_cache};
use keywright_rlwe::SwitchLayout;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::circuits::bootstrapper_plan::PyBootstrapperPlan;
use crate::circuits::linear_transform::checked_periods;
use crate::circuits::plan_arguments::parse_kept;
use crate::circuits::polynomial::plan;
use crate::errors::Failure;
use crate::keys::spec::PyKeySpec;
use crate::parameters::ckks::PyParameters;
use crate::threads::thread_count;

/// Bytes of the buffers of at least 8 KiB in which ciphertexts, keys, diagonals and scratch are: "live" are in use, "idle" are kept for the
/// next ones, "peak" is the most that were in use at a time since `reset_memory_peak`, or the start.
#[pyfunction]
pub(crate) fn memory_use(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (now, out) = (buffer_use(), PyDict::new(py));
    out.set_item("live", now.live)?;
    out.set_item("idle", now.idle)?;
    out.set_item("peak", now.peak)?;
    Ok(out)
}

/// Begins anew to look for the peak of `memory_use`.
#[pyfunction]
pub(crate) fn reset_memory_peak() {
    reset_peak();
}

/// Gives idle buffers, and what the system's allocator has to spare, back to the operating system.
#[pyfunction]
pub(crate) fn trim_memory(py: Python<'_>) {
    py.detach(trim_cache);
}

/// Bytes of idle buffers that a process keeps at most, whose buffers in use have been so many at most.
#[pyfunction]
pub(crate) fn recycled_bytes(peak: usize) -> usize {
    keywright_ring::recycled_bytes(peak)
}

/// Bytes that `Evaluator.linear_transform` holds while it runs, its result among them and its inputs, keys and diagonals not.
///
/// Args:
///     parameters: of the ciphertexts.
///     level: of the transforms.
///     special: indices of their special primes.
///     babies: baby steps other than 0, of all transforms of a block row.
///     giants: giant steps of all of them, 0 among them.
///     inputs: transforms of a block row.
///     above: inputs above the level, of which copies are made.
///     periods: of the diagonals that are kept as coefficients.
///     threads: that compute; those of the process by default.
///
/// Raises:
///     LevelError: the level does not exist.
///     ParameterError: a special prime is none, a period is not a power of two.
#[pyfunction]
#[pyo3(signature = (parameters, level, special, *, babies, giants, inputs=1, above=0, periods=None, threads=None))]
pub(crate) fn transform_scratch(
    py: Python<'_>,
    parameters: &PyParameters,
    level: usize,
    special: Vec<usize>,
    babies: usize,
    giants: usize,
    inputs: usize,
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
        tiers: inputs,
        switched: babies,
        lifted: inputs,
        giants,
        rotated: giants.saturating_sub(1),
        chained: false,
        transformed: transformed_words(checked_periods(periods.unwrap_or_default())?),
    };
    Ok(shape.bytes(rlwe.log_n(), &layout, thread_count(py, threads)?))
}

/// Bytes that `Evaluator.polynomial` holds while it runs, its result among them and its input and keys not.
///
/// Args:
///     relinearization: a key, which says the parameters too.
///     level: of the input.
///     coefficients: by ascending degree.
///     basis: "monomial", or "chebyshev" on [-1, 1].
///     threads: that compute; those of the process by default.
///
/// Raises:
///     ParameterError: another basis, a coefficient that is not finite.
///     LevelError: the level is above that of the key, or below the depth of the polynomial.
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

#[pymethods]
impl PyKeySpec {
    /// Bytes that a key switch with such a key holds while it runs, its results among them and its input and keys not. A product of
    /// ciphertexts holds three polynomials beside.
    ///
    /// Args:
    ///     level: of the ciphertext; that of the key by default.
    ///     keys: how many keys of this shape serve one ciphertext at once.
    ///     rescale: whether the switch ends with a rescaling, as in `multiply`.
    ///     threads: that compute; those of the process by default.
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

#[pymethods]
impl PyBootstrapperPlan {
    /// For each stage, in order, the bytes that it holds while it runs, its results among them and its input, keys and kept matrices not.
    ///
    /// Args:
    ///     storage: how a `Bootstrapper` keeps the matrices.
    ///     threads: that compute; those of the process by default.
    ///
    /// Raises:
    ///     ParameterError: the storage is not known.
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
