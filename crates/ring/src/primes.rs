//! Primes that have the roots of unity of the negacyclic NTT.

use alloc::vec::Vec;

use crate::{
    Modulus, RingError,
    modulus::{MAX_BITS, MIN_BITS},
};

/// Smallest supported `log2(N)`.
pub const MIN_LOG_N: u32 = 10;
/// Largest supported `log2(N)`.
pub const MAX_LOG_N: u32 = 17;

/// Deterministic Miller-Rabin for `n < 2^61`: the first twelve prime bases decide every 64-bit integer
/// (Sorenson and Webster, 2015).
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    for p in BASES {
        if n.is_multiple_of(p) {
            return n == p;
        }
    }
    let Ok(m) = Modulus::new(n) else { return false };
    let (d, s) = ((n - 1) >> (n - 1).trailing_zeros(), (n - 1).trailing_zeros());
    BASES.iter().all(|&a| {
        let mut x = m.pow(a, d);
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..s).any(|_| {
            x = m.mul(x, x);
            x == n - 1
        })
    })
}

/// The `count` largest primes of exactly `bits` bits that are 1 modulo `2N`, descending, leaving out `exclude`.
///
/// # Errors
/// [`RingError::NotEnoughPrimes`] if there are fewer; [`RingError::Degree`] and [`RingError::Width`] if there is
/// no such ring, or no modulus of that width.
pub fn ntt_primes(log_n: u32, bits: u32, count: usize, exclude: &[u64]) -> Result<Vec<u64>, RingError> {
    if !(MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
        return Err(RingError::Degree(log_n));
    }
    if !(MIN_BITS..=MAX_BITS).contains(&bits) {
        return Err(RingError::Width { bits });
    }
    let step = 1u64 << (log_n + 1);
    let (low, high) = (1u64 << (bits - 1), 1u64 << bits);
    let mut primes = Vec::with_capacity(count.min(1024));
    let mut candidate = if high > step { high - step + 1 } else { 0 };
    while primes.len() < count && candidate > low {
        if is_prime(candidate) && !exclude.contains(&candidate) {
            primes.push(candidate);
        }
        candidate = candidate.saturating_sub(step);
    }
    if primes.len() < count {
        return Err(RingError::NotEnoughPrimes {
            bits,
            two_n_log: log_n + 1,
            found: primes.len(),
            required: count,
        });
    }
    Ok(primes)
}

/// A primitive `2N`-th root of unity modulo a prime that is 1 modulo `2N`: the first `x^((q-1)/2N)`, over
/// `x = 2, 3, ...`, whose order is exactly `2N`. It is deterministic, so every build has the same evaluation order.
///
/// # Errors
/// [`RingError::NoRoot`] for a prime that is not 1 modulo `2N`.
pub fn primitive_root(m: &Modulus, log_n: u32) -> Result<u64, RingError> {
    let two_n = 1u64 << (log_n + 1);
    let q = m.value();
    if !(q - 1).is_multiple_of(two_n) {
        return Err(RingError::NoRoot { prime: q, two_n });
    }
    (2..q)
        .map(|x| m.pow(x, (q - 1) / two_n))
        .find(|&r| m.pow(r, two_n / 2) == q - 1)
        .ok_or(RingError::NotPrime(q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_trial_division() {
        for n in 0..20_000u64 {
            let expected = n >= 2 && (2..=n.isqrt()).all(|d| n % d != 0);
            assert_eq!(is_prime(n), expected, "{n}");
        }
        // The least strong pseudoprimes to the first 4, 5, 6, 7 and 8 prime bases (OEIS A014233), and the square of the
        // largest prime below 2^30.
        for n in [
            3_215_031_751,
            2_152_302_898_747,
            3_474_749_660_383,
            341_550_071_728_321,
            ((1 << 30) - 35) * ((1 << 30) - 35),
        ] {
            assert!(!is_prime(n), "{n}");
        }
        assert!(is_prime((1 << 60) - (1 << 18) + 1));
        assert!(is_prime((1 << 61) - 1));
    }

    #[test]
    fn widths_and_congruence_hold() {
        for log_n in [10, 13, 16, 17] {
            for bits in [30, 45, 50, 60, 61] {
                let primes = ntt_primes(log_n, bits, 8, &[]).unwrap();
                assert!(primes.windows(2).all(|w| w[0] > w[1]));
                for p in primes {
                    assert_eq!(p % (1 << (log_n + 1)), 1);
                    assert_eq!(64 - p.leading_zeros(), bits);
                }
            }
        }
        let all = ntt_primes(12, 50, 3, &[]).unwrap();
        assert_eq!(ntt_primes(12, 50, 2, &all[..1]).unwrap(), &all[1..]);
    }

    #[test]
    fn scarcity_is_an_error() {
        assert!(matches!(ntt_primes(17, 20, 10, &[]), Err(RingError::NotEnoughPrimes { .. })));
        assert_eq!(ntt_primes(9, 50, 1, &[]), Err(RingError::Degree(9)));
        for bits in [0, 1, 62, u32::MAX] {
            assert_eq!(ntt_primes(12, bits, 1, &[]), Err(RingError::Width { bits }));
        }
    }
}
