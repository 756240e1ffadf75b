use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keywright_bfv::BfvError;
use keywright_ckks::CkksError;
use keywright_ring::{Process, RingError};
use keywright_rlwe::RlweError;
use keywright_wire::{Fingerprint, WireError};
use thiserror::Error;

/// What can go wrong with pools.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Keys, levels, parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A message that cannot be encoded.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// A message that cannot be encrypted.
    #[error(transparent)]
    Bfv(#[from] BfvError),
    /// An entry that cannot become bytes.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Offending value.
        value: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
    /// No entry is there, and the pool does not make one.
    #[error(
        "the pool is empty: {taken} of {made} entries are taken; fill it, raise its capacity or its threads"
    )]
    Empty {
        /// Entries made.
        made: u64,
        /// Entries taken.
        taken: u64,
    },
    /// Nothing will ever come: there is no background thread.
    #[error("the pool is empty and has no thread that fills it: {0}")]
    Stopped(&'static str),
    /// The background threads ended.
    #[error("the pool is empty and its threads ended: {0}")]
    Producer(Arc<PoolError>),
    /// The system starts no thread.
    #[error("thread {number} of {wanted} could not be started: {reason}")]
    Threads {
        /// The one that failed.
        number: usize,
        /// How many there should be.
        wanted: usize,
        /// What the system says.
        reason: String,
    },
    /// A forked child holds a copy of its parent's entries.
    #[error(
        "this pool belongs to process {owner}; process {process} has a copy of its entries, which would be used twice: make a \
         pool of its own"
    )]
    Forked {
        /// The process that made the pool.
        owner: u32,
        /// The process that asks.
        process: u32,
    },
    /// What the system says of a file.
    #[error("{path}: {source}")]
    Io {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is wrong with a pool file.
    #[error("{path}: {problem}")]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        problem: FileProblem,
    },
    /// A unit of Chem messages that the scale cannot hold.
    #[cfg(feature = "insecure")]
    #[error("the unit {unit} is not a number from {smallest}, the resolution of the scale, on")]
    ChemUnit {
        /// The unit.
        unit: f64,
        /// Smallest legal one.
        smallest: f64,
    },
    /// A unit of Chem messages that are integers.
    #[cfg(feature = "insecure")]
    #[error("the unit {unit} of messages modulo t is not 1")]
    ChemInteger {
        /// The unit.
        unit: f64,
    },
    /// A message that a Chem cache cannot make.
    #[cfg(feature = "insecure")]
    #[error("{value} is not a message of {bits} bits: 0 to 2^{bits} - 1")]
    ChemMessage {
        /// The message.
        value: u128,
        /// Bits of the cache.
        bits: u32,
    },
}

/// What can be wrong with a pool file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// Another kind of file, or a newer version.
    #[error("not a pool file of a version that is known")]
    Foreign,
    /// Shorter or longer than its header says.
    #[error("{found} bytes instead of {expected}; the file was cut off or extended, make a new one")]
    Length {
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        expected: u64,
    },
    /// The header does not authenticate.
    #[error("the file key does not open the header: it is another file's key, or the header was changed")]
    Key,
    /// Made with other parameters.
    #[error("its entries belong to parameters {found}, not to {expected}")]
    ForeignParameters {
        /// Of the file.
        found: Fingerprint,
        /// Of the pool.
        expected: Fingerprint,
    },
    /// Made with another key.
    #[error("its entries are encrypted with another key")]
    ForeignKey,
    /// Entries of another level or kind.
    #[error(
        "its entries have level {found} and {found_bytes} bytes, the pool's level {expected} and {expected_bytes} bytes"
    )]
    ForeignEntries {
        /// Level of the file.
        found: u32,
        /// Bytes of an entry of the file.
        found_bytes: u64,
        /// Level of the pool.
        expected: u32,
        /// Bytes of an entry of the pool.
        expected_bytes: u64,
    },
    /// Nobody here knows which of its entries are used.
    #[error(
        "the register {register} has no record of this file, so which entries are used is not known here: the file was copied \
         from elsewhere; make a new one"
    )]
    Unregistered {
        /// Where the record should be.
        register: PathBuf,
    },
    /// A copy of the file that is registered.
    #[error(
        "this is not the file that was registered but a copy of it (file number {found}, registered {registered}); its \
         entries may be used already: make a new file"
    )]
    Copied {
        /// File number found.
        found: u64,
        /// File number in the register.
        registered: u64,
    },
    /// The record does not authenticate.
    #[error("the record {register} was damaged or changed; which entries are used is lost: make a new file")]
    Register {
        /// Its path.
        register: PathBuf,
    },
    /// An entry does not authenticate.
    #[error(
        "entry {serial} was damaged, changed, or put back after it was used; it and {others} entries taken with it are lost"
    )]
    Tampered {
        /// Which entry.
        serial: u64,
        /// Entries lost with it.
        others: usize,
    },
}

impl PoolError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }

    pub(crate) fn file(path: &Path, problem: FileProblem) -> Self {
        Self::File { path: path.to_path_buf(), problem }
    }
}

impl From<RingError> for PoolError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

/// Refuses a process other than the one that made an object.
pub(crate) fn require_owner(owner: Process) -> Result<(), PoolError> {
    if owner.is_current() {
        return Ok(());
    }
    Err(PoolError::Forked { owner: owner.id(), process: Process::current().id() })
}
