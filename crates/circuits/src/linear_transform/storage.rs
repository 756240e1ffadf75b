use std::ops::Range;

use keywright_ckks::CkksParameters;
use keywright_ckks::encoder::Integers;
use keywright_ring::{Buffer, MIN_LOG_N};

use crate::CircuitError;

/// The form in which a transform keeps its diagonals.
///
/// A diagonal whose entries have the period `p`, a power of two, is a polynomial in `X^(N/2p)`: an element of a subring
/// of degree `2p`, with as many coefficients, and as many values modulo each prime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Its values modulo each prime: `16 p (level + 1 + |special|)` bytes.
    Encoded,
    /// Its integer coefficients, one word each: `16 p` bytes. Each evaluation reduces and transforms them modulo each
    /// prime. Coefficients must be below `2^62`.
    Coefficients,
}

impl Storage {
    /// Bytes of diagonals of the given least periods over this many primes.
    pub fn bytes(self, periods: impl IntoIterator<Item = usize>, primes: usize) -> usize {
        let words: usize = periods.into_iter().map(|period| self.words(period, primes)).sum();
        8 * words
    }

    fn words(self, period: usize, primes: usize) -> usize {
        match self {
            Self::Encoded => 2 * period * primes,
            Self::Coefficients => 2 * period,
        }
    }
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
pub(super) struct Place {
    /// Its first word.
    offset: usize,
    period: usize,
    /// Largest magnitude of a coefficient.
    largest: f64,
}

impl Place {
    /// Words that [`Stored::transform`] writes.
    pub(super) fn transformed_words(&self) -> usize {
        1 << log_degree(self.period)
    }
}

/// The diagonals of a transform, all in one piece of memory.
pub(super) struct Stored {
    storage: Storage,
    primes: usize,
    words: Buffer,
}

impl Stored {
    /// Memory of unspecified content for diagonals of the given periods, and the place of each.
    pub(super) fn unspecified(storage: Storage, periods: &[usize], primes: usize) -> (Self, Vec<Place>) {
        let mut places = vec![Place { offset: 0, period: 1, largest: 0.0 }; periods.len()];
        // The longest first, so that each begins at a multiple of its length.
        let mut order: Vec<usize> = (0..periods.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(periods[i]));
        let mut offset = 0;
        for i in order {
            places[i] = Place { offset, period: periods[i], largest: 0.0 };
            offset += storage.words(periods[i], primes);
        }
        (Self { storage, primes, words: Buffer::unspecified(offset) }, places)
    }

    /// The memory of every diagonal, in the order of its places.
    pub(super) fn rooms<'a>(&'a mut self, places: &[Place]) -> Vec<&'a mut [u64]> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&i| places[i].offset);
        let mut rooms: Vec<&mut [u64]> = places.iter().map(|_| &mut [][..]).collect();
        let mut rest = &mut self.words[..];
        for i in order {
            let (room, others) = rest.split_at_mut(self.storage.words(places[i].period, self.primes));
            rooms[i] = room;
            rest = others;
        }
        rooms
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    /// The form of storage.
    pub(super) fn storage(&self) -> Storage {
        self.storage
    }

    /// The values of an encoded diagonal modulo one prime, each once.
    pub(super) fn limb(&self, place: &Place, position: usize) -> &[u64] {
        debug_assert_eq!(self.storage, Storage::Encoded);
        &self.words[place.offset + 2 * place.period * position..][..2 * place.period]
    }

    /// The values modulo a prime of a diagonal kept as coefficients, repeated to [`Place::transformed_words`] in all.
    pub(super) fn transform(
        &self,
        parameters: &CkksParameters,
        place: &Place,
        prime: usize,
        out: &mut [u64],
    ) {
        debug_assert_eq!(self.storage, Storage::Coefficients);
        let ring = parameters.rlwe().ring();
        let words = &self.words.signed()[place.offset..][..2 * place.period];
        let modulus = ring.modulus(prime);
        // The modulus rounds to f64 by less than half of itself.
        if words.len() == out.len() && 2.0 * place.largest < modulus.value() as f64 {
            ring.forward_small_limb(prime, words, out, &[]);
        } else {
            parameters.embedding().residues_of_words(words, place.largest, modulus, out);
            ring.forward_subring_limb(prime, out);
        }
    }
}

impl Storage {
    /// Writes a diagonal to its memory, over the given primes.
    ///
    /// # Errors
    /// [`CircuitError::CoefficientWidth`].
    pub(super) fn write(
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
                let mut scratch = Buffer::unspecified(if 2 * place.period < degree { degree } else { 0 });
                for (limb, &prime) in room.chunks_exact_mut(2 * place.period).zip(primes) {
                    let whole = if limb.len() == degree { &mut *limb } else { &mut scratch[..] };
                    integers.residues(ring.modulus(prime), whole);
                    ring.forward_subring_limb(prime, whole);
                    if limb.len() < degree {
                        let repeat = degree / limb.len();
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

/// Words `words` of the limb of `n` words that repeats every word of `limb` equally often: those of `limb`, or copies
/// in as many words of scratch. Values of a polynomial in `X^(N/2p)` occur in such runs, because entry `i` is the value
/// at `psi^(2 brv(i) + 1)`, and `N/2p` times the exponent depends on the upper bits of `i` alone.
pub(super) fn repeated<'a>(
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
    fn places_are_apart_and_aligned() {
        let periods = [4, 1, 512, 512, 2, 64];
        for storage in [Storage::Encoded, Storage::Coefficients] {
            let (mut stored, places) = Stored::unspecified(storage, &periods, 3);
            assert_eq!(stored.bytes(), storage.bytes(periods, 3));
            assert!(places.iter().all(|place| place.offset % (2 * place.period) == 0));
            for (i, room) in stored.rooms(&places).into_iter().enumerate() {
                assert_eq!(room.len(), storage.words(periods[i], 3));
                room.fill(i as u64);
            }
            for (i, place) in places.iter().enumerate() {
                let words = &stored.words[place.offset..][..storage.words(periods[i], 3)];
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
