use crate::error::in_range;
use crate::{ClientError, ClientParameters, Numbers};

/// Several small integers in one number: `k` integers of `b` bits are `x_0 + 2^b x_1 + .. + 2^(b (k - 1)) x_(k-1)`, in
/// units of the number's last place.
///
/// A server can add such numbers, and multiply them by small integers, while no sum of integers reaches `2^b`: every
/// group of a result is then the sum of the groups. It must not do more: products of ciphertexts mix integers of
/// different places, and an approximate computation moves the carries.
///
/// # Invariant
/// `b k <= 62`, and the largest group is a legal number of the given parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    bits: u32,
    each: usize,
}

impl Groups {
    /// Groups of as many integers of `bits` bits as a number of these parameters can hold.
    ///
    /// Decrypted integers are exact if the error of a number is below half a unit of its last place. For a fresh
    /// ciphertext this means a scale above `2^f` times twice that error.
    ///
    /// # Errors
    /// [`ClientError::Range`] if a number cannot hold one integer of this many bits.
    pub fn new(parameters: &ClientParameters, bits: u32) -> Result<Self, ClientError> {
        // The largest group of k integers is 2^(b k) - 1.
        let room = u64::from((parameters.fixed_point().max() as u64 + 1).ilog2());
        in_range("bits of a small integer", bits.into(), 1, room.min(32))?;
        Ok(Self { bits, each: (room / u64::from(bits)) as usize })
    }

    /// Integers in a number.
    pub fn each(&self) -> usize {
        self.each
    }

    /// The numbers for this many integers.
    pub fn count(&self, integers: usize) -> usize {
        integers.div_ceil(self.each)
    }

    /// Integers as numbers to encrypt, grouped as they are read, without a copy.
    ///
    /// # Errors
    /// [`ClientError::SmallInteger`] for an integer that is negative or has more bits.
    pub fn group<'n, T: Numbers + ?Sized>(&self, integers: &'n T) -> Result<Grouped<'n, T>, ClientError> {
        // A negative integer also has high bits.
        let all = (0..integers.count()).fold(0, |all, i| all | integers.at(i) as u64);
        if all >> self.bits != 0 {
            let outside = |&i: &usize| integers.at(i) as u64 >> self.bits != 0;
            let index = (0..integers.count()).find(outside).unwrap_or(0);
            return Err(ClientError::SmallInteger { index, bits: self.bits });
        }
        Ok(Grouped { groups: *self, integers })
    }

    /// The integers of decrypted numbers, as many as `out` holds; 0 after the last number.
    ///
    /// # Errors
    /// [`ClientError::Group`] for a number that is no group of such integers.
    pub fn split(&self, numbers: &[i64], out: &mut [i64]) -> Result<(), ClientError> {
        let bits = self.bits * self.each as u32;
        // A negative number also has high bits.
        if numbers.iter().fold(0, |all, &number| all | number as u64) >> bits != 0 {
            let index = numbers.iter().position(|&number| number as u64 >> bits != 0).unwrap_or(0);
            return Err(ClientError::Group { index, bits });
        }
        let mask = (1i64 << self.bits) - 1;
        out.fill(0);
        for (group, number) in out.chunks_mut(self.each).zip(numbers) {
            for (place, integer) in (0..).zip(group) {
                *integer = number >> (self.bits * place) & mask;
            }
        }
        Ok(())
    }
}

/// Integers, read as numbers of several of them: see [`Groups::group`].
#[derive(Debug, Clone, Copy)]
pub struct Grouped<'n, T: ?Sized> {
    groups: Groups,
    integers: &'n T,
}

impl<T: Numbers + ?Sized> Numbers for Grouped<'_, T> {
    fn count(&self) -> usize {
        self.groups.count(self.integers.count())
    }

    #[inline(always)]
    fn at(&self, index: usize) -> i64 {
        let Groups { bits, each } = self.groups;
        let start = index * each;
        let end = (start + each).min(self.integers.count());
        (start..end).rev().fold(0, |sum, i| sum << bits | self.integers.at(i))
    }
}
