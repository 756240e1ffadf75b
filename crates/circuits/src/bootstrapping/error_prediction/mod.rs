//! Predicts the precision of a bootstrapping before any key is made.
//!
//! The estimate of a ciphertext is a bound: it adds the deviations of dependent errors, takes the worst point of
//! `eval_mod` for all slots, and multiplies by [`keywright_ckks::PRODUCT_TAIL`]. The prediction here adds variances,
//! each with its own distribution. It gives the mean error and the largest error over a number of vectors as measured.
//!
//! # Model
//! With `s_j` the value of the secret at the root of unity of slot `j`, `X_j = |s_j|^2 / |s|^2` has mean 1. It is
//! exponentially distributed for a full packing, and the mean of `N / 2n` such variables if only `n` slots are kept. A
//! rounding of a ciphertext at scale `S` is an error `e_0 + e_1 s` with `e_0`, `e_1` uniform in every coefficient: in
//! slot `j`, given the secret, a complex normal variable of variance `N (1 + |s|^2 X_j) / 12 S^2`. All roundings of a
//! slot, in all ciphertexts of one secret, share the same `X_j`.
//!
//! | error | variance of a part of a value, in units of the message |
//! |---|---|
//! | factors of `slots_to_coeffs`, except the errors after the last one | roundings, switches of baby steps and roundings of the diagonals, each times the squared norms of the factors that follow; averaged over many slots, so that `X = 1` |
//! | last rounding of `slots_to_coeffs`, `mod_raise` | in coefficients: `(1 + |s|^2) / 12`, plus the errors of the switches |
//! | factors of `coeffs_to_slots` | the same; the last errors, including the conjugation, with `X_j` |
//! | `eval_mod` | for each step `k`: `(d mu / d step_k)^2 N (1 + |s|^2 X_j) / 24 S_k^2`, at the slot's own integer `I` |
//! | approximation | no variance: its error at `I` and the message |
//!
//! For complex values the error of the imaginary half in `eval_mod` is added: a polynomial of a real value multiplies
//! complex errors by a real number, and the halves are joined as `a + i b`. The integer `I` is the nearest one to a sum
//! of `h` uniform variables ([`crate::bootstrapping::range`]); messages are uniform in `[-1, 1]`.
//!
//! The mean error is that of the mixture over `X`, `I` and the message. The worst error of `v` vectors of `n` slots is
//! the median of the largest. With `p(t | X)` the probability that one part has an error above `t`, it is the `t` at
//! which
//!
//! ```text
//! E_X[ (1 - p(t | X))^(parts v) ]^n = 1/2.
//! ```

mod distribution;
mod model;

pub use distribution::ErrorPrediction;
pub use model::ErrorsOfMessages;
