use std::ops::Range;

use keywright_ckks::CkksParameters;
use keywright_ckks::encoder::Integers;
use keywright_ring::{Buffer, MIN_LOG_N};

use crate::CircuitError;

/// The form in which a transform keeps its diagonals.
///
/// A diagonal whose entries have the period `p`, a power of two, is a polynomial in `X^(N/2p)`: an element of a subring
/// of degree `2p`, with as many coefficients, and as many values modulo each prime. Where all diagonals of a transform
/// are real, half of the words of each determine the others, and are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Its values modulo each prime: `16 p (level + 1 + |special|)` bytes, half of them for real diagonals.
    Encoded,
    /// Its integer coefficients, one word each: `16 p` bytes, `8 p` for real diagonals. Each evaluation reduces and
    /// transforms them modulo each prime. Coefficients must be below `2^62`.
    Coefficients,
}

impl Storage {
    /// Bytes of diagonals of the given least periods over this many primes, if all are real or not.
    pub fn bytes(self, real: bool, periods: impl IntoIterator<Item = usize>, primes: usize) -> usize {
        let words: usize = periods.into_iter().map(|period| self.words(kept(real, period), primes)).sum();
        8 * words
    }

    /// Words of a diagonal of which so many coefficients are kept.
    fn words(self, coefficients: usize, primes: usize) -> usize {
        match self {
            Self::Encoded => coefficients * primes,
            Self::Coefficients => coefficients,
        }
    }
}

/// Coefficients of a diagonal that are kept, and values modulo a prime.
fn kept(real: bool, period: usize) -> usize {
    if real { period } else { 2 * period }
}

/// The number of whole-limb transforms of degree `N` that have as many butterflies as those of diagonals of the given
/// periods, kept as coefficients, modulo one prime: `sum M log2(M) / (N log2(N))`. `M` is the transformed degree, `2p`
/// or `2^MIN_LOG_N`.
pub fn coefficient_transforms(log_n: u32, periods: impl IntoIterator<Item = usize>) -> f64 {
    let butterflies = |log_m: u32| f64::from(log_m) * f64::from(1u32 << log_m);
    let sum: f64 = periods.into_iter().map(|period| butterflies(log_degree(period))).sum();
    sum / butterflies(log_n)
}

/// Words modulo one prime of diagonals of the given periods, if they are kept as coefficients and transformed.
pub fn transformed_words(periods: impl IntoIterator<Item = usize>) -> usize {
    periods.into_iter().map(|period| 1usize << log_degree(period)).sum()
}

/// Degree of the subring in which a diagonal is transformed.
fn log_degree(period: usize) -> u32 {
    (2 * period).trailing_zeros().max(MIN_LOG_N)
}

/// One diagonal among those of a transform.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its first word.
    offset: usize,
    period: usize,
    /// Largest magnitude of a coefficient.
    largest: f64,
}

impl Place {
    /// The degree of the ring in which it is transformed.
    pub(crate) fn transformed_words(&self) -> usize {
        1 << log_degree(self.period)
    }

    /// Largest magnitude of a coefficient.
    pub(crate) fn largest(&self) -> f64 {
        self.largest
    }
}

/// The diagonals of a transform, all in one piece of memory.
pub(crate) struct Stored {
    storage: Storage,
    real: bool,
    primes: usize,
    words: Buffer,
}

impl Stored {
    /// Memory of unspecified content for diagonals of the given periods, all real or not, and the place of each.
    pub(crate) fn unspecified(
        storage: Storage,
        real: bool,
        periods: &[usize],
        primes: usize,
    ) -> (Self, Vec<Place>) {
        let mut places = vec![Place { offset: 0, period: 1, largest: 0.0 }; periods.len()];
        // The longest first, so that each begins at a multiple of its length.
        let mut order: Vec<usize> = (0..periods.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(periods[i]));
        let mut offset = 0;
        for i in order {
            places[i] = Place { offset, period: periods[i], largest: 0.0 };
            offset += storage.words(kept(real, periods[i]), primes);
        }
        (Self { storage, real, primes, words: Buffer::unspecified(offset) }, places)
    }

    /// The memory of every diagonal, in the order of its places.
    pub(crate) fn rooms<'a>(&'a mut self, places: &[Place]) -> Vec<&'a mut [u64]> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&i| places[i].offset);
        let mut rooms: Vec<&mut [u64]> = places.iter().map(|_| &mut [][..]).collect();
        let mut rest = &mut self.words[..];
        for i in order {
            let words = self.storage.words(kept(self.real, places[i].period), self.primes);
            let (room, others) = rest.split_at_mut(words);
            rooms[i] = room;
            rest = others;
        }
        rooms
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    /// The form of storage.
    pub(crate) fn storage(&self) -> Storage {
        self.storage
    }

    /// Whether all diagonals are real, and half of each is kept.
    pub(crate) fn is_real(&self) -> bool {
        self.real
    }

    /// The values of an encoded diagonal modulo one prime, each once; their lower half if it is real.
    pub(crate) fn limb(&self, place: &Place, position: usize) -> &[u64] {
        debug_assert_eq!(self.storage, Storage::Encoded);
        let count = kept(self.real, place.period);
        &self.words[place.offset + count * position..][..count]
    }

    /// The coefficients of a diagonal; their first half if it is real.
    pub(crate) fn coefficients(&self, place: &Place) -> &[i64] {
        debug_assert_eq!(self.storage, Storage::Coefficients);
        &self.words.signed()[place.offset..][..kept(self.real, place.period)]
    }
}

impl Storage {
    /// Writes a diagonal, or what is kept of a real one, to its memory, over the given primes.
    ///
    /// # Errors
    /// [`CircuitError::CoefficientWidth`].
    pub(crate) fn write(
        self,
        parameters: &CkksParameters,
        integers: &Integers,
        index: usize,
        primes: &[usize],
        (place, room): (&mut Place, &mut [u64]),
    ) -> Result<(), CircuitError> {
        place.largest = integers.largest();
        match (self, integers.words()) {
            (Self::Coefficients, Some(words)) => {
                room.iter_mut().zip(words).for_each(|(out, &word)| *out = word as u64);
                Ok(())
            }
            (Self::Coefficients, None) => {
                Err(CircuitError::CoefficientWidth { index, bits: integers.largest().log2() })
            }
            (Self::Encoded, _) => {
                let ring = parameters.rlwe().ring();
                let degree = place.transformed_words();
                let count = room.len() / primes.len();
                let mut scratch = Buffer::unspecified(if count < degree { degree } else { 0 });
                for (limb, &prime) in room.chunks_exact_mut(count).zip(primes) {
                    let whole = if count == degree { &mut *limb } else { &mut scratch[..] };
                    integers.residues(ring.modulus(prime), whole);
                    ring.forward_subring_limb(prime, whole);
                    if count < degree {
                        let repeat = degree / (2 * place.period);
                        limb.iter_mut()
                            .zip(scratch.iter().step_by(repeat))
                            .for_each(|(out, value)| *out = *value);
                    }
                }
                Ok(())
            }
        }
    }
}

/// Words `words` of a limb of `n` words. Its lower half repeats every word of `half` equally often, and its upper half
/// is the lower one in reverse order.
pub(crate) fn mirrored<'a>(
    half: &'a [u64],
    n: usize,
    words: Range<usize>,
    scratch: &'a mut [u64],
) -> &'a [u64] {
    if words.end <= n / 2 {
        return repeated(half, n / 2, words, scratch);
    }
    let repeat = n / 2 / half.len();
    for (word, i) in scratch.iter_mut().zip(words) {
        *word = half[(n - 1 - i) / repeat];
    }
    scratch
}

/// Words `words` of the limb of `n` words that repeats every word of `limb` equally often: those of `limb`, or copies
/// in as many words of scratch. Values of a polynomial in `X^(N/2p)` occur in such runs, because entry `i` is the value
/// at `psi^(2 brv(i) + 1)`, and `N/2p` times the exponent depends on the upper bits of `i` alone.
pub(crate) fn repeated<'a>(
    limb: &'a [u64],
    n: usize,
    words: Range<usize>,
    scratch: &'a mut [u64],
) -> &'a [u64] {
    let repeat = n / limb.len();
    if repeat == 1 {
        return &limb[words];
    }
    // Both are powers of two: a run is within the words, or they are within a run.
    let first = words.start / repeat;
    match repeat {
        _ if repeat >= scratch.len() => scratch.fill(limb[first]),
        2 => expand::<2>(&limb[first..], scratch),
        4 => expand::<4>(&limb[first..], scratch),
        _ => expand_runs(repeat, &limb[first..], scratch),
    }
    scratch
}

/// Repeats every word `R` times, by stores of whole runs.
fn expand<const R: usize>(words: &[u64], out: &mut [u64]) {
    for (run, &word) in out.as_chunks_mut::<R>().0.iter_mut().zip(words) {
        *run = [word; R];
    }
}

/// The same with runs of a multiple of eight words.
fn expand_runs(repeat: usize, words: &[u64], out: &mut [u64]) {
    for (run, &word) in out.chunks_exact_mut(repeat).zip(words) {
        run.as_chunks_mut::<8>().0.iter_mut().for_each(|part| *part = [word; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_words_are_those_of_the_full_limb() {
        let n = 64;
        for length in [2, 4, 8, 16, 32, 64] {
            let limb: Vec<u64> = (1000..1000 + length as u64).collect();
            let full: Vec<u64> = (0..n).map(|k| (1000 + k / (n / length)) as u64).collect();
            for block in [8, 16, 64] {
                for start in (0..n).step_by(block) {
                    let words = start..start + block;
                    let mut scratch = vec![0; block];
                    assert_eq!(repeated(&limb, n, words.clone(), &mut scratch), &full[words]);
                }
            }
        }
    }

    #[test]
    fn the_upper_half_is_mirrored() {
        let n = 64;
        for length in [1, 4, 32] {
            let half: Vec<u64> = (1000..1000 + length as u64).collect();
            let lower: Vec<u64> = (0..n / 2).map(|k| half[k / (n / 2 / length)]).collect();
            let full: Vec<u64> = lower.iter().chain(lower.iter().rev()).copied().collect();
            for start in (0..n).step_by(16) {
                let mut scratch = vec![0; 16];
                assert_eq!(mirrored(&half, n, start..start + 16, &mut scratch), &full[start..start + 16]);
            }
        }
    }

    #[test]
    fn places_are_apart_and_aligned() {
        let periods = [4, 1, 512, 512, 2, 64];
        for (storage, real) in [
            (Storage::Encoded, false),
            (Storage::Encoded, true),
            (Storage::Coefficients, false),
            (Storage::Coefficients, true),
        ] {
            let (mut stored, places) = Stored::unspecified(storage, real, &periods, 3);
            assert_eq!(stored.bytes(), storage.bytes(real, periods, 3));
            assert!(places.iter().all(|place| place.offset % kept(real, place.period) == 0));
            for (i, room) in stored.rooms(&places).into_iter().enumerate() {
                assert_eq!(room.len(), storage.words(kept(real, periods[i]), 3));
                room.fill(i as u64);
            }
            for (i, place) in places.iter().enumerate() {
                let words = &stored.words[place.offset..][..storage.words(kept(real, periods[i]), 3)];
                assert!(words.iter().all(|&word| word == i as u64));
            }
        }
    }

    #[test]
    fn butterflies_of_subrings() {
        assert_eq!(coefficient_transforms(16, [1 << 15; 7]), 7.0);
        assert_eq!(coefficient_transforms(16, [1 << 7]), (10.0 / 16.0) / 64.0);
        assert_eq!(coefficient_transforms(16, [1, 1 << 14]), (10.0 / 16.0) / 64.0 + (15.0 / 16.0) / 2.0);
    }
}
