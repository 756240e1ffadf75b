//! Linear transforms of slots by diagonals: baby-step giant-step with double hoisting (Bossuat, Mouchet,
//! Troncoso-Pastoriza and Hubaux, Eurocrypt 2021, algorithm 6).
//!
//! For `n` slots, `diag_r[k] = M[k, (k + r) mod n]`. With `r = i + j`, baby step `i = r mod n1` and giant step `j`,
//!
//! ```text
//! M v = sum_j rot( sum_i rot(diag_{i+j}, -j) * rot(v, i), j ).
//! ```
//!
//! 1. *Baby steps.* The ciphertext is decomposed once. `u_i = P rot(v, i)` is left modulo `Q P`: no division. Baby
//!    steps in tiers ([`BsgsPlan::tier`]) do this for the input and for what each hop, a key switch with division,
//!    makes of it: more time, fewer keys.
//! 2. *Products.* `w_j = sum_i rot(diag_{i+j}, -j) u_i` modulo `Q P`, with diagonals encoded at scale `q_level` over
//!    the primes of `Q` and `P`; one lazily reduced inner product for each giant step and prime.
//! 3. *Giant steps.* Only the second half of `w_j` is divided by `P`, and switched; the result stays modulo `Q P`. The
//!    first half joins it there, the rotation is applied and the sum over `j` is taken modulo `Q P`. Chained giant
//!    steps ([`GiantSteps::Chain`]) do this to the sum so far, one `w_j` after the other.
//! 4. One division by `P q_level` for the sum: the division by `P` and the rescaling are one. The scale is the input's.
//!
//! With keys that have routes ([`keywright_rlwe::KeyRoutes`]) baby steps are made by the hops of their group: what is
//! rotated again, and what a key makes that removes other primes than `P`, is a whole key switch, a tier of its own,
//! and multiplied with `P`. A giant step of several hops divides both halves of `w_j`, makes all hops but the last, and
//! multiplies the first half with `P` again.
//!
//! `P` is the product of all primes that a key switch removes: special primes and, for keys used with coarser digits,
//! dropped ciphertext primes.
//!
//! # Error
//! All deviations are in units of the message, `D` the scale, `V` a variance of coefficients (see
//! [`keywright_rlwe::noise`]) and `s` the number of coefficients that meet in a slot. `|M| = max_k sum_r |diag_r[k]|`.
//!
//! * The input's own error: at most `|M|` times its deviation, whatever the dependencies between slots.
//! * Encoding rounds the `2p` coefficients of each of the `d` diagonals, of period `p`, by at most 1/2, independently:
//!   each slot of a diagonal is off by `sqrt(2p/12) / q_level`, and the sum of `d` of them times the input's values by
//!   `sqrt(d 2p/12) / q_level` times their magnitude. The embedding is computed in `f64`: [`ENCODING_UNITS`].
//! * Every baby step adds `sqrt(V_b s) / D`, `V_b` of a switch without the rounding of its division, to a term that is
//!   then multiplied by its diagonals: at most `|M'| sqrt(V_b s) / D` in sum, `M'` without the diagonals that need no
//!   rotation.
//! * Every hop adds `sqrt(V_s s) / D`, `V_s` of a whole switch, to every tier after it: times `|M''|`, `M''` being the
//!   diagonals of those tiers, and these are added.
//! * A tier of a route likewise, times the diagonals of what hangs on it; sums of the largest rows of single baby steps
//!   bound them. Each further hop of a giant step adds `sqrt(V_s s) / (D q_level)`, and the first division rounds both
//!   halves: `V_d`.
//! * Every giant step switches at scale `D q_level`: `sqrt((V_g + |S|^2/12) s) / (D q_level)`, `|S|^2/12` for the
//!   rounding of the second half alone, the norm being that of the secret. The steps' deviations are added.
//! * The division at the end rounds once, independently: `sqrt(V_d s) / D`.
//!
//! With [`Spread::RootMeanSquare`] the deviation of one value is its root mean square over all slots. `|M| e` is then
//! bounded by `|M|_2 |e|`, and `|M|_2` is the Euclidean norm of each row if `M` is a multiple of a unitary matrix; the
//! errors of different slots of one key switch or rounding are uncorrelated, as are those of different keys, so that
//! they grow by the Euclidean norm of a row, too.

mod baby_steps;
mod diagonals;
mod evaluate;
mod giant_steps;
mod keys;
mod norms;
mod plan;
mod prediction;
mod products;
mod raised;
mod rotation;
mod scratch;
mod storage;
mod tiers;
mod transform;

pub use diagonals::{Diagonals, diagonals_of};
pub use evaluate::evaluate;
pub use norms::Spread;
pub use plan::{BsgsPlan, GiantSteps, SwitchShape, TransformCost};
pub use prediction::{SwitchErrors, diagonal_variance};
pub(crate) use raised::evaluate_raised;
pub(crate) use rotation::raised_element;
pub use scratch::ScratchShape;
pub use storage::{Storage, coefficient_transforms, transformed_words};
pub use transform::LinearTransform;

/// Error of encoding that comes from computing the embedding in `f64`: with `u = 2^-53`, a diagonal is off by at most
/// `4 u log2(n)` of its Euclidean norm ([`keywright_ckks::encoder::Embedding`]), so a slot, in the root mean square, by
/// that times the largest value. Two more are counted with `log2(n)`, for the scale and the conversion to integers.
pub const ENCODING_UNITS: f64 = 4.0;
