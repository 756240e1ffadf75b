use std::sync::Arc;

use keywright_aggregation::threshold::{self, KeyShare, MAX_SETS, Party, Question, ThresholdParameters};
use keywright_ring::{Evaluation, Poly, Seed};
use keywright_rlwe::{PublicKey, RlweCiphertext};
use keywright_wire::{Wire, sequence_from_bytes, sequence_to_bytes};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::{Zeroize, Zeroizing};

use crate::errors::Failure;
use crate::randomness::rng;
use crate::stored::{self, not_pickled, opaque};
use crate::threads::compute;

/// Ring, modulus and smudging for sums that a threshold of parties decrypts together. Parties are numbered from 1.
///
/// Args:
///     parties: all that take part in the set-up, 2 to 1024.
///     threshold: how many decrypt together, 2 to `parties`.
///     max_inputs: most updates of one sum.
///     magnitude: largest absolute value of an integer of one update.
///     max_values: most integers of one update; smudging hides all of them.
///
/// Raises:
///     ParameterError: a number is outside its range, or no modulus has room.
#[pyclass(name = "ThresholdParameters", module = "keywright.federated", frozen)]
#[derive(Clone)]
pub(crate) struct PyThresholdParameters(Arc<ThresholdParameters>);

impl PyThresholdParameters {
    fn vector(&self, data: &[u8]) -> Result<Vec<RlweCiphertext>, Failure> {
        Ok(sequence_from_bytes(data, self.0.rlwe(), self.0.chunks(self.0.max_values() as usize))?)
    }

    fn polynomial(&self, data: &[u8]) -> Result<Poly<Evaluation>, Failure> {
        Ok(Poly::from_bytes(data, self.0.rlwe())?)
    }
}

not_pickled!(PyThresholdParameters);

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

    /// Number of parties of the set-up.
    #[getter]
    fn parties(&self) -> u32 {
        self.0.parties()
    }

    /// Number of parties that decrypt together.
    #[getter]
    fn threshold(&self) -> u32 {
        self.0.threshold()
    }

    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.rlwe().log_n()
    }

    /// log2 of the modulus.
    #[getter]
    fn log_q(&self) -> f64 {
        self.0.rlwe().log2_q(self.0.rlwe().max_level())
    }

    /// log2 of the range of smudging: 2^-40 is the statistical distance that it leaves over all values of a sum.
    #[getter]
    fn smudging_bits(&self) -> u32 {
        self.0.smudging_bits()
    }

    /// Most sets of parties that one party answers for a sum.
    #[classattr]
    const MAX_SETS: u32 = MAX_SETS;

    /// Adds encrypted updates. Needs no key.
    ///
    /// Raises:
    ///     FormatError, MixedParametersError: bytes that are no whole, intact update.
    ///     ParameterError: none, too many, or updates of different lengths.
    fn add<'py>(&self, py: Python<'py>, updates: Vec<Vec<u8>>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = compute(py, || -> Result<_, Failure> {
            let vectors = updates.iter().map(|data| self.vector(data)).collect::<Result<Vec<_>, _>>()?;
            let sum = threshold::add(&self.0, &vectors.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            Ok(sequence_to_bytes(&sum, self.0.rlwe())?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Refuses bytes that are no public half of a joint key.
    ///
    /// Raises:
    ///     FormatError, MixedParametersError: they are none.
    ///     ParameterError: it has another shape.
    fn check_half(&self, py: Python<'_>, half: &[u8]) -> Result<(), Failure> {
        py.detach(|| Ok(threshold::require_shape(&self.0, &self.polynomial(half)?)?))
    }

    /// Refuses bytes that are no update of `count` integers.
    ///
    /// Raises:
    ///     FormatError, MixedParametersError: they are none.
    ///     ParameterError: it is one of another number of ciphertexts.
    fn check_update(&self, py: Python<'_>, update: &[u8], count: usize) -> Result<(), Failure> {
        py.detach(|| Ok(threshold::require_update(&self.0, &self.vector(update)?, count)?))
    }

    /// Refuses bytes that are no partial decryption of a sum of `count` integers. Whether it is a right one is seen with the others alone.
    ///
    /// Raises:
    ///     FormatError, MixedParametersError: they are none.
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
    ///     sum: what was decrypted partially.
    ///     partials: one of every active party.
    ///     inputs: number of updates that were added.
    ///     count: number of integers.
    ///
    /// Raises:
    ///     AggregationError: the parts do not belong to the sum, or a party deviated.
    ///     FormatError, ParameterError: bytes that are no such parts.
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

/// One party's secret during the set-up. Wiped when dropped, never shown.
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
    ///     parameters: what it is for.
    ///     seed: 32 bytes that all parties agree on, and nobody alone decides.
    ///     entropy: 32 bytes that decide the secret, for tests only.
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

    /// The party's half of the joint public key, to be published.
    fn public_half<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, self.party.public_half(), self.parameters.0.rlwe())
    }

    /// One share of the secret for every party, in order. Secret: each is for that party alone.
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

/// A party's share of the joint secret. Wiped when dropped, never shown.
#[pyclass(name = "ThresholdShare", module = "keywright.federated", frozen)]
pub(crate) struct PyThresholdShare {
    parameters: PyThresholdParameters,
    share: KeyShare,
}

not_pickled!(PyThresholdShare);

#[pymethods]
impl PyThresholdShare {
    /// The share of a party from what all parties dealt to it, its own included.
    ///
    /// Args:
    ///     parameters: of the group.
    ///     party: its number, from 1.
    ///     dealt: by every party, in order.
    ///     keys: 32 secret bytes for every party, in order: what this one and that one alone know; in the party's own place 32
    ///         random bytes that nobody else knows.
    ///
    /// Raises:
    ///     FormatError, ParameterError: a dealt share is none, or a share or a key is missing.
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

    /// The party's number.
    #[getter]
    fn party(&self) -> u32 {
        self.share.party()
    }

    /// The party's part of a decryption. The same question has the same answer, bit for bit. Answer for one sum in a round, and for at most
    /// `MAX_SETS` sets.
    ///
    /// Args:
    ///     sum: what is decrypted.
    ///     active: the numbers of those who decrypt; all of them have to answer the same question.
    ///     session: 16 bytes that name the run and its keys.
    ///     round: the round.
    ///
    /// Raises:
    ///     ParameterError: `active` are not as many parties as the threshold, this one among them.
    ///     FormatError, MixedParametersError: the sum is none.
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

    /// The share as bytes, unencrypted and without the keys: keep both as you keep a password. Python does not wipe them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = Zeroizing::new(self.share.share().to_bytes(self.parameters.0.rlwe())?);
        Ok(PyBytes::new(py, &bytes))
    }

    /// A share from the bytes of `to_bytes`; errors as of `combine`.
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

/// The joint public key: of the sum of all parties' secrets, which nobody has.
#[pyclass(name = "ThresholdKey", module = "keywright.federated", frozen)]
pub(crate) struct PyThresholdKey {
    parameters: PyThresholdParameters,
    key: PublicKey,
}

not_pickled!(PyThresholdKey);

#[pymethods]
impl PyThresholdKey {
    /// The key from the halves that all parties published for one seed.
    ///
    /// Raises:
    ///     FormatError, ParameterError: a half is none, or one is missing.
    #[staticmethod]
    fn combine(
        py: Python<'_>,
        parameters: &PyThresholdParameters,
        seed: [u8; 32],
        halves: Vec<Vec<u8>>,
    ) -> Result<Self, Failure> {
        let key = compute(py, || -> Result<_, Failure> {
            let halves =
                halves.iter().map(|data| parameters.polynomial(data)).collect::<Result<Vec<_>, _>>()?;
            Ok(threshold::joint_public_key(&parameters.0, Seed(seed), &halves)?)
        })?;
        Ok(Self { parameters: parameters.clone(), key })
    }

    /// Encrypts a vector of integers.
    ///
    /// Raises:
    ///     EncodeError: a value is above the declared magnitude.
    ///     ParameterError: there is no value, or more than declared.
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'_, i64>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let values = Zeroizing::new(values.as_array().to_vec());
        let bytes = compute(py, || -> Result<_, Failure> {
            let parameters = &self.parameters.0;
            let vector = threshold::encrypt(parameters, &self.key, &values, &mut rng(None)?)?;
            Ok(sequence_to_bytes(&vector, parameters.rlwe())?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The key as bytes, to be read by `from_bytes`. Public.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, &self.key, self.parameters.0.rlwe())
    }

    /// A key from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError, MixedParametersError: the bytes are no whole, intact key of these parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: &PyThresholdParameters) -> Result<Self, Failure> {
        let key = stored::from_bytes(py, data, parameters.0.rlwe())?;
        Ok(Self { parameters: parameters.clone(), key })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.key)
    }
}
