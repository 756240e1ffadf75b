//! ChaCha20 as a generator of secrets. No output is drawn twice, even across forks.

use zeroize::{Zeroize, Zeroizing};

use crate::randomness::chacha::{self, CHUNK_BLOCKS, CHUNK_WORDS};
use crate::{Backend, Process, RingError, Seed, backend};

/// ChaCha20 (RFC 8439's block function with a 64-bit block number and a nonce of zero) as a generator of secrets. Its
/// state is wiped on drop and never printed.
///
/// # In a forked child
/// A child has a copy of the state. Every draw checks that the process is still the one in which the generator was made
/// or last drew. If not, the generator first takes a new key: ChaCha20 of the old key and of fresh randomness of the
/// operating system, with the child's identity as its nonce. So no draw is repeated, no matter what holds the generator
/// or what it was made from. A generator made from *given* entropy can then no longer repeat its promised output, so
/// [`Self::begin`] and [`Self::split`] refuse it in a child.
pub struct SecretRng {
    key: [u32; 16],
    /// Number of the next block, a multiple of [`CHUNK_BLOCKS`].
    next_block: u64,
    /// Key stream that was computed and not yet drawn.
    chunk: [u64; CHUNK_WORDS],
    /// How much of it was drawn, in units of 32 bits.
    used: usize,
    backend: &'static dyn Backend,
    source: Source,
    /// The process in which it was made, or took its last key.
    process: Process,
    /// The process in which the current operation began.
    operation: Process,
    /// Words drawn in bulk since the identity was last checked.
    unseen: usize,
}

/// Words that may be drawn in bulk before the identity is checked again: the system call then costs a hundredth of the
/// draws.
const UNSEEN: usize = 1 << 13;

/// The source of the first key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The operating system, which can be asked again.
    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "there is no operating system to ask"))]
    System,
    /// The caller.
    Given,
    /// The caller, in the process of that number, an ancestor of this one.
    Copied(u32),
}

impl SecretRng {
    /// A generator from 32 bytes of entropy. The same bytes give the same secrets: use it only for tests and vectors,
    /// or on a platform that supplies its own entropy.
    pub fn from_entropy(entropy: &Zeroizing<[u8; 32]>) -> Self {
        Self::new(entropy, Source::Given)
    }

    /// A generator from the operating system's entropy.
    ///
    /// # Errors
    /// [`RingError::Randomness`] if the operating system returns no random bytes.
    #[cfg(feature = "std")]
    pub fn system() -> Result<Self, RingError> {
        Ok(Self::new(&system_entropy()?, Source::System))
    }

    fn new(entropy: &Zeroizing<[u8; 32]>, source: Source) -> Self {
        // If the environment names a back end that is missing, rings cannot be made, and their error says so.
        let backend = backend::default().unwrap_or_else(|_| backend::portable());
        let process = Process::current();
        Self {
            key: chacha::keyed(entropy),
            next_block: 0,
            chunk: [0; CHUNK_WORDS],
            used: 2 * CHUNK_WORDS,
            backend,
            source,
            process,
            operation: process,
            unseen: UNSEEN,
        }
    }

    /// The back end that samplers compute with.
    pub(super) fn backend(&self) -> &'static dyn Backend {
        self.backend
    }

    /// Begins an operation, as everything that draws and can fail must. A generator from the system takes a new key
    /// with fresh entropy, so later draws are new even if its state was copied unseen, as by the snapshot of a virtual
    /// machine. A generator from given entropy is refused if a fork copied it.
    ///
    /// # Errors
    /// [`RingError::Forked`]; [`RingError::Randomness`] if the operating system returns no random bytes.
    pub fn begin(&mut self) -> Result<(), RingError> {
        let owner = match self.source {
            #[cfg(feature = "std")]
            Source::System => {
                self.take_new_key(&system_entropy()?);
                self.operation = self.process;
                return Ok(());
            }
            Source::Given if !self.process.is_current() => self.process.id(),
            Source::Copied(owner) => owner,
            _ => return Ok(()),
        };
        Err(RingError::Forked { owner, process: Process::current().id() })
    }

    /// Refuses to continue an operation in a child that was forked during it. The parent has the earlier draws, and the
    /// child draws anew: both would use one seed, or one mask, with different errors, and the mean of many errors tends
    /// to zero. Code that draws must call this before any drawn value leaves it, and again after a caller's code has
    /// run.
    ///
    /// # Errors
    /// [`RingError::Forked`].
    pub fn require_operation(&self) -> Result<(), RingError> {
        if self.operation.is_current() {
            return Ok(());
        }
        Err(RingError::Forked { owner: self.operation.id(), process: Process::current().id() })
    }

    /// Takes a new key in a child, before any key stream that was already computed is drawn. Costs a load.
    #[inline]
    fn look(&mut self) {
        if !self.process.is_generation() {
            self.leave_parent();
        }
    }

    /// The same, by the identity too.
    fn look_closely(&mut self) {
        self.unseen = 0;
        if !self.process.is_current() {
            self.leave_parent();
        }
    }

    #[cold]
    fn leave_parent(&mut self) {
        if self.source == Source::Given {
            self.source = Source::Copied(self.process.id());
        }
        // If the system returns no randomness, the identity alone distinguishes the children of one process.
        #[cfg(feature = "std")]
        let fresh = system_entropy().unwrap_or_default();
        #[cfg(not(feature = "std"))]
        let fresh = Zeroizing::default();
        self.take_new_key(&fresh);
    }

    /// ChaCha20 of the old key and fresh entropy, with the process as its nonce.
    fn take_new_key(&mut self, fresh: &Zeroizing<[u8; 32]>) {
        self.process = Process::current();
        let fresh = Zeroizing::new(chacha::keyed(fresh));
        self.key[4..12].iter_mut().zip(&fresh[4..12]).for_each(|(word, fresh)| *word ^= fresh);
        self.key[14..].copy_from_slice(&self.process.nonce());
        self.backend.key_stream(&self.key, 0, &mut self.chunk);
        let mut entropy = Zeroizing::new([0; 32]);
        for (bytes, word) in entropy.chunks_exact_mut(8).zip(&self.chunk) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.key = chacha::keyed(&entropy);
        self.chunk.zeroize();
        (self.next_block, self.used) = (0, 2 * CHUNK_WORDS);
    }

    /// Computes the next chunk.
    fn refill(&mut self) {
        self.look_closely();
        self.backend.key_stream(&self.key, self.next_block, &mut self.chunk);
        self.next_block += CHUNK_BLOCKS as u64;
        self.used = 0;
    }

    fn next_half(&mut self) -> u32 {
        self.look();
        if self.used == 2 * CHUNK_WORDS {
            self.refill();
        }
        let half = self.chunk[self.used / 2] >> (32 * (self.used % 2));
        self.used += 1;
        half as u32
    }

    /// Next 64 uniform bits.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        u64::from(self.next_half()) | u64::from(self.next_half()) << 32
    }

    /// Fills a slice with uniform words.
    pub fn fill_words(&mut self, out: &mut [u64]) {
        self.unseen += out.len();
        if self.unseen > UNSEEN {
            self.look_closely()
        } else {
            self.look()
        }
        if !self.used.is_multiple_of(2) {
            out.iter_mut().for_each(|word| *word = self.next_word());
            return;
        }
        let left = &self.chunk[self.used / 2..];
        let (first, rest) = out.split_at_mut(left.len().min(out.len()));
        first.copy_from_slice(&left[..first.len()]);
        self.used += 2 * first.len();
        // Whole chunks are written directly to `out`.
        let (whole, last) = rest.split_at_mut(rest.len() / CHUNK_WORDS * CHUNK_WORDS);
        self.backend.key_stream(&self.key, self.next_block, whole);
        self.next_block += (whole.len() / CHUNK_WORDS * CHUNK_BLOCKS) as u64;
        last.iter_mut().for_each(|word| *word = self.next_word());
    }

    /// Fills a slice with uniform bytes.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        self.look_closely();
        for bytes in out.chunks_mut(4) {
            bytes.copy_from_slice(&self.next_half().to_le_bytes()[..bytes.len()]);
        }
    }

    /// A fresh seed for public, expandable data.
    pub fn public_seed(&mut self) -> Seed {
        let mut bytes = [0; 32];
        self.fill_bytes(&mut bytes);
        Seed(bytes)
    }

    /// An independent generator, for one operation or a parallel worker.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn split(&mut self) -> Result<Self, RingError> {
        self.begin()?;
        let mut entropy = Zeroizing::new([0; 32]);
        self.fill_bytes(&mut *entropy);
        Ok(Self::new(&entropy, self.source))
    }
}

#[cfg(feature = "std")]
fn system_entropy() -> Result<Zeroizing<[u8; 32]>, RingError> {
    use alloc::string::ToString;

    let mut entropy = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *entropy).map_err(|error| RingError::Randomness(error.to_string()))?;
    Ok(entropy)
}

impl Drop for SecretRng {
    fn drop(&mut self) {
        self.key.zeroize();
        self.chunk.zeroize();
    }
}

impl core::fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecretRng(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    /// Every mixture of requests gives the key stream of an independent implementation.
    #[test]
    fn requests_read_one_stream() {
        let key = [5; 32];
        let (mut ours, mut reference) = (SecretRng::from_entropy(&key.into()), ChaCha20Rng::from_seed(key));
        for round in 0..200usize {
            let length = [0, 1, 2, 7, 63, 64, 127, 128, 129, 300, 1000][round % 11];
            let mut words = alloc::vec![0; length];
            ours.fill_words(&mut words);
            assert!(words.iter().all(|&word| word == reference.next_u64()), "round {round}");
            assert_eq!(ours.next_word(), reference.next_u64());
            let (mut bytes, mut expected) = (alloc::vec![0; round % 41], alloc::vec![0; round % 41]);
            ours.fill_bytes(&mut bytes);
            reference.fill_bytes(&mut expected);
            assert_eq!(bytes, expected, "round {round}");
        }
    }

    /// Two copies that no sign distinguishes, such as two virtual machines of one snapshot: they draw the same values
    /// until an operation begins.
    #[cfg(feature = "std")]
    #[test]
    fn operations_begin_with_fresh_entropy() {
        let copies = || [(); 2].map(|()| SecretRng::new(&[7; 32].into(), Source::System));
        let [mut first, mut second] = copies();
        assert_eq!(first.next_word(), second.next_word());
        first.begin().unwrap();
        second.begin().unwrap();
        assert_ne!(first.next_word(), second.next_word());
        let [first, second] = copies().map(|mut rng| rng.split().unwrap().next_word());
        assert_ne!(first, second);
        // A copy from given entropy stays deterministic.
        let mut given = SecretRng::from_entropy(&[7; 32].into());
        given.begin().unwrap();
        let [mut copy, _] = copies();
        assert_eq!(given.next_word(), copy.next_word());
    }

    /// The block number has 64 bits.
    #[test]
    fn block_numbers_carry() {
        let key = [6; 32];
        let mut ours = SecretRng::from_entropy(&key.into());
        ours.next_block = u64::from(u32::MAX - 15);
        let mut reference = ChaCha20Rng::from_seed(key);
        reference.set_block_pos(u64::from(u32::MAX - 15));
        let mut words = alloc::vec![0; 5 * CHUNK_WORDS];
        ours.fill_words(&mut words);
        assert!(words.iter().all(|&word| word == reference.next_u64()));
        assert_eq!(ours.next_word(), reference.next_u64());
    }
}
