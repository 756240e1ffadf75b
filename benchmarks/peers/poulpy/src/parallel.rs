//! The measurements on poulpy's back end for several threads, which is 2 to 5% slower on one thread.

use poulpy_cpu_avx512::{NTT3x42CIIfmaRayon as EngineCi, NTT3x42IfmaRayon as Engine};

const BACKEND: &str = "ntt3x42-ifma-rayon";

#[expect(
    clippy::duplicate_mod,
    reason = "poulpy's back ends are types, and a generic would need dozens of bounds"
)]
#[path = "scheme.rs"]
pub mod scheme;

#[expect(clippy::duplicate_mod, reason = "as above")]
#[path = "bootstrap.rs"]
pub mod bootstrap;
