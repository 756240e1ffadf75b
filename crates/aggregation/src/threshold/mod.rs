//! Sums that no client can decrypt alone: every one of `n` clients has a secret of its own, any `t` of them decrypt.
//!
//! The protocol of Mouchet, Troncoso-Pastoriza, Bossuat and Hubaux (*Multiparty Homomorphic Encryption from
//! Ring-Learning-with-Errors*, PETS 2021) with the access structure of Mouchet, Bertrand and Hubaux (ePrint 2022/780):
//!
//! 1. *Keys.* Party `i` samples a ternary `s_i` and publishes `b_i = -a s_i + e_i`; `a` comes from a seed that nobody chose. The joint
//!    public key is `(sum b_i, a)`, of the secret `S = sum s_i` that nobody has ([`joint_public_key`]).
//! 2. *Shares.* Party `i` shares `s_i` with a polynomial of degree `t - 1` over the ring, modulo every prime, and hands party `j` its
//!    value at `j` ([`Party::deal`]). What party `j` got, added, is its share `f(j)` of `S = f(0)` ([`KeyShare::combine`]).
//! 3. *Updates* are encrypted under the joint key, `(c_0, c_1)` of `D m`, and added.
//! 4. *Decryption.* `t` parties `T` that are still there each publish `lambda_j f(j) c_1 + u_j` ([`KeyShare::partial`]), `lambda_j` the
//!    Lagrange coefficient of `T` at 0 and `u_j` smudging. Their sum and `c_0` give `D m` and an error ([`finish`]).
//!
//! *Dropouts.* An update that does not arrive is not added. A party that vanishes before it decrypts costs one more exchange with
//! another set of `t`. Only the set-up needs all `n`.
//!
//! *Sizes.* `|e_ct| <= B = K 29 (2 N n + 1)` always, for `K` added encryptions: the products of a ternary with a sum of `n` errors
//! and of an error with a sum of `n` ternaries have at most `29 n` in each of `N` terms. A shift by `B` of a uniform number of `2^w`
//! values changes its distribution by at most `B / 2^w`; over all `V` coefficients of a sum that is at most `2^-40` with
//! `w = 40 + ceil(log2(V B))`. So `t - 1` parties and the server learn from the partial decryptions of a sum nothing but the sum, with that
//! distance. With `D > 2 (B + t 2^(w-1))` and `K M D + D / 2 <= (Q - 1) / 2` it is exact.

mod combine;
mod parameters;
mod party;

pub use combine::{add, encrypt, finish, joint_public_key};
pub use parameters::{MAX_PARTIES, STATISTICAL_BITS, ThresholdParameters};
pub use party::{KeyShare, Party};
