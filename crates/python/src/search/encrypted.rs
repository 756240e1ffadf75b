use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use keywright_bfv::{BfvParameters, Evaluator};
use keywright_search::EncryptedIndex;
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::bfv::seeded_ciphertext::PyBfvSeededCiphertext;
use crate::errors::Failure;
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::parameters::bfv::PyBfvParameters;
use crate::search::answer::PySearchAnswer;
use crate::stored::not_pickled;
use crate::threads::compute;

/// Integer vectors that their owner encrypted, in blocks of N: a ciphertext of each component, with one vector in each
/// coefficient.
///
/// Args:
///     parameters: of ciphertexts, queries and answers, with an odd plaintext modulus t.
///     dimension: components of a vector, at most N.
///     level: of the ciphertexts of vectors.
///
/// Raises:
///     ParameterError: t is even, or the dimension or the level is out of range.
#[pyclass(name = "EncryptedSearchIndex", module = "keywright.search", frozen)]
pub(crate) struct PyEncryptedSearchIndex {
    parameters: BfvParameters,
    index: RwLock<EncryptedIndex>,
}

not_pickled!(PyEncryptedSearchIndex);

impl PyEncryptedSearchIndex {
    fn read_lock(&self) -> RwLockReadGuard<'_, EncryptedIndex> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[integers]
#[pymethods]
impl PyEncryptedSearchIndex {
    #[new]
    fn new(parameters: &PyBfvParameters, dimension: usize, level: usize) -> Result<Self, Failure> {
        let index = RwLock::new(EncryptedIndex::new(&parameters.0, dimension, level)?);
        Ok(Self { parameters: parameters.0.clone(), index })
    }

    /// Adds vectors to one block, or nothing if a ciphertext is refused.
    ///
    /// Args:
    ///     rows: number of vectors. The first is in coefficient `self.rows % N`, the next ones follow; all other
    ///         coefficients are 0.
    ///     ciphertexts: one for each component, and one more of what is added to the scores if it is not 0.
    ///
    /// Raises:
    ///     ParameterError: their number or a level is another, or the block has no room for as many vectors.
    ///     MismatchError, OperandError: a ciphertext does not fit the index.
    ///     NoiseError: the noise of so many sums could not be decrypted.
    fn append(
        &self,
        py: Python<'_>,
        rows: usize,
        ciphertexts: Vec<PyRef<'_, PyBfvCiphertext>>,
    ) -> Result<(), Failure> {
        let ciphertexts = ciphertexts.iter().map(|ciphertext| ciphertext.0.clone()).collect();
        compute(py, || self.index.write().unwrap_or_else(PoisonError::into_inner).append(rows, ciphertexts))
    }

    /// The ciphertexts of a block: of its components, then that of the addends if there is one.
    ///
    /// Raises:
    ///     ParameterError: there is no such block.
    fn read(&self, py: Python<'_>, block: usize) -> Result<Vec<PyBfvCiphertext>, Failure> {
        let ciphertexts = compute(py, || self.read_lock().read(block))?;
        Ok(ciphertexts.into_iter().map(PyBfvCiphertext).collect())
    }

    /// The encrypted inner products of a query with every vector, plus the addends.
    ///
    /// Args:
    ///     query: `SearchIndex.query_values` of the client's vector, encrypted in coefficients.
    ///     keys: of the owner of the vectors, one for each of `SearchIndex.expansion_elements`, and a relinearization
    ///         key.
    ///
    /// Raises:
    ///     ParameterError: the index is empty.
    ///     MismatchError, OperandError: the query does not fit the index.
    ///     MissingKeyError: a key is missing.
    ///     MismatchError: query, keys and vectors have different owners.
    ///     NoiseError: the answer could not be decrypted.
    fn answer(
        &self,
        py: Python<'_>,
        query: &PyBfvSeededCiphertext,
        keys: &PyEvaluationKeys,
    ) -> Result<PySearchAnswer, Failure> {
        let query = &query.0;
        keys.compute(py, |keys| {
            let parameters = self.parameters.clone();
            let evaluator = Evaluator::new(&parameters, keys)?;
            let answer = self.read_lock().answer(&evaluator, &query.expand())?;
            Ok::<_, Failure>(PySearchAnswer { parameters, answer })
        })
    }

    /// Number of vectors.
    #[getter]
    fn rows(&self) -> usize {
        self.read_lock().rows()
    }

    /// Bytes of the ciphertexts in memory.
    #[getter]
    fn bytes(&self) -> usize {
        self.read_lock().bytes()
    }

    fn __repr__(&self) -> String {
        format!("Search{:?}", *self.read_lock())
    }
}
