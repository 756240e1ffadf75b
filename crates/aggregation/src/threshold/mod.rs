//! Sums that no client can decrypt alone: each of `n` clients has its own secret, and any `t` of them decrypt together.
//!
//! The protocol of Mouchet, Troncoso-Pastoriza, Bossuat and Hubaux (*Multiparty Homomorphic Encryption from
//! Ring-Learning-with-Errors*, PETS 2021) with the access structure of Mouchet, Bertrand and Hubaux (ePrint 2022/780):
//!
//! 1. *Keys.* Party `i` samples a ternary `s_i` and publishes `b_i = -a s_i + e_i`; `a` comes from a seed that no party
//!    chose. The joint public key is `(sum b_i, a)`, of the secret `S = sum s_i` that no party has
//!    ([`joint_public_key`]).
//! 2. *Shares.* Party `i` shares `s_i` with a polynomial of degree `t - 1` over the ring, modulo every prime, and sends
//!    party `j` its value at `j` ([`Party::deal`]). Party `j` adds the values that it receives; the sum is its share
//!    `f(j)` of `S = f(0)` ([`KeyShare::combine`]).
//! 3. *Updates* are encrypted under the joint key, `(c_0, c_1)` of `D m`, and added.
//! 4. *Decryption.* The parties of a set `T` of `t` active ones each publish `lambda_j f(j) c_1 + u_j + z_j`
//!    ([`KeyShare::partial`]), with `lambda_j` the Lagrange coefficient of `T` at 0, `u_j` smudging and `z_j` masks
//!    that cancel over `T`. The sum of all and `c_0` give `D m` and an error ([`finish`]).
//!
//! *Masks.* Neither paper has `z_j`. Without them, an observer of one party's answers for one sum in several sets `T`
//! has approximations of `lambda_T u` for one `u = f(j) c_1` and known `lambda_T`: a hidden-number problem. As the
//! `lambda_T` are arbitrary numbers modulo `Q`, a lattice of a few dimensions gives `u` and with it the share, for any
//! smudging. The masks come from keys that each two parties share and from the question itself ([`Question`]). So the
//! answers of `T` are a fresh additive sharing of `S c_1`, and an answer is uniform if that of another honest party of
//! `T` is missing. `docs/explanation/threshold.md` has the proof.
//!
//! *Dropouts.* An update that does not arrive is not added. If a party vanishes before it decrypts, another set of `t`
//! parties must answer anew. At most [`MAX_SETS`] sets are answered for a sum. Only the set-up needs all `n`.
//!
//! *Sizes.* Errors of a sum are at most `B`, except with a probability of `2^-62`
//! ([`ThresholdParameters::error_bound`]). A shift by `B` changes the distribution of a uniform number of `2^w` values
//! by at most `B / 2^w`. Over all `V` coefficients of a sum and 8 sets that is at most `2^-40` with
//! `w = 40 + ceil(log2(8 V B))`. With `D > 2 (B + t 2^(w-1))` and `K M D + D / 2 <= (Q - 1) / 2` the sum is exact.

mod combine;
mod parameters;
mod party;
mod question;

pub use combine::{add, encrypt, finish, joint_public_key, require_partial, require_update};
pub use parameters::{MAX_PARTIES, MAX_SETS, STATISTICAL_BITS, ThresholdParameters};
pub use party::{KeyShare, Party, require_shape};
pub use question::{MaskKey, Question};
