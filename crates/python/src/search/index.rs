use std::sync::{PoisonError, RwLock};

use keywright_bfv::Evaluator;
use keywright_search::{Index, expansion_elements, query_values};
use keywright_thin_server::{read_query, search_parameters, write_scores};
use numpy::{
    AsSliceError, IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::array::Integers;
use crate::arguments::integers::integers;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::bfv::seeded_ciphertext::PyBfvSeededCiphertext;
use crate::errors::Failure;
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::parameters::bfv::PyBfvParameters;
use crate::search::answer::PySearchAnswer;
use crate::stored::not_pickled;
use crate::thin_client::parameters::PyClientParameters;
use crate::threads::compute;

/// Integer vectors in the clear that encrypted queries are compared with, two bytes a component.
///
/// Args:
///     parameters: of queries and answers, with an odd plaintext modulus t.
///     dimension: components of a vector, at most N.
///     max_norm2: largest squared norm of a vector. Scores are right while they are within t/2.
///
/// Raises:
///     ParameterError: t is even, or the dimension is out of range.
#[pyclass(name = "SearchIndex", module = "keywright.search", frozen)]
pub(crate) struct PySearchIndex {
    index: RwLock<Index>,
}

not_pickled!(PySearchIndex);

impl PySearchIndex {
    fn read_lock(&self) -> std::sync::RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places from Python; a negative one is past the end.
fn places(array: &PyReadonlyArray1<'_, i64>) -> Result<Vec<usize>, Failure> {
    let places = array.as_slice().map_err(PyErr::from)?;
    Ok(places.iter().map(|&place| usize::try_from(place).unwrap_or(usize::MAX)).collect())
}

#[integers]
#[pymethods]
impl PySearchIndex {
    #[new]
    fn new(parameters: &PyBfvParameters, dimension: usize, max_norm2: u64) -> Result<Self, Failure> {
        Ok(Self { index: RwLock::new(Index::new(&parameters.0, dimension, max_norm2)?) })
    }

    /// Writes vectors at places; the first place past the end makes the index longer. All or nothing is written.
    ///
    /// Args:
    ///     places: int64, one for each vector.
    ///     vectors: int16, a contiguous row for each.
    ///     addends: int64, what is added to the score of each; nothing if empty.
    ///
    /// Raises:
    ///     EncodeError: a vector's squared norm is above `max_norm2`.
    ///     ParameterError: the arrays do not match, or a place or an addend is out of range.
    fn write(
        &self,
        py: Python<'_>,
        places: PyReadonlyArray1<'_, i64>,
        vectors: PyReadonlyArray2<'_, i16>,
        addends: PyReadonlyArray1<'_, i64>,
    ) -> Result<(), Failure> {
        let places = self::places(&places)?;
        // A slice of columns one behind the other would hold other vectors.
        if !vectors.is_c_contiguous() {
            return Err(PyErr::from(AsSliceError).into());
        }
        let components = vectors.as_slice().map_err(PyErr::from)?;
        let addends = addends.as_slice().map_err(PyErr::from)?;
        compute(py, || {
            self.index.write().unwrap_or_else(PoisonError::into_inner).write(&places, components, addends)
        })
    }

    /// The vectors at places, an int16 row for each.
    ///
    /// Raises:
    ///     ParameterError: a place is past the end.
    fn read<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray1<'py, i64>,
    ) -> Result<Bound<'py, numpy::PyArray2<i16>>, Failure> {
        let (count, places) = (places.len(), self::places(&places)?);
        let vectors = compute(py, || self.read_lock().read(&places))?;
        Ok(vectors.into_pyarray(py).reshape([count, self.dimension()])?)
    }

    /// The encrypted inner products of a query with every place, plus the addends.
    ///
    /// Args:
    ///     query: `query_values` of the client's vector, encrypted in coefficients.
    ///     keys: of the client, one for each of `expansion_elements`.
    ///
    /// Raises:
    ///     ParameterError: the index is empty.
    ///     MismatchError, OperandError: the query does not fit the index.
    ///     MissingKeyError: a key is missing.
    ///     MismatchError: query and keys have different owners.
    ///     NoiseError: the answer could not be decrypted.
    fn answer(
        &self,
        py: Python<'_>,
        query: &PyBfvSeededCiphertext,
        keys: &PyEvaluationKeys,
    ) -> Result<PySearchAnswer, Failure> {
        let query = &query.0;
        keys.compute(py, |keys| {
            let index = self.read_lock();
            let parameters = index.parameters().clone();
            let answer = index.answer(&Evaluator::new(&parameters, keys)?, &query.expand())?;
            Ok::<_, Failure>(PySearchAnswer { parameters, answer })
        })
    }

    /// The same for a thin client: its answer, a ciphertext for each N places.
    ///
    /// Args:
    ///     query: from `read_query`.
    ///     keys: as for `answer`.
    ///     client: from `client_parameters`.
    ///
    /// Raises:
    ///     ParameterError, MismatchError, MissingKeyError, NoiseError: as for `answer`.
    fn answer_thin<'py>(
        &self,
        py: Python<'py>,
        query: &PyBfvCiphertext,
        keys: &PyEvaluationKeys,
        client: &PyClientParameters,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let (query, client) = (&query.0, &client.0);
        let answer = keys.compute(py, |keys| {
            let index = self.read_lock();
            let parameters = index.parameters().clone();
            Ok::<_, Failure>(write_scores(&index, &Evaluator::new(&parameters, keys)?, query, client)?)
        })?;
        Ok(PyBytes::new(py, &answer))
    }

    /// Reads a query of a thin client: integers in coefficients, in compact form.
    ///
    /// Args:
    ///     data: bytes of `thin.Client.encrypt`, with `dropped`.
    ///     client: from `client_parameters`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact ciphertext of that form.
    ///     MismatchError: it belongs to other parameters.
    fn read_query(
        &self,
        py: Python<'_>,
        data: &[u8],
        client: &PyClientParameters,
    ) -> Result<PyBfvCiphertext, Failure> {
        let ciphertext = compute(py, || read_query(data, self.read_lock().parameters(), &client.0))?;
        Ok(PyBfvCiphertext(ciphertext))
    }

    /// What thin clients need to encrypt queries and to decrypt scores.
    ///
    /// Args:
    ///     largest: largest absolute value of an integer of a query.
    ///
    /// Raises:
    ///     ParameterError: the integers are not far below t.
    fn client_parameters(&self, largest: u32) -> Result<PyClientParameters, Failure> {
        Ok(PyClientParameters(search_parameters(&self.read_lock(), largest)?))
    }

    /// Galois elements of the keys that queries of a dimension need.
    #[staticmethod]
    fn expansion_elements(parameters: &PyBfvParameters, dimension: usize) -> Result<Vec<u64>, Failure> {
        Ok(expansion_elements(parameters.0.rlwe().log_n(), dimension))
    }

    /// The integers to encrypt in coefficients for a query of integers.
    ///
    /// Raises:
    ///     ParameterError: t is even, or there are no integers or more than N.
    #[staticmethod]
    fn query_values<'py>(
        py: Python<'py>,
        parameters: &PyBfvParameters,
        query: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let query = Integers::vector(query)?;
        Ok(query_values(&parameters.0, &query)?.into_pyarray(py))
    }

    /// Components of a vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.read_lock().dimension()
    }

    /// Places in use.
    #[getter]
    fn rows(&self) -> usize {
        self.read_lock().rows()
    }

    /// Bytes of the vectors in memory.
    #[getter]
    fn bytes(&self) -> usize {
        self.read_lock().bytes()
    }

    fn __repr__(&self) -> String {
        format!("Search{:?}", *self.read_lock())
    }
}
