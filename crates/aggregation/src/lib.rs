//! Sums of encrypted integer vectors: many clients encrypt, a server adds without any key, and the sum is decrypted
//! exactly.
//!
//! # One shared secret
//!
//! All clients hold the secret `s` of a ring `R_q = Z_q[X]/(X^N + 1)` with one prime `q`; the server does not. Client
//! `k` cuts its integers `|m| <= M` into polynomials `m_{k,c}` and sends, for every one,
//!
//! ```text
//! b_{k,c} = D m_{k,c} + e_{k,c} - a_{k,c} s        a_{k,c} expanded from a 32-byte seed,   D = 2^d
//! ```
//!
//! in coefficient form; the last polynomial is cut off after the values. The server adds the `b` and keeps the seeds. A
//! client that knows `s` expands all `a_{k,c}`, adds them, multiplies by `s` once, and rounds
//! `sum_k b_{k,c} + s sum_k a_{k,c} = D sum_k m_{k,c} + sum_k e_{k,c}` to a multiple of `D`.
//!
//! The error of one encryption is at most `B = 29` ([`keywright_ring::sampling::GAUSSIAN_BOUND`]). With `2 K B < D` and
//! `K (M D + B) <= (q - 1) / 2` the result is always exact for up to `K` clients. It contains no part of the error, so
//! the decrypted sum may be published (a CKKS decryption may not: Li and Micciancio, EUROCRYPT 2021). `q` is the
//! smallest that fits with a whole number of bytes, and `N` is the smallest that gives 128 bits for it.
//!
//! `a_{k,c}` is expanded from SHA-256 of the seed *and* of the update's claims (session, round, client, weight, number
//! of values). Altering a claim makes the sum undecodable, which decryption detects.
//!
//! # A threshold of shares
//!
//! See [`threshold`]: every client has its own secret, and a chosen number of them decrypt together.
#![forbid(unsafe_code)]

mod binding;
mod error;
mod key;
mod parameters;
mod residues;
mod sum;
pub mod threshold;
mod update;

pub use binding::{Binding, RunId};
pub use error::AggregationError;
pub use key::SumKey;
pub use parameters::{MAX_INPUTS, MAX_MAGNITUDE, SumParameters};
pub use residues::Residues;
pub use sum::{Contributor, EncryptedSum};
pub use update::EncryptedUpdate;
