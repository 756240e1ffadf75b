use keywright_frame::packing::Residue;
use keywright_ring::{Modulus, Seed, StreamId, expander};
use zeroize::DefaultIsZeroes;

/// A machine word that holds a residue: 32 bits for primes below `2^30`, 64 for those below `2^61`.
pub trait Word:
    Residue + DefaultIsZeroes + PartialEq + core::fmt::Debug + Send + Sync + sealed::Sealed + 'static
{
    /// The signed value whose low bits [`Residue::from_u64`] kept.
    fn to_i64(self) -> i64;
    /// Residues of a uniform limb of [`expander`] from residue `start` on, a multiple of [`crate::CHUNK`].
    fn fill_uniform(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [Self]);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Word for u32 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.cast_signed().into()
    }

    fn fill_uniform(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [Self]) {
        expander::fill_uniform_narrow(seed, id, modulus, start, out);
    }
}

impl Word for u64 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.cast_signed()
    }

    fn fill_uniform(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [Self]) {
        expander::fill_uniform(seed, id, modulus, start, out);
    }
}
