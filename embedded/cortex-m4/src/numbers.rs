use keywright_client::{ClientError, Numbers};

/// Number `i` is `7919 i mod (2 max + 1) - max`, computed on request, like a sensor's.
pub struct Pattern {
    /// How many there are.
    pub count: usize,
    /// Largest absolute value.
    pub max: i64,
}

impl Numbers for Pattern {
    fn count(&self) -> usize {
        self.count
    }

    fn at(&self, index: usize) -> i64 {
        // In one word: a sensor has its numbers and does not divide for them.
        i64::from(7919 * index as u32 % (2 * self.max as u32 + 1)) - self.max
    }
}

/// A platform whose randomness counts up from a byte, as in the vectors.
pub fn entropy(first: u8) -> impl FnMut(&mut [u8]) -> Result<(), ClientError> {
    let mut next = first;
    move |out| {
        for byte in out {
            *byte = next;
            next = next.wrapping_add(1);
        }
        Ok(())
    }
}
