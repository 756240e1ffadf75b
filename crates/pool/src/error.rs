use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keywright_bfv::BfvError;
use keywright_ckks::CkksError;
use keywright_ring::{Process, RingError};
use keywright_rlwe::RlweError;
use keywright_wire::{Fingerprint, WireError};
use thiserror::Error;

/// Errors of pools.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PoolError {
    /// An error of keys, levels or parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A message that cannot be encoded.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// A message that cannot be encrypted.
    #[error(transparent)]
    Bfv(#[from] BfvError),
    /// An entry that cannot be serialized.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Range { what: &'static str, value: u64, min: u64, max: u64 },
    /// There is no entry, and the pool does not make one.
    #[error(
        "the pool is empty: {taken} of {made} entries are taken; fill it, or raise its capacity or its threads"
    )]
    Empty { made: u64, taken: u64 },
    /// No entry can come: there is no background thread.
    #[error("the pool is empty and has no thread to fill it: {0}")]
    Stopped(&'static str),
    /// The background threads ended.
    #[error("the pool is empty and its threads ended: {0}")]
    Producer(Arc<PoolError>),
    /// The system refused to start a thread.
    #[error("thread {number} of {requested} could not be started: {reason}")]
    Threads { number: usize, requested: usize, reason: String },
    /// A forked child holds a copy of its parent's entries.
    #[error(
        "this pool belongs to process {owner}, and process {process} would use its entries twice; make a pool in every \
         process"
    )]
    Forked { owner: u32, process: u32 },
    /// The error of the operating system for a file.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// An unusable pool file.
    #[error("{path}: {problem}")]
    File { path: PathBuf, problem: FileProblem },
    /// A unit of Chem messages below the resolution of the scale.
    #[cfg(feature = "insecure")]
    #[error("the unit {unit} is below {smallest}, the resolution of the scale; use a larger unit")]
    ChemUnit { unit: f64, smallest: f64 },
    /// A unit of integer Chem messages.
    #[cfg(feature = "insecure")]
    #[error("the unit {unit} of messages modulo t must be 1")]
    ChemInteger { unit: f64 },
    /// A message outside of a Chem cache's range.
    #[cfg(feature = "insecure")]
    #[error("the message {value} is outside 0..=2^{bits} - 1")]
    ChemMessage { value: u128, bits: u32 },
}

/// Problems of a pool file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FileProblem {
    /// Another kind of file, or a newer version.
    #[error("this is not a pool file of a supported version; make a new one")]
    Foreign,
    /// Shorter or longer than its header says.
    #[error("the file has {found} bytes instead of {expected}: it was cut off or extended; make a new one")]
    Length { found: u64, expected: u64 },
    /// The header does not authenticate.
    #[error(
        "the file key does not open the header: it belongs to another file, or the header was changed; use the file's own key"
    )]
    Key,
    /// Made with other parameters.
    #[error(
        "its entries belong to parameters {found}, not to {expected}; open it with the parameters that made it"
    )]
    ForeignParameters { found: Fingerprint, expected: Fingerprint },
    /// Made with another key.
    #[error("its entries are encrypted with another key; open it with the key that made it")]
    ForeignKey,
    /// Entries of another level or kind.
    #[error(
        "its entries have level {found} and {found_bytes} bytes, and the pool's have level {expected} and \
         {expected_bytes} bytes; make a new file"
    )]
    ForeignEntries { found: u32, found_bytes: u64, expected: u32, expected_bytes: u64 },
    /// There is no record of the used entries.
    #[error(
        "the register {register} has no record of this file, which was copied from elsewhere, so its used entries are \
         unknown; make a new one"
    )]
    Unregistered { register: PathBuf },
    /// A copy of the registered file.
    #[error(
        "this is a copy of the registered file (file number {found}, registered {registered}), and its entries may be \
         used already; make a new file"
    )]
    Copied { found: u64, registered: u64 },
    /// Another process holds its lock.
    #[error("another process has locked this file for {seconds} s; end it if it was stopped, or try again")]
    Locked { seconds: u64 },
    /// The record does not authenticate.
    #[error("the record {register} was damaged or changed, so the used entries are unknown; make a new file")]
    Register { register: PathBuf },
    /// An entry does not authenticate.
    #[error(
        "entry {serial} was damaged, changed, or put back after it was used; it and {others} entries taken with it are lost"
    )]
    Tampered { serial: u64, others: usize },
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

/// Refuses processes other than the one that made an object.
pub(crate) fn require_owner(owner: Process) -> Result<(), PoolError> {
    if owner.is_current() {
        return Ok(());
    }
    Err(PoolError::Forked { owner: owner.id(), process: Process::current().id() })
}
