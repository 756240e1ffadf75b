use keywright_ckks::Packing;
use keywright_client::ClientError;
use keywright_rlwe::RlweError;
use keywright_search::SearchError;
use keywright_wire::WireError;
use thiserror::Error;

/// Reasons for a server's refusal.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ServerError {
    /// Bytes that are not a ciphertext of these parameters.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Bytes that are not in compact form, or parameters that no client can have.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An index that cannot answer a query.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// Objects of other parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A ciphertext that clients do not send.
    #[error("the {what} of an uploaded ciphertext is {found}; it must be {expected}")]
    Upload { what: &'static str, found: String, expected: String },
    /// An answer that does not fit `q_0`.
    #[error(
        "values up to 2^{log_size:.1} at this scale do not fit q_0 of {log_q:.1} bits; use a smaller scale or smaller values"
    )]
    TooLarge {
        /// `log2` of values and errors at their scale.
        log_size: f64,
        log_q: f64,
    },
    /// An answer whose values are not in coefficients.
    #[error("an answer needs its values in coefficients, not in {0}; run slots_to_coeffs first")]
    Packing(Packing),
    /// An invalid factor for the growth of an error.
    #[error("the growth factor {0} of the error must be finite and above 1")]
    Growth(f64),
}
