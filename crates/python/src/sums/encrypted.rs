use std::sync::Arc;

use keywright_aggregation::{EncryptedSum, EncryptedUpdate, SumParameters};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::stored::{not_pickled, read, serialized};
use crate::sums::parameters::PySumParameters;
use crate::threads::compute;

/// One client's encrypted vector, bound to session, round, client and weight: with other claims it does not decrypt.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "EncryptedUpdate", module = "keywright.federated", frozen)]
pub(crate) struct PyEncryptedUpdate {
    pub(super) parameters: SumParameters,
    pub(super) update: Arc<EncryptedUpdate>,
}

not_pickled!(PyEncryptedUpdate);
serialized! {
    PyEncryptedUpdate of &PySumParameters: "update", "An update", "update with the same bounds";
    self => &*self.update, &self.parameters;
    |py, source, parameters| {
        let update = Arc::new(read(py, source, &parameters.0)?);
        Ok(Self { parameters: parameters.0.clone(), update })
    }
}

#[pymethods]
impl PyEncryptedUpdate {
    /// The claimed run, 16 bytes.
    #[getter]
    fn session<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.update.binding().session)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.update)
    }
}

getters! { PyEncryptedUpdate, self;
    /// The claimed round.
    round: u32 = self.update.binding().round;
    /// The claimed client.
    client: u64 = self.update.binding().client;
    /// The claimed weight.
    weight: u32 = self.update.binding().weight;
    /// Number of values.
    count: usize = self.update.count();
}

/// A sum of updates, computed without a key.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "EncryptedSum", module = "keywright.federated", frozen)]
pub(crate) struct PyEncryptedSum {
    parameters: SumParameters,
    pub(super) sum: EncryptedSum,
}

not_pickled!(PyEncryptedSum);
serialized! {
    PyEncryptedSum of &PySumParameters: "sum", "A sum", "sum with the same bounds";
    self => &self.sum, &self.parameters;
    |py, source, parameters| {
        let sum = read(py, source, &parameters.0)?;
        Ok(Self { parameters: parameters.0.clone(), sum })
    }
}

#[pymethods]
impl PyEncryptedSum {
    /// Adds updates of one session and round, each client once.
    ///
    /// Raises:
    ///     AggregationError: they differ in session, round or number of values, or a client occurs twice.
    ///     ParameterError: there is none, or more than the modulus can hold.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        updates: Vec<Bound<'_, PyEncryptedUpdate>>,
        parameters: &PySumParameters,
    ) -> Result<Self, Failure> {
        let updates: Vec<_> = updates.iter().map(|update| update.get().update.clone()).collect();
        let sum = compute(py, || {
            EncryptedSum::of(&parameters.0, &updates.iter().map(AsRef::as_ref).collect::<Vec<_>>())
        })?;
        Ok(Self { parameters: parameters.0.clone(), sum })
    }

    /// The run of its updates, 16 bytes.
    #[getter]
    fn session<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.sum.session())
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.sum)
    }
}

getters! { PyEncryptedSum, self;
    /// The round of its updates.
    round: u32 = self.sum.round();
    /// Client and weight of every update, in the order in which they were added.
    contributors: Vec<(u64, u32)> = self.sum.contributors().iter().map(|c| (c.client, c.weight)).collect();
    /// Sum of the weights.
    total_weight: u64 = self.sum.total_weight();
    /// Number of values.
    count: usize = self.sum.count();
}
