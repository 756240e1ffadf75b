use keywright_bench::BenchError;
use keywright_circuits::CircuitError;
use keywright_ckks::CkksError;
use keywright_client::ClientError;
use keywright_client::server::ServerError;
use keywright_ring::RingError;
use keywright_rlwe::RlweError;
use keywright_wire::WireError;
use thiserror::Error;

/// Why a study cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A thin client's vectors fill their ciphertext.
    #[error("preset `{preset}` has {slots} slots, and {most} are compared")]
    Slots {
        /// The preset.
        preset: String,
        /// Its slots.
        slots: usize,
        /// Half its ring's degree.
        most: usize,
    },
    /// A clip that is no whole number of frames.
    #[error("a clip of {bytes} bytes; a whole number of {width} x {height} frames is needed, at least one")]
    Clip {
        /// Its bytes.
        bytes: usize,
        /// Pixels of a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// Nothing would be timed.
    #[error("runs = 0; at least one timed run is needed")]
    Runs,
    /// A result outside its bound.
    #[error("a wrong result: {0}")]
    Wrong(String),
    /// There is no such bootstrapping.
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
