use keywright_ring::{Backend, Modulus};

use super::assert_limb;
use crate::oracle;
use crate::samples::{SplitMix64, edge_primes};

/// The coefficients of `f + X^(M/2) g` by definition, of polynomials whose coefficients are below `2^61`.
pub fn halves_are_joined(backend: &'static dyn Backend) {
    for half in [1, 2, 4, 8, 16, 512, 1024] {
        let mut random = SplitMix64(half as u64);
        let mut kept = || -> Vec<i64> {
            random.residues(1 << 62, half).into_iter().map(|word| word as i64 - (1 << 61)).collect()
        };
        let (f, g) = (kept(), kept());
        let whole = |kept: &[i64]| -> Vec<i64> {
            let mirrored = kept.iter().skip(1).rev().map(|word| -word);
            kept.iter().copied().chain([0]).chain(mirrored).collect()
        };
        for second in [None, Some(&g[..])] {
            let mut expected = whole(&f);
            for (i, word) in second.map(whole).into_iter().flatten().enumerate() {
                let place = i + half;
                let sign = if place < 2 * half { 1 } else { -1 };
                expected[place % (2 * half)] += sign * word;
            }
            let mut out = vec![i64::MAX; 2 * half];
            backend.join_halves(&f, second, &mut out);
            assert_eq!(out, expected, "{} halves of {half} words", 1 + usize::from(second.is_some()));
        }
    }
}

/// Sums and differences of values with those in reverse order, modulo every edge prime, of random and of largest
/// residues.
pub fn halves_are_separated(backend: &'static dyn Backend) {
    for q in edge_primes(10) {
        #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
        let m = &Modulus::new(q).unwrap();
        let mut random = SplitMix64(q);
        for n in [32, 64, 1024] {
            for largest in [false, true] {
                let values = if largest { vec![q - 1; n] } else { random.residues(q, n) };
                let factors = if largest { vec![q - 1; 2] } else { random.residues(q, 2) };
                let entry = |i: usize| {
                    let (low, high) = (values[i % (n / 2)], values[n - 1 - i % (n / 2)]);
                    match i < n / 2 {
                        true => oracle::mul(oracle::add(low, high, q), factors[0], q),
                        false => oracle::mul(oracle::add(high, q - low, q), factors[1], q),
                    }
                };
                let expected: Vec<u64> = (0..n).map(entry).collect();
                let mut seen = values.clone();
                backend.separate_halves(m, [0, 1].map(|k| m.shoup(factors[k])), &mut seen);
                assert_limb(&seen, &expected, || format!("{n} values, largest = {largest}, mod {q}"));
            }
        }
    }
}
