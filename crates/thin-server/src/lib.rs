//! The server's side for thin clients (`keywright-client`): parameters for clients, uploaded ciphertexts, answers. It
//! neither needs nor reads a secret.
//!
//! `docs/reference/thin-clients.md` has the steps between: raising the modulus, the program, and slots to coefficients.
#![forbid(unsafe_code)]

mod answer;
mod dropped;
mod error;
mod parameters;
mod received_ciphertext;
mod search;

pub use answer::write_answer;
pub use dropped::droppable;
pub use error::ServerError;
pub use parameters::{client_parameters, entry_literal, parameters_at};
pub use received_ciphertext::{is_secret, read_upload};
pub use search::{read_query, search_parameters, write_scores};
