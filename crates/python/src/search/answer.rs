use keywright_bfv::BfvParameters;
use keywright_search::Answer;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::secret_key::PySecretKey;
use crate::parameters::bfv::PyBfvParameters;
use crate::stored::{known, not_pickled, read, serialized};
use crate::threads::compute;

/// The encrypted scores of all places of an index.
#[pyclass(name = "SearchAnswer", module = "keywright.search", frozen)]
pub(crate) struct PySearchAnswer {
    pub(super) parameters: BfvParameters,
    pub(super) answer: Answer,
}

not_pickled!(PySearchAnswer);
serialized! {
    PySearchAnswer of &PyBfvParameters: "answer", "An answer", "answer";
    self => &self.answer, &self.parameters;
    |py, source, parameters| {
        let answer = read(py, source, &parameters.0)?;
        Ok(Self { parameters: parameters.0.clone(), answer })
    }
}

#[pymethods]
impl PySearchAnswer {
    /// The scores as int64, one for each place, centred: above -t/2 and at most t/2.
    ///
    /// Raises:
    ///     MismatchError: the secret belongs to other parameters.
    ///     MismatchError: another secret made the query.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        secret: &PySecretKey,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let scores = compute(py, || self.answer.decrypt(&self.parameters, &secret.key))?;
        Ok(scores.into_pyarray(py))
    }

    /// The identity of the secret key that decrypts it, 32 hexadecimal digits; None if unknown.
    #[getter]
    fn key_identity(&self) -> Option<String> {
        known(self.answer.key)
    }

    fn __repr__(&self) -> String {
        format!("Search{:?}", self.answer)
    }
}

getters! { PySearchAnswer, self;
    /// Number of scores.
    rows: usize = self.answer.shape.rows;
}
