use keywright_aggregation::threshold::{KeyShare, Party, Question};
use keywright_ring::Seed;
use keywright_wire::{Wire, sequence_to_bytes};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::{Zeroize, Zeroizing};

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::randomness::rng;
use crate::stored::{self, not_pickled, opaque};
use crate::sums::threshold_parameters::PyThresholdParameters;
use crate::threads::compute;

/// One party's secret during the set-up. Wiped when dropped, never printed.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "ThresholdParty", module = "keywright.federated", frozen)]
pub(crate) struct PyThresholdParty {
    parameters: PyThresholdParameters,
    party: Party,
}

opaque!(PyThresholdParty);

#[pymethods]
impl PyThresholdParty {
    /// A new secret, for one joint key.
    ///
    /// Args:
    ///     parameters: of the group.
    ///     seed: 32 bytes that all parties agree on, and none decides alone.
    ///     entropy: 32 bytes that determine the secret, for tests only.
    #[staticmethod]
    #[pyo3(signature = (parameters, seed, entropy=None))]
    fn generate(
        py: Python<'_>,
        parameters: &PyThresholdParameters,
        seed: [u8; 32],
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let mut rng = rng(entropy)?;
        let party = compute(py, || Party::sample(&parameters.0, Seed(seed), &mut rng))?;
        Ok(Self { parameters: parameters.clone(), party })
    }

    /// The party's half of the joint public key, for publication.
    fn public_half<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, self.party.public_half(), self.parameters.0.rlwe())
    }

    /// One share of the secret for every party, in order. Secret: each is only for that party.
    fn deal<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyBytes>>, Failure> {
        let shares = compute(py, || -> Result<_, Failure> {
            let mut shares = self.party.deal(&mut rng(None)?);
            let bytes: Result<Vec<_>, Failure> = shares
                .iter()
                .map(|share| Ok(Zeroizing::new(share.to_bytes(self.parameters.0.rlwe())?)))
                .collect();
            shares.iter_mut().for_each(Zeroize::zeroize);
            bytes
        })?;
        Ok(shares.iter().map(|share| PyBytes::new(py, share)).collect())
    }
}

/// A party's share of the joint secret. Wiped when dropped, never printed.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "ThresholdShare", module = "keywright.federated", frozen)]
pub(crate) struct PyThresholdShare {
    parameters: PyThresholdParameters,
    share: KeyShare,
}

not_pickled!(PyThresholdShare);

#[integers]
#[pymethods]
impl PyThresholdShare {
    /// The share of a party from the values that all parties dealt to it, including itself.
    ///
    /// Args:
    ///     parameters: of the group.
    ///     party: its number, from 1.
    ///     dealt: by every party, in order.
    ///     keys: 32 secret bytes for every party, in order, known only to it and this party; in the party's own place
    ///         32 random bytes that no other party knows.
    ///
    /// Raises:
    ///     FormatError, ParameterError: a dealt share is invalid, or a share or a key is missing.
    ///     AggregationError: two keys are equal.
    #[staticmethod]
    fn combine(
        py: Python<'_>,
        parameters: &PyThresholdParameters,
        party: u32,
        dealt: Vec<Vec<u8>>,
        keys: Vec<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let keys = keys.into_iter().map(Zeroizing::new).collect();
        let share = compute(py, || -> Result<_, Failure> {
            let mut dealt =
                dealt.iter().map(|data| parameters.polynomial(data)).collect::<Result<Vec<_>, _>>()?;
            let share = KeyShare::combine(&parameters.0, party, &dealt, keys);
            dealt.iter_mut().for_each(Zeroize::zeroize);
            Ok(share?)
        })?;
        Ok(Self { parameters: parameters.clone(), share })
    }

    /// The party's part of a decryption. The same question has the same answer, bit for bit. Answer for one sum per
    /// round, and for at most `MAX_SETS` sets.
    ///
    /// Args:
    ///     sum: the sum to decrypt.
    ///     active: the numbers of the decrypting parties; all of them must answer the same question.
    ///     session: 16 bytes that name the run and its keys.
    ///     round: the round.
    ///
    /// Raises:
    ///     ParameterError: `active` has not as many parties as the threshold, or lacks this one.
    ///     FormatError, MismatchError: the sum is invalid.
    #[pyo3(signature = (sum, active, *, session, round))]
    fn partial<'py>(
        &self,
        py: Python<'py>,
        sum: &[u8],
        active: Vec<u32>,
        session: [u8; 16],
        round: u32,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = compute(py, || -> Result<_, Failure> {
            let sum = self.parameters.vector(sum)?;
            let parts = self.share.partial(&sum, &Question { session, round, active: &active })?;
            Ok(sequence_to_bytes(&parts, self.parameters.0.rlwe())?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The share as bytes, unencrypted and without the keys: protect both like a password. Python does not wipe them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = Zeroizing::new(self.share.share().to_bytes(self.parameters.0.rlwe())?);
        Ok(PyBytes::new(py, &bytes))
    }

    /// A share from the bytes of `to_bytes`; errors as for `combine`.
    #[staticmethod]
    fn from_bytes(
        data: &[u8],
        parameters: &PyThresholdParameters,
        party: u32,
        keys: Vec<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let keys = keys.into_iter().map(Zeroizing::new).collect();
        let share = KeyShare::new(&parameters.0, party, parameters.polynomial(data)?, keys)?;
        Ok(Self { parameters: parameters.clone(), share })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.share)
    }
}

getters! { PyThresholdShare, self;
    /// The party's number.
    party: u32 = self.share.party();
}
