use keywright_rlwe::derive::{DerivationTree, MAX_HOPS};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::stored::not_pickled;

/// The tree of derivations, for the planner, which chooses master keys before any is made.
///
/// Args:
///     log_n: log2 of the ring degree N.
///     masters: Galois elements of the master keys.
///     targets: Galois elements of the required keys.
///     max_hops: most derivations to a key, from 1 to `MAX_DERIVATION_HOPS`, the default.
///
/// Raises:
///     MissingKeyError: the master keys do not reach a target.
///     ParameterError: an element that is even or above 2N, an illegal ring degree or number of hops.
#[pyclass(name = "DerivationTree", module = "keywright", frozen)]
pub(crate) struct PyDerivationTree(DerivationTree);

not_pickled!(PyDerivationTree);

#[integers]
#[pymethods]
impl PyDerivationTree {
    #[new]
    #[pyo3(signature = (log_n, masters, targets, max_hops=MAX_HOPS))]
    fn new(
        py: Python<'_>,
        log_n: u32,
        masters: Vec<u64>,
        targets: Vec<u64>,
        max_hops: usize,
    ) -> Result<Self, Failure> {
        if !(keywright_ring::MIN_LOG_N..=keywright_ring::MAX_LOG_N).contains(&log_n) {
            return Err(keywright_ring::RingError::Degree(log_n).into());
        }
        Ok(Self(py.detach(|| DerivationTree::new(log_n, &masters, &targets, max_hops))?))
    }

    /// Decompositions of each row of a key while all keys are derived, by master keys of one shape.
    ///
    /// Args:
    ///     rows: of a derived key.
    ///     primes: of the master keys' chain over which derived keys are made.
    fn decompositions(&self, rows: usize, primes: usize) -> usize {
        self.0.decompositions(rows, primes)
    }

    fn __repr__(&self) -> String {
        format!(
            "DerivationTree({}, at most {})",
            crate::classes::counted(self.0.steps().len(), "key"),
            crate::classes::counted(self.depth(), "derivation")
        )
    }
}

getters! { PyDerivationTree, self;
    /// For every derived key: its Galois element, that of its parent (1: none), that of the master key, and its number
    /// of derivations.
    steps: Vec<(u64, u64, u64, usize)> = self.0.steps().map(|step| (step.element, step.parent, step.master, step.depth)).collect();
    /// Most derivations to a key.
    depth: usize = self.0.depth();
}
