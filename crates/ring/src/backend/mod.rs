//! Back ends: the same kernels for different instruction sets, with bit-identical results.
//!
//! [`default`] picks the fastest back end that the CPU supports, once. The environment variable `KEYWRIGHT_BACKEND`
//! (`portable`, `avx2`, `avx512`, `neon`) forces one; `counted` counts what the fastest one computes. Every kernel
//! takes canonical residues and returns canonical residues; lazy ranges live inside kernels.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(feature = "std")]
mod counted;
mod diagonals;
mod kernels;
mod methods;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little", target_feature = "neon")
))]
mod narrow_kernels;
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
mod neon;
mod planes;
mod portable;
mod sampling;
mod switching;

#[cfg(feature = "std")]
pub use counted::{COUNTERS, counts};
pub use diagonals::{Diagonals, Term};
pub use kernels::{Kernels, NttPlan, Quotient};
pub use planes::Planes;
pub use sampling::Sampling;
pub use switching::{KeySwitching, UniformRow};

use alloc::vec::Vec;
use core::fmt::Debug;

use crate::RingError;
use planes::{require_length, require_planes, require_planes_mut};

/// The instruction set of a back end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// Plain Rust, any target.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, DQ, VL, IFMA and VBMI2.
    Avx512,
    /// NEON of 64-bit ARM.
    Neon,
}

impl BackendKind {
    /// The name used in `KEYWRIGHT_BACKEND` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }
}

/// One instruction set: the kernels of all clients, reached by one choice at run time. [`Diagonals`] are above
/// [`KeySwitching`], which is above the arithmetic of [`Kernels`].
pub trait Backend: Diagonals + Sampling + Planes + Debug {
    /// Instruction set.
    fn kind(&self) -> BackendKind;
}

/// All back ends that this CPU can run, slowest first.
pub fn available() -> Vec<&'static dyn Backend> {
    let list = core::iter::once(portable());
    #[cfg(target_arch = "x86_64")]
    let list = list.chain(avx2::Avx2::detect()).chain(avx512::Avx512::detect());
    #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
    let list = list.chain(neon::Neon::detect());
    list.collect()
}

/// The back end that every machine has; it defines the results of all others.
pub fn portable() -> &'static dyn Backend {
    &portable::Portable
}

/// The back end with a given name (see [`BackendKind::name`]), or `counted`, the fastest with counters.
///
/// # Errors
/// [`RingError::BackendUnavailable`] if no back end has this name, or the CPU cannot run it.
pub fn by_name(name: &str) -> Result<&'static dyn Backend, RingError> {
    let list = available();
    #[cfg(feature = "std")]
    if name == "counted" {
        static COUNTED: std::sync::OnceLock<counted::Counted> = std::sync::OnceLock::new();
        return Ok(COUNTED.get_or_init(|| counted::Counted(available().pop().unwrap_or_else(portable))));
    }
    list.iter().find(|b| b.kind().name() == name).copied().ok_or_else(|| {
        let names: Vec<_> = list.iter().map(|b| b.kind().name()).collect();
        RingError::BackendUnavailable(name.into(), names.join(", "))
    })
}

/// The back end of this process: `KEYWRIGHT_BACKEND` if set, else the fastest. Decided at the first call.
///
/// # Errors
/// [`RingError::BackendUnavailable`] if the variable names one that cannot run here.
#[cfg(feature = "std")]
pub fn default() -> Result<&'static dyn Backend, RingError> {
    use std::sync::OnceLock;
    static CHOICE: OnceLock<Result<&'static dyn Backend, RingError>> = OnceLock::new();
    CHOICE
        .get_or_init(|| match std::env::var("KEYWRIGHT_BACKEND") {
            Ok(name) => by_name(&name),
            Err(_) => Ok(available().pop().unwrap_or_else(portable)),
        })
        .clone()
}

/// The back end of a target without an operating system.
///
/// # Errors
/// None; the signature is that of the hosted form.
#[cfg(not(feature = "std"))]
pub fn default() -> Result<&'static dyn Backend, RingError> {
    Ok(portable())
}
