//! Equality with the portable back end, bit for bit.

use alloc::vec::Vec;

use super::*;
use crate::{Ring, ntt_primes};

/// Runs only where the CPU can; says so where it cannot.
fn backend() -> Option<&'static dyn Backend> {
    let found = Avx512::detect();
    if found.is_none() {
        std::eprintln!("skipped: this CPU has no AVX-512 IFMA");
    }
    found
}

/// Residues that are random, all zero, all one less than the modulus, and a mix of both ends.
fn samples(m: &Modulus, n: usize) -> Vec<Vec<u64>> {
    let q = m.value();
    let mut state = q ^ 0x9E37_79B9_7F4A_7C15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let random = (0..n).map(|_| next() % q).collect();
    let ends = (0..n).map(|_| if next() % 2 == 0 { 0 } else { q - 1 }).collect();
    let mut unit = alloc::vec![0; n];
    unit[n / 2 + 5] = 1;
    alloc::vec![random, ends, alloc::vec![0; n], alloc::vec![q - 1; n], unit]
}

/// The largest and smallest usable primes of each width.
fn edge_primes(log_n: u32) -> Vec<u64> {
    let mut primes = Vec::new();
    for bits in [61, 51, 50, 49, 30] {
        primes.extend(ntt_primes(log_n, bits, 1, &[]).unwrap());
    }
    let step = 2u64 << log_n;
    for low in [1 << 50, 1 << 20] {
        let smallest = (low / step + 1..).map(|k| k * step + 1).find(|&p| crate::primes::is_prime(p));
        primes.extend(smallest);
    }
    primes
}

#[test]
fn transforms_agree() {
    let Some(backend) = backend() else { return };
    for log_n in 10..=17 {
        let primes = edge_primes(log_n);
        let fast = Ring::new(log_n, &primes, backend).unwrap();
        let slow = Ring::new(log_n, &primes, &Portable).unwrap();
        for (i, &q) in primes.iter().enumerate() {
            for (k, sample) in samples(fast.modulus(i), 1 << log_n).into_iter().enumerate() {
                let (mut a, mut b) = (sample.clone(), sample.clone());
                fast.forward_limb(i, &mut a);
                slow.forward_limb(i, &mut b);
                assert!(a == b, "forward, log_n {log_n}, prime {q}, sample {k}");
                a.copy_from_slice(&sample);
                b.copy_from_slice(&sample);
                fast.inverse_limb(i, &mut a);
                slow.inverse_limb(i, &mut b);
                assert!(a == b, "inverse, log_n {log_n}, prime {q}, sample {k}");
            }
        }
    }
}
