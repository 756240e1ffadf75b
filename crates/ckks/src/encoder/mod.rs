//! Encoding of numbers into integer polynomials, and back. Nothing here knows keys or ciphertexts.
//!
//! Encoding is [`Integers::slots`] or [`Integers::coefficients`], then [`Integers::check_fits`] for the primes of a
//! level and [`Integers::residues`] for each of them. Decoding is [`centred`], a division by the scale and, for slots,
//! [`Embedding::to_slots`].
//!
//! A plaintext of `n` slots, `n` a power of two up to `N/2`, is a polynomial in `Y = X^(N/2n)` with `2n` integer
//! coefficients. Its slot `j` is its value at `Y = exp(2 pi i 5^j / 4n)`, divided by the scale (Cheon, Kim, Kim and
//! Song, 2017; Cheon, Han, Kim, Kim and Song, 2018, for `n < N/2`). The automorphism `X -> X^(5^k)` then rotates the
//! slots by `k` to the left and `X -> X^(2N-1)` conjugates them. Coefficient encoding puts real numbers, times the
//! scale, into the coefficients themselves.
//!
//! # Precision
//! With `u = 2^-53`, `z` the vector of slots and norms Euclidean, encoding and decoding together change a slot by at
//! most
//!
//! ```text
//! n / (sqrt(2) scale) + (8 log2(n) + 4) u ||z||.
//! ```
//!
//! The first term is the rounding of coefficients to integers, by `1/2` each; a typical value is `sqrt(n / 6) / scale`.
//! The second is the arithmetic in `f64` (see [`Embedding`]): numbers are represented to about `2^-50` of the largest
//! slot at any scale.

mod dispatch;
mod embedding;
mod error;
mod fft;
mod integers;
mod magnitude;
mod mixed_radix;
#[cfg(test)]
mod tests;

pub use embedding::{Embedding, twiddles};
pub use error::EncoderError;
pub use integers::Integers;
pub(crate) use integers::WORD_LIMIT;
pub use mixed_radix::centred;
