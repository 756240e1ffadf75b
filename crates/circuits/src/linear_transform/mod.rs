//! Linear transforms of slots by diagonals: baby-step giant-step with double hoisting (Bossuat, Mouchet,
//! Troncoso-Pastoriza and Hubaux, Eurocrypt 2021, algorithm 6).
//!
//! For `n` slots, `diag_r[k] = M[k, (k + r) mod n]`. With `r = i + j`, baby step `i = r mod n1` and giant step `j`,
//!
//! ```text
//! M v = sum_j rot( sum_i rot(diag_{i+j}, -j) * rot(v, i), j ).
//! ```
//!
//! 1. *Baby steps.* The ciphertext is decomposed once. `u_i = P rot(v, i)` stays modulo `Q P`: no division. Baby steps
//!    in tiers ([`BsgsPlan::tier`]) do this for the input and for the result of each hop, a key switch with division:
//!    more time, fewer keys.
//! 2. *Products.* `w_j = sum_i rot(diag_{i+j}, -j) u_i` modulo `Q P`, with diagonals encoded at scale `q_level` over
//!    the primes of `Q` and `P`; one lazily reduced inner product for each giant step and prime.
//! 3. *Giant steps.* Only the second half of `w_j` is divided by `P`, and switched; the result stays modulo `Q P`. The
//!    first half joins it there. The rotation is applied, and the sum over `j` is taken modulo `Q P`. Chained giant
//!    steps ([`GiantSteps::Chain`]) do this to the partial sum, one `w_j` after the other, from the last. If no baby
//!    step is a key switch, a chain makes some `w_j` at a time, and step 2 takes its turn with step 3.
//! 4. One division by `P q_level` for the sum, which combines the division by `P` and the rescaling. The scale is the
//!    input's.
//!
//! With keys that have routes ([`keywright_rlwe::KeyRoutes`]), the hops of a group make its baby steps. A ciphertext
//! that is rotated again, and the result of a key that removes other primes than `P`, come from a whole key switch.
//! Each is a tier of its own, multiplied by `P`. A giant step of several hops divides both halves of `w_j`, makes all
//! hops but the last, and multiplies the first half by `P` again.
//!
//! `P` is the product of all primes that a key switch removes: special primes and, for keys used with coarser digits,
//! dropped ciphertext primes.
//!
//! # Error
//! All deviations are in units of the message. `D` is the scale, `V` a variance of coefficients (see
//! [`keywright_rlwe::noise`]), `s` the number of coefficients that add up in a slot, and
//! `|M| = max_k sum_r |diag_r[k]|`.
//!
//! * The input's own error: at most `|M|` times its deviation, for any dependencies between slots.
//! * Encoding rounds the `2p` coefficients of each of the `d` diagonals, of period `p`, by at most 1/2, independently.
//!   Each slot of a diagonal has an error of `sqrt(2p/12) / q_level`, and the sum of `d` of them times the input's
//!   values an error of `sqrt(d 2p/12) / q_level` times their magnitude. The embedding is computed in `f64`:
//!   [`ENCODING_UNITS`].
//! * Every baby step adds `sqrt(V_b s) / D`, where `V_b` is that of a switch without the rounding of its division. Its
//!   diagonals multiply this: at most `|M'| sqrt(V_b s) / D` in sum, with `M'` without the diagonals that need no
//!   rotation.
//! * Every hop adds `sqrt(V_s s) / D`, where `V_s` is that of a whole switch, to every tier after it. The factor is
//!   `|M''|`, with `M''` the diagonals of those tiers, and the hops are added.
//! * A tier of a route does likewise, with the diagonals of its descendants; sums of the largest rows of single baby
//!   steps bound them. Each further hop of a giant step adds `sqrt(V_s s) / (D q_level)`, and the first division rounds
//!   both halves: `V_d`.
//! * Every giant step switches at scale `D q_level`: `sqrt((V_g + |S|^2/12) s) / (D q_level)`. The term `|S|^2/12` is
//!   the rounding of the second half alone, with the norm of the secret. The deviations of the steps are added.
//! * The final division rounds once, independently: `sqrt(V_d s) / D`.
//!
//! With [`Spread::RootMeanSquare`] the deviation of one value is its root mean square over all slots. `|M| e` is then
//! bounded by `|M|_2 |e|`, and `|M|_2` is the Euclidean norm of each row if `M` is a multiple of a unitary matrix. The
//! errors of different slots of one key switch or rounding are uncorrelated, and so are those of different keys, so
//! they grow by the Euclidean norm of a row too.

mod blocks;
mod evaluation;
mod matrix;
mod plan;
mod prediction;
mod rotations;
mod scratch;

pub use evaluation::evaluate::evaluate;
pub(crate) use evaluation::raised::evaluate_raised;
pub use matrix::diagonals::{Diagonals, diagonals_of};
pub use matrix::norms::{Spread, diagonal_variance};
pub use matrix::storage::{Storage, coefficient_transforms, transformed_words};
pub use matrix::transform::LinearTransform;
pub use plan::{BsgsPlan, GiantSteps, SwitchShape, TransformCost};
pub use prediction::SwitchErrors;
pub(crate) use rotations::rotation::raised_element;
pub use scratch::ScratchShape;

/// Error of encoding from computing the embedding in `f64`. With `u = 2^-53`, a diagonal has an error of at most
/// `4 u log2(n)` of its Euclidean norm ([`keywright_ckks::encoder::Embedding`]); a slot has, in the root mean square,
/// at most that times the largest value. Two more units are added to `log2(n)`, for the scale and the conversion to
/// integers.
pub const ENCODING_UNITS: f64 = 4.0;
