//! Derives switching keys from a few master keys, without the secret.
//!
//! Hierarchical Galois keys of Lee, Lee, Kim and No (ePrint 2022/532) with seeded masters, digits counted in bits, and
//! decompositions shared among all keys that are derived from one. `docs/explanation/derived-keys.md` has the maths,
//! the noise and the assumption.
//!
//! After its automorphism, a key of `g` is `dnum` ciphertexts of `P g_j s(X^g)` under `s` modulo `Q P`. Rotating them
//! by `h` with a *master key* over `Q P P'` gives those of `g h`. The key of 1 needs no secret: `(0, P g_j)`.

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
