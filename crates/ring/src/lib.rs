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
pub mod conversion;
mod error;
mod memory;
pub mod modulus;
pub mod poly;
pub mod primes;
mod process;
mod randomness;
mod ring;
pub mod sampling;

pub use automorphism::{Automorphism, galois_inverse, rotation_element};
pub use backend::{Backend, BackendKind};
pub use conversion::{Conversion, Decomposer};
pub use error::RingError;
pub use memory::buffer::{
    Buffer, BufferUse, buffer_use, keep_large_blocks, recycled_bytes, reset_peak, trim_cache,
};
pub use memory::out_of_memory::OutOfMemory;
#[cfg(feature = "std")]
pub use memory::reserve::Reserve;
#[cfg(feature = "std")]
pub use memory::shared::{SharedFile, SharedWords, SharedWriter};
#[cfg(feature = "std")]
pub use memory::thread::start_thread;
pub use modulus::{MAX_BITS, MIN_BITS, Modulus, NARROW_BITS, ShoupFactor};
pub use poly::{Coefficient, Domain, Evaluation, Poly, Scaled};
pub use primes::{MAX_LOG_N, MIN_LOG_N, ntt_primes};
pub use process::Process;
#[cfg(feature = "std")]
pub use process::fork::{ForkMutex, PerProcess, RaceOnce};
pub use randomness::expander;
pub use randomness::expander::{Seed, StreamId};
pub use ring::Ring;
