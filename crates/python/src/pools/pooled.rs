//! Ciphertexts of pools.

use std::time::Duration;

use keywright_ckks::{CkksParameters, Magnitude};
use keywright_pool::ckks::{CkksPool, CkksZero, Encoded};
use keywright_pool::{EncryptionPool, PoolError, ZeroKey};
use pyo3::prelude::*;

use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::bfv::seeded_ciphertext::PyBfvSeededCiphertext;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::seeded_ciphertext::PySeededCiphertext;
use crate::errors::Failure;
use crate::threads::compute;

/// The interval between checks for signals while waiting for an entry.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// A ciphertext of either scheme, of either kind of key.
#[derive(IntoPyObject)]
pub(crate) enum Pooled {
    Whole(PyCiphertext),
    Seeded(PySeededCiphertext),
    Bfv(PyBfvCiphertext),
    BfvSeeded(PyBfvSeededCiphertext),
}

macro_rules! from {
    ($($ciphertext:ty => $variant:ident($class:ident)),+ $(,)?) => {
        $(impl From<$ciphertext> for Pooled {
            fn from(ciphertext: $ciphertext) -> Self {
                Self::$variant($class(ciphertext))
            }
        })+
    };
}

from! {
    keywright_ckks::Ciphertext => Whole(PyCiphertext),
    keywright_ckks::SeededCiphertext => Seeded(PySeededCiphertext),
    keywright_bfv::Ciphertext => Bfv(PyBfvCiphertext),
    keywright_bfv::SeededCiphertext => BfvSeeded(PyBfvSeededCiphertext),
}

/// Asks for a ciphertext until there is one, and checks for signals meanwhile.
///
/// An addition takes less than a change of threads, and waiting needs no other thread. Only an encryption that is made
/// now runs on the threads of operations.
pub(super) fn wait<K: ZeroKey, C: Into<Pooled> + Send>(
    py: Python<'_>,
    pool: &EncryptionPool<K>,
    ask: impl Fn() -> Result<Option<C>, PoolError> + Sync + Send,
) -> Result<Pooled, Failure> {
    loop {
        let asked = if pool.makes_next()? { compute(py, &ask)? } else { py.detach(&ask)? };
        if let Some(ciphertext) = asked {
            return Ok(ciphertext.into());
        }
        py.check_signals()?;
    }
}

/// Encrypts every number separately.
pub(super) fn scalars<K: ZeroKey<Zero: CkksZero>>(
    py: Python<'_>,
    parameters: &CkksParameters,
    pool: &EncryptionPool<K>,
    values: &[f64],
    log_slots: u32,
    magnitude: Magnitude,
) -> Result<Vec<Pooled>, Failure>
where
    Pooled: From<<K::Zero as CkksZero>::Ciphertext>,
{
    let messages = CkksPool::new(parameters, pool)?.declaring(magnitude);
    let encode = |&value: &f64| messages.encode_scalar(value, log_slots);
    let encoded: Vec<Encoded> = values.iter().map(encode).collect::<Result<_, _>>()?;
    encoded.iter().map(|message| wait(py, pool, || messages.encrypt_within(message, PATIENCE))).collect()
}
