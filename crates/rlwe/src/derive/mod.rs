//! Switching keys derived from a few master keys, by whoever has no secret.
//!
//! Hierarchical Galois keys of Lee, Lee, Kim and No (ePrint 2022/532) with seeded masters, digits counted in bits, and
//! decompositions shared among all keys that are derived from one. The maths, the noise and the assumption are written
//! down in `docs/explanation/derived-keys.md`.
//!
//! A key of `g` is, after its automorphism, `dnum` ciphertexts of `P g_j s(X^g)` under `s` modulo `Q P`. Rotated by `h`
//! with a *master key* over `Q P P'` they are those of `g h`. The key of 1 needs nobody: `(0, P g_j)`.

mod batch;
mod chain;
mod derivation;
mod masters;
mod plan;
#[cfg(feature = "std")]
mod supply;
mod tree;

pub use chain::{MAX_EXTRA_PRIMES, MasterParameters};
pub use derivation::Derivation;
pub use masters::MasterKeys;
pub use plan::DerivationPlan;
#[cfg(feature = "std")]
pub use supply::DerivedKeys;
pub use tree::{DEFAULT_HOPS, DerivationStep, DerivationTree, MAX_HOPS};
