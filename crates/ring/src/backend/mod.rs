//! Back ends: the same kernels for different instruction sets, with the same bits.
//!
//! [`default`] picks the fastest that the CPU has, once; the environment variable `KEYWRIGHT_BACKEND`
//! (`portable`, `avx2`, `avx512`) forces one. Every kernel takes canonical residues and gives canonical residues; lazy
//! ranges live inside kernels.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::conversion::{Column, Decomposer};
use crate::{Automorphism, Modulus, RingError, Seed, ShoupFactor, StreamId};

/// Which instruction set a back end is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// Plain Rust, any target.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, DQ, VL and IFMA.
    Avx512,
}

impl BackendKind {
    /// The name used in `KEYWRIGHT_BACKEND` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Negacyclic transforms modulo one prime.
pub trait NttPlan: Send + Sync {
    /// Coefficients to evaluations, in place; canonical in, canonical out.
    fn forward(&self, limb: &mut [u64]);
    /// Evaluations to coefficients, in place; canonical in, canonical out.
    fn inverse(&self, limb: &mut [u64]);
    /// Number of parts in which [`Self::convert_part`] goes through a limb; it depends on the degree alone.
    fn parts(&self) -> usize;
    /// Converts one part of the rows with a column ([`Backend::convert`]) and begins its transform, into `out`.
    fn convert_part(&self, column: &Column, rows: &[&[u64]], part: usize, out: &mut [u64]);
    /// Number of equal blocks in which [`Self::finish_block`] ends the transform of a limb.
    fn blocks(&self) -> usize;
    /// Ends the transform of block `block` of a limb all of whose parts are converted: canonical evaluations. Meanwhile
    /// `upcoming` is fetched from memory, as far as there is such an instruction; it may be of any length.
    fn finish_block(&self, block: usize, words: &mut [u64], upcoming: &[u64]);
    /// Evaluations of the polynomial whose residues are the inner product of `rows` with a column:
    /// [`Backend::convert`] followed by [`NttPlan::forward`].
    fn convert_forward(&self, column: &Column, rows: &[&[u64]], out: &mut [u64]) {
        for part in 0..self.parts() {
            self.convert_part(column, rows, part, out);
        }
        let size = out.len() / self.blocks();
        for (block, words) in out.chunks_exact_mut(size).enumerate() {
            self.finish_block(block, words, &[]);
        }
    }
}

/// Words of a part that a plan without a first pass of its own converts at once: eight rows of 16 KiB.
const PART_WORDS: usize = 2048;

/// The words of a part of a limb.
fn part_range(length: usize, part: usize) -> core::ops::Range<usize> {
    part * PART_WORDS..length.min((part + 1) * PART_WORDS)
}

/// One row of the uniform half of a key, for one digit and one prime.
#[derive(Debug, Clone, Copy)]
pub enum UniformRow<'a> {
    /// Stored residues.
    Stored(&'a [u64]),
    /// Expanded where it is used, from this residue of the stream on, a multiple of [`crate::expander::CHUNK_WORDS`].
    Seeded(&'a Seed, StreamId, usize),
}

/// The kernels. Slices of one call have equal length, a multiple of 128, unless said otherwise.
pub trait Backend: Send + Sync + Debug {
    /// Instruction set.
    fn kind(&self) -> BackendKind;
    /// Precomputes the transforms modulo a prime with the primitive `2N`-th root `psi`.
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan>;
    /// `a += b`.
    fn add_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]);
    /// `a -= b`.
    fn sub_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]);
    /// `a = -a`.
    fn neg_assign(&self, m: &Modulus, a: &mut [u64]);
    /// `out = a * b`.
    fn mul(&self, m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]);
    /// `acc += a * b`.
    fn mul_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]);
    /// `a = a * w`.
    fn mul_scalar_assign(&self, m: &Modulus, a: &mut [u64], w: ShoupFactor);
    /// `acc += a * w`.
    fn mul_scalar_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor);
    /// `out = (a - b) * w`: the last step of a division.
    fn sub_mul_scalar(&self, m: &Modulus, a: &[u64], b: &[u64], w: ShoupFactor, out: &mut [u64]);
    /// `out[i] = input[source(i)]`: an automorphism in evaluation form.
    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]);
    /// Rows of residues, see [`crate::conversion`].
    fn digit_rows(&self, decomposer: &Decomposer, limbs: &[&[u64]], rows: &mut [u64]);
    /// Inner product of rows with a column: residues modulo the column's prime.
    fn convert(&self, column: &Column, rows: &[&[u64]], out: &mut [u64]);
    /// `out_b = sum_j digits[j] * b[j]` and `out_a = sum_j digits[j] * a[j]`, reduced once per sum; at least one digit.
    fn inner_product(
        &self,
        m: &Modulus,
        digits: &[&[u64]],
        b: &[&[u64]],
        a: &[UniformRow<'_>],
        out_b: &mut [u64],
        out_a: &mut [u64],
    );
    /// A uniform limb from a seed, see [`crate::expander`].
    fn expand_uniform(&self, seed: &Seed, id: StreamId, m: &Modulus, out: &mut [u64]);
}

/// All back ends that this CPU can run, slowest first.
pub fn available() -> Vec<&'static dyn Backend> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "nothing to add"))]
    let mut list = alloc::vec![&portable::Portable as &dyn Backend];
    #[cfg(target_arch = "x86_64")]
    list.extend(avx2::Avx2::detect().into_iter().chain(avx512::Avx512::detect()));
    list
}

/// The back end with a given name (see [`BackendKind::name`]).
///
/// # Errors
/// [`RingError::BackendUnavailable`] if there is none or the CPU lacks it.
pub fn by_name(name: &str) -> Result<&'static dyn Backend, RingError> {
    let list = available();
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
            Err(_) => Ok(available().pop().unwrap_or(&portable::Portable)),
        })
        .clone()
}

/// The back end where there is no operating system to ask.
///
/// # Errors
/// None; the signature is that of the hosted form.
#[cfg(not(feature = "std"))]
pub fn default() -> Result<&'static dyn Backend, RingError> {
    Ok(&portable::Portable)
}
