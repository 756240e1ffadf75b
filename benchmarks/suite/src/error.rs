use keywright_bench::BenchError;
use keywright_circuits::CircuitError;
use keywright_ckks::CkksError;
use keywright_client::ClientError;
use keywright_ring::RingError;
use keywright_rlwe::RlweError;
use keywright_thin_server::ServerError;
use keywright_wire::WireError;
use thiserror::Error;

/// Why a study fails.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The preset's slots are not half the ring's degree, so a thin client's vectors do not fit.
    #[error("preset `{preset}` has {slots} of {most} slots; pass a preset that uses all of them")]
    Slots {
        /// The preset.
        preset: String,
        /// Its slots.
        slots: usize,
        /// Half its ring's degree.
        most: usize,
    },
    /// The clip is not a whole number of frames.
    #[error(
        "the clip has {bytes} bytes; pass a whole number of frames of {width} x {height} bytes, at least one"
    )]
    Clip {
        /// Its bytes.
        bytes: usize,
        /// Pixels of a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// No runs were requested, so nothing would be timed.
    #[error("runs is 0; pass at least 1")]
    Runs,
    /// A result exceeds its bound.
    #[error("a wrong result: {0}")]
    Wrong(String),
    /// The bootstrapping does not exist.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Bytes could not be counted.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The circuit refused.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// The scheme refused.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// The thin client refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server of thin clients refused.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The keys were refused.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// The ring was refused.
    #[error(transparent)]
    Ring(#[from] RingError),
}
