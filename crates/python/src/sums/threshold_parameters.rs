use std::sync::Arc;

use keywright_aggregation::threshold::{self, MAX_SETS, ThresholdParameters};
use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::RlweCiphertext;
use keywright_wire::{Wire, sequence_from_bytes, sequence_to_bytes};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::stored::not_pickled;
use crate::threads::compute;

/// Ring, modulus and smudging for sums that a threshold of parties decrypts together. Parties are numbered from 1.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parties: number of parties in the set-up, 2 to 1024.
///     threshold: number of parties that decrypt together, 2 to `parties`.
///     max_inputs: most updates of one sum.
///     magnitude: largest absolute value of an integer of one update.
///     max_values: most integers of one update; smudging hides all of them.
///
/// Raises:
///     ParameterError: a number is outside its range, or no modulus holds the sums.
#[pyclass(name = "ThresholdParameters", module = "keywright.federated", frozen)]
#[derive(Clone)]
pub(crate) struct PyThresholdParameters(pub(super) Arc<ThresholdParameters>);

impl PyThresholdParameters {
    /// The ciphertexts of an update or a sum.
    pub(super) fn vector(&self, data: &[u8]) -> Result<Vec<RlweCiphertext>, Failure> {
        Ok(sequence_from_bytes(data, self.0.rlwe(), self.0.chunks(self.0.max_values() as usize))?)
    }

    /// A half of a joint key, or a dealt share.
    pub(super) fn polynomial(&self, data: &[u8]) -> Result<Poly<Evaluation>, Failure> {
        Ok(Poly::from_bytes(data, self.0.rlwe())?)
    }
}

not_pickled!(PyThresholdParameters);

#[integers]
#[pymethods]
impl PyThresholdParameters {
    #[new]
    #[pyo3(signature = (parties, threshold, *, max_inputs, magnitude, max_values))]
    fn new(
        py: Python<'_>,
        parties: u32,
        threshold: u32,
        max_inputs: u32,
        magnitude: u64,
        max_values: u32,
    ) -> Result<Self, Failure> {
        let make = || ThresholdParameters::new(parties, threshold, max_inputs, magnitude, max_values);
        Ok(Self(Arc::new(py.detach(make)?)))
    }

    /// Most sets of parties that one party answers for a sum.
    #[classattr]
    const MAX_SETS: u32 = MAX_SETS;

    /// Adds encrypted updates. Needs no key.
    ///
    /// Raises:
    ///     FormatError, MismatchError: bytes that are not a whole, intact update.
    ///     ParameterError: none, too many, or updates of different lengths.
    fn add<'py>(&self, py: Python<'py>, updates: Vec<Vec<u8>>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = compute(py, || -> Result<_, Failure> {
            let vectors = updates.iter().map(|data| self.vector(data)).collect::<Result<Vec<_>, _>>()?;
            let sum = threshold::add(&self.0, &vectors.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            Ok(sequence_to_bytes(&sum, self.0.rlwe())?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Refuses bytes that are not a public half of a joint key.
    ///
    /// Raises:
    ///     FormatError, MismatchError: they are invalid.
    ///     ParameterError: it has another shape.
    fn check_half(&self, py: Python<'_>, half: &[u8]) -> Result<(), Failure> {
        py.detach(|| Ok(threshold::require_shape(&self.0, &self.polynomial(half)?)?))
    }

    /// Refuses bytes that are not an update of `count` integers.
    ///
    /// Raises:
    ///     FormatError, MismatchError: they are invalid.
    ///     ParameterError: it has another number of ciphertexts.
    fn check_update(&self, py: Python<'_>, update: &[u8], count: usize) -> Result<(), Failure> {
        py.detach(|| Ok(threshold::require_update(&self.0, &self.vector(update)?, count)?))
    }

    /// Refuses bytes that are not a partial decryption of a sum of `count` integers. Only all of them together show
    /// whether it is right.
    ///
    /// Raises:
    ///     FormatError, MismatchError: they are invalid.
    ///     ParameterError: it has another shape.
    fn check_partial(&self, py: Python<'_>, partial: &[u8], count: usize) -> Result<(), Failure> {
        py.detach(|| {
            let chunks = self.0.chunks(count);
            let parts: Vec<Poly<Evaluation>> = sequence_from_bytes(partial, self.0.rlwe(), chunks)?;
            Ok(threshold::require_partial(&self.0, &parts, count)?)
        })
    }

    /// The integers of a sum, exactly, from the partial decryptions of as many parties as the threshold.
    ///
    /// Args:
    ///     sum: the partially decrypted sum.
    ///     partials: one of every active party.
    ///     inputs: number of updates in the sum.
    ///     count: number of integers.
    ///
    /// Raises:
    ///     AggregationError: the parts do not belong to the sum, or a party deviated.
    ///     FormatError, ParameterError: bytes that are not such parts.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        sum: &[u8],
        partials: Vec<Vec<u8>>,
        inputs: u32,
        count: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let values = compute(py, || -> Result<_, Failure> {
            let sum = self.vector(sum)?;
            let read = |data: &Vec<u8>| sequence_from_bytes(data, self.0.rlwe(), sum.len());
            let partials: Vec<Vec<Poly<Evaluation>>> = partials.iter().map(read).collect::<Result<_, _>>()?;
            let partials: Vec<_> = partials.iter().map(Vec::as_slice).collect();
            Ok(threshold::finish(&self.0, &sum, &partials, inputs, count)?)
        })?;
        Ok(values.to_vec().into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!(
            "ThresholdParameters({} of {} parties, N = 2^{}, log Q = {:.1}, smudging 2^{}, 128-bit classical)",
            self.0.threshold(),
            self.0.parties(),
            self.0.rlwe().log_n(),
            self.log_q(),
            self.0.smudging_bits(),
        )
    }
}

getters! { PyThresholdParameters, self;
    /// Number of parties of the set-up.
    parties: u32 = self.0.parties();
    /// Number of parties that decrypt together.
    threshold: u32 = self.0.threshold();
    /// log2 of the ring degree.
    log_n: u32 = self.0.rlwe().log_n();
    /// log2 of the modulus.
    log_q: f64 = self.0.rlwe().log2_q(self.0.rlwe().max_level());
    /// log2 of the range of smudging, which leaves a statistical distance of 2^-40 over all values of a sum.
    smudging_bits: u32 = self.0.smudging_bits();
}
