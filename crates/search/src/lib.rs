//! Similarity search by BFV: the inner products of one encrypted vector with every vector of an index in the clear.
//!
//! A block of the index holds one vector in each coefficient: polynomial `x_i(X)` has component `i` of `N` vectors. The
//! query is one ciphertext of the polynomial `q_0 + q_1 X + ...`. The server expands it into an encryption of each
//! constant `q_i` (Angel, Chen, Laine and Setty, ePrint 2017/1142, section 3.3), and answers with `sum_i x_i(X) q_i`,
//! whose coefficients are the inner products, after a switch to the smallest power-of-two moduli that decrypt.
//!
//! [`Index`] holds the vectors, [`Answer`] what the client decrypts. The vectors of an [`EncryptedIndex`] are
//! encrypted, too: a ciphertext for each component of a block. `docs/explanation/search.md` counts the work.
#![forbid(unsafe_code)]

mod answer;
mod encrypted;
mod error;
mod expansion;
mod index;
mod query;

pub use answer::{Answer, AnswerShape, MAX_ROWS};
pub use encrypted::EncryptedIndex;
pub use error::SearchError;
pub use expansion::expansion_elements;
pub use index::{Halves, Index};
pub use query::query_values;
