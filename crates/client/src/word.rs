use zeroize::DefaultIsZeroes;

/// A machine word that holds a residue: 32 bits for primes below `2^30`, 64 for those below `2^61`.
pub trait Word:
    DefaultIsZeroes + PartialEq + core::fmt::Debug + Send + Sync + sealed::Sealed + 'static
{
    /// The low bits of a word.
    fn from_u64(value: u64) -> Self;
    /// The same value.
    fn to_u64(self) -> u64;
    /// The signed value of which [`Self::from_u64`] kept the low bits.
    fn to_i64(self) -> i64;
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

    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.cast_signed().into()
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

    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.cast_signed()
    }
}
