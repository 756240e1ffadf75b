//! Ring arithmetic of Keywright: everything below keys and schemes.
//!
//! Polynomials of `Z_Q[X]/(X^N + 1)` are kept as residues modulo word-sized primes (RNS), one contiguous *limb* per
//! prime. The heavy kernels exist in several [`Backend`]s with bit-identical results; one is chosen at run time.
//! Conventions (order of the NTT, Galois elements, widths) are those of `docs/reference/conventions.md`.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod automorphism;
pub mod backend;
mod buffer;
mod chacha;
pub mod conversion;
mod error;
pub mod expander;
#[cfg(feature = "std")]
mod fork;
pub mod modulus;
pub mod poly;
pub mod primes;
mod process;
#[cfg(feature = "std")]
mod reserve;
mod ring;
pub mod sampling;
#[cfg(feature = "std")]
#[cfg_attr(not(target_os = "linux"), path = "unshared.rs")]
mod shared;
#[cfg(feature = "std")]
mod thread;
/// What `shared` is on other systems: its tests run everywhere.
#[cfg(all(test, feature = "std", target_os = "linux"))]
#[expect(dead_code, unreachable_pub, reason = "what other systems export")]
mod unshared;

pub use automorphism::{Automorphism, galois_inverse, rotation_element};
pub use backend::{Backend, BackendKind};
pub use buffer::{
    Buffer, BufferUse, OutOfMemory, buffer_use, recycled_bytes, reset_peak, return_large_blocks, trim_cache,
};
pub use conversion::{Conversion, Decomposer};
pub use error::RingError;
pub use expander::{Seed, StreamId};
#[cfg(feature = "std")]
pub use fork::{ForkMutex, PerProcess, RaceOnce};
pub use modulus::{Modulus, NARROW_BITS, ShoupFactor};
pub use poly::{Coefficient, Domain, Evaluation, Poly, Scaled};
pub use primes::ntt_primes;
pub use process::Process;
#[cfg(feature = "std")]
pub use reserve::Reserve;
pub use ring::{MAX_LOG_N, MIN_LOG_N, Ring};
#[cfg(feature = "std")]
pub use shared::{SharedFile, SharedWords, SharedWriter};
#[cfg(feature = "std")]
pub use thread::start_thread;
