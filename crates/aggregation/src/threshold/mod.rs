//! Sums that no client can decrypt alone: every one of `n` clients has a secret of its own, any `t` of them decrypt.
//!
//! The protocol of Mouchet, Troncoso-Pastoriza, Bossuat and Hubaux (*Multiparty Homomorphic Encryption from
//! Ring-Learning-with-Errors*, PETS 2021) with the access structure of Mouchet, Bertrand and Hubaux (ePrint 2022/780):
//!
//! 1. *Keys.* Party `i` samples a ternary `s_i` and publishes `b_i = -a s_i + e_i`; `a` comes from a seed that nobody
//!    chose. The joint public key is `(sum b_i, a)`, of the secret `S = sum s_i` that nobody has
//!    ([`joint_public_key`]).
//! 2. *Shares.* Party `i` shares `s_i` with a polynomial of degree `t - 1` over the ring, modulo every prime, and hands
//!    party `j` its value at `j` ([`Party::deal`]). What party `j` got, added, is its share `f(j)` of `S = f(0)`
//!    ([`KeyShare::combine`]).
//! 3. *Updates* are encrypted under the joint key, `(c_0, c_1)` of `D m`, and added.
//! 4. *Decryption.* `t` parties `T` that are still there each publish `lambda_j f(j) c_1 + u_j + z_j`
//!    ([`KeyShare::partial`]), `lambda_j` the Lagrange coefficient of `T` at 0, `u_j` smudging and `z_j` masks that
//!    cancel over `T`. The sum of all and `c_0` give `D m` and an error ([`finish`]).
//!
//! *Masks.* Without `z_j`, which neither paper has, whoever sees one party answer for one sum in several sets `T` has
//! approximations of `lambda_T u` for one `u = f(j) c_1` and known `lambda_T`: a hidden-number problem. As `lambda_T`
//! are numbers of any size modulo `Q`, a lattice of a few dimensions gives `u` and with it the share, whatever the
//! smudging. The masks come from keys that each two parties share and from the question itself ([`Question`]), so the
//! answers of `T` are a fresh additive sharing of `S c_1`, and an answer beside which one of an honest party of `T` is
//! missing is uniform. `docs/explanation/threshold.md` has the proof.
//!
//! *Dropouts.* An update that does not arrive is not added. A party that vanishes before it decrypts costs one more
//! exchange with another set of `t`, all of whom answer anew; at most [`MAX_SETS`] sets are answered for a sum. Only
//! the set-up needs all `n`.
//!
//! *Sizes.* Errors of a sum are at most `B` but with a probability of `2^-62` ([`ThresholdParameters::error_bound`]). A
//! shift by `B` of a uniform number of `2^w` values changes its distribution by at most `B / 2^w`; over all `V`
//! coefficients of a sum and 8 sets that is at most `2^-40` with `w = 40 + ceil(log2(8 V B))`. With
//! `D > 2 (B + t 2^(w-1))` and `K M D + D / 2 <= (Q - 1) / 2` the sum is exact.

mod combine;
mod parameters;
mod party;
mod question;

pub use combine::{add, encrypt, finish, joint_public_key, require_partial, require_update};
pub use parameters::{MAX_PARTIES, MAX_SETS, STATISTICAL_BITS, ThresholdParameters};
pub use party::{KeyShare, Party, require_shape};
pub use question::{MaskKey, Question};
