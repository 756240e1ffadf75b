//! The measurements on poulpy's back end for one thread.

use poulpy_cpu_avx512::{NTT3x42CIIfma as EngineCi, NTT3x42Ifma as Engine};

const BACKEND: &str = "ntt3x42-ifma";

#[path = "scheme.rs"]
pub mod scheme;

#[path = "bootstrap.rs"]
pub mod bootstrap;
