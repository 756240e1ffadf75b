use zeroize::DefaultIsZeroes;

/// A machine word that holds a residue: 32 bits for primes below `2^30`, 64 for those below `2^61`.
pub trait Word:
    DefaultIsZeroes + PartialEq + core::fmt::Debug + Send + Sync + sealed::Sealed + 'static
{
    /// The low bits of a word.
    fn from_u64(value: u64) -> Self;
    /// The same value.
    fn to_u64(self) -> u64;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Word for u32 {
    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn to_u64(self) -> u64 {
        self.into()
    }
}

impl Word for u64 {
    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        value
    }

    #[inline(always)]
    fn to_u64(self) -> u64 {
        self
    }
}
