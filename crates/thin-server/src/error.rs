use keywright_ckks::Packing;
use keywright_client::ClientError;
use keywright_rlwe::RlweError;
use keywright_wire::WireError;
use thiserror::Error;

/// Why a server refuses.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Bytes that are no ciphertext of these parameters.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Bytes in compact form that are none, or parameters that no client can have.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Objects of other parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A ciphertext that a client does not send.
    #[error("{what} of an uploaded ciphertext is {found}, must be {expected}")]
    Upload {
        /// Which property.
        what: &'static str,
        /// What was found.
        found: String,
        /// What there should be.
        expected: String,
    },
    /// An answer that is no longer one modulo `q_0`.
    #[error("values of up to 2^{log_size:.1} at this scale do not fit q_0 of {log_q:.1} bits")]
    TooLarge {
        /// `log2` of values and errors at their scale.
        log_size: f64,
        /// `log2(q_0)`.
        log_q: f64,
    },
    /// An answer whose values are not in coefficients.
    #[error("an answer has its values in coefficients, not in {0}: slots_to_coeffs comes first")]
    Packing(Packing),
    /// A factor by which an error may grow that is not above 1.
    #[error("an error cannot grow by a factor of {0}: it must be finite and above 1")]
    Growth(f64),
}
