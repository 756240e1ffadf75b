//! Ternary secrets of fixed Hamming weight.

use alloc::vec::Vec;
use zeroize::Zeroizing;

use super::SecretRng;
use crate::RingError;

/// Fills `out` with a uniformly random vector of exactly `weight` entries `+-1` and zeros elsewhere.
///
/// A random permutation by sorting random keys with a data-independent network (Batcher's odd-even merge exchange), so
/// that no address depends on the positions. Keys have 61 random bits: two among `2^17` collide with probability
/// below `2^-28`, which only perturbs uniformity, never the weight.
///
/// # Errors
/// [`RingError::HammingWeight`] if `weight` exceeds the length.
pub fn sparse_ternary(rng: &mut SecretRng, weight: usize, out: &mut [i64]) -> Result<(), RingError> {
    if weight > out.len() {
        return Err(RingError::HammingWeight { weight, n: out.len() });
    }
    // Low two bits: the value plus one. High bits: the sort key.
    let mut tagged: Zeroizing<Vec<u64>> = Zeroizing::new(
        (0..out.len())
            .map(|i| {
                let word = rng.next_word();
                let sign = (word >> 2) & 1;
                let value = if i < weight { 2 * sign } else { 1 };
                (word & !7) | value
            })
            .collect(),
    );
    merge_exchange_sort(&mut tagged);
    for (sample, word) in out.iter_mut().zip(tagged.iter()) {
        *sample = (word & 3) as i64 - 1;
    }
    Ok(())
}

/// Knuth, TAOCP 3, algorithm 5.2.2M: compares and exchanges at positions that depend on the length alone.
fn merge_exchange_sort(data: &mut [u64]) {
    let n = data.len();
    if n < 2 {
        return;
    }
    let top = 1usize << (usize::BITS - 1 - (n - 1).leading_zeros());
    let mut p = top;
    while p > 0 {
        let (mut q, mut r, mut d) = (top, 0, p);
        loop {
            for i in 0..n - d {
                if i & p == r {
                    let (a, b) = (data[i], data[i + d]);
                    let (small, large) = (a.min(b), a.max(b));
                    data[i] = small;
                    data[i + d] = large;
                }
            }
            if q == p {
                break;
            }
            d = q - p;
            q >>= 1;
            r = p;
        }
        p >>= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng(byte: u8) -> SecretRng {
        SecretRng::from_entropy(&Zeroizing::new([byte; 32]))
    }

    #[test]
    fn network_sorts_every_length() {
        let mut rng = rng(3);
        for n in (0..70).chain([1000, 1024, 1025]) {
            let mut data: Vec<u64> = (0..n).map(|_| rng.next_word() % 50).collect();
            let mut expected = data.clone();
            expected.sort_unstable();
            merge_exchange_sort(&mut data);
            assert_eq!(data, expected, "length {n}");
        }
    }

    #[test]
    fn weight_is_exact_and_positions_are_spread() {
        const N: usize = 1 << 10;
        let mut counts = [0usize; N];
        let mut sum = 0i64;
        for round in 0..200 {
            let mut out = [0; N];
            sparse_ternary(&mut rng(round), 192, &mut out).unwrap();
            assert_eq!(out.iter().filter(|&&x| x != 0).count(), 192);
            assert!(out.iter().all(|x| x.abs() <= 1));
            sum += out.iter().sum::<i64>();
            out.iter().zip(&mut counts).for_each(|(x, c)| *c += x.unsigned_abs() as usize);
        }
        // Each position is hit 200 * 192/1024 = 37.5 times on average, deviation 5.5; signs sum to 0 +- 196.
        assert!(counts.iter().all(|&c| (4..72).contains(&c)));
        assert!(sum.abs() < 6 * 196);
        assert!(sparse_ternary(&mut rng(0), 3, &mut [0; 2]).is_err());
    }
}
