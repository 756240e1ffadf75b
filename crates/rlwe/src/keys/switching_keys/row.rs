#[cfg(feature = "std")]
use alloc::sync::Arc;
use core::fmt;

#[cfg(feature = "std")]
use keywright_ring::SharedWords;
use keywright_ring::{Evaluation, Poly};

/// A read-only polynomial of a key, in the memory of this process or in shared memory.
#[derive(Clone)]
pub struct KeyRow(Words);

#[derive(Clone)]
enum Words {
    Own(Poly<Evaluation>),
    /// `length` words from `first` on, a multiple of the ring degree `n`.
    #[cfg(feature = "std")]
    Shared {
        words: Arc<SharedWords>,
        first: usize,
        length: usize,
        n: usize,
    },
}

impl KeyRow {
    /// Limbs of `n` words each in shared memory, from word `first` on; `None` where the memory ends before.
    #[cfg(feature = "std")]
    pub fn shared(n: usize, limbs: usize, words: &Arc<SharedWords>, first: usize) -> Option<Self> {
        let length = n.checked_mul(limbs)?;
        words.get(first..first.checked_add(length)?)?;
        Some(Self(Words::Shared { words: words.clone(), first, length, n }))
    }

    /// Ring degree.
    #[inline]
    pub fn n(&self) -> usize {
        match &self.0 {
            Words::Own(poly) => poly.n(),
            #[cfg(feature = "std")]
            Words::Shared { n, .. } => *n,
        }
    }

    /// Number of limbs.
    pub fn limb_count(&self) -> usize {
        self.words().len() / self.n()
    }

    /// Residues modulo one prime.
    #[inline]
    pub fn limb(&self, i: usize) -> &[u64] {
        let n = self.n();
        &self.words()[i * n..(i + 1) * n]
    }

    /// All limbs in order.
    pub fn limbs(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.words().chunks_exact(self.n())
    }

    /// All words, limb-major.
    #[inline]
    pub fn words(&self) -> &[u64] {
        match &self.0 {
            Words::Own(poly) => poly.words(),
            #[cfg(feature = "std")]
            Words::Shared { words, first, length, .. } => &words[*first..first + length],
        }
    }
}

impl From<Poly<Evaluation>> for KeyRow {
    fn from(poly: Poly<Evaluation>) -> Self {
        Self(Words::Own(poly))
    }
}

impl PartialEq for KeyRow {
    fn eq(&self, other: &Self) -> bool {
        self.n() == other.n() && self.words() == other.words()
    }
}

impl fmt::Debug for KeyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRow(n = {}, limbs = {})", self.n(), self.limb_count())
    }
}
