//! Deterministic inputs: pseudo-random residues, edge patterns and edge primes.

use keywright_ring::ntt_primes;
use keywright_ring::primes::is_prime;

/// Steele, Lea and Flood's SplitMix64, the generator of every pseudo-random input of the suite and of `vectors/`.
#[derive(Debug, Clone)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next 64 bits.
    pub fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// `n` residues below `q` (reduced, not rejected: inputs need not be exactly uniform).
    pub fn residues(&mut self, q: u64, n: usize) -> Vec<u64> {
        (0..n).map(|_| self.next_word() % q).collect()
    }
}

/// Limbs on which lazy reductions fail first, and two random ones: all 0, all 1, all `q - 1`, `0, q-1` alternating,
/// halves of `q - 1` and 0, a single `q - 1` at either end, values around `q / 2`.
pub fn edge_limbs(q: u64, n: usize) -> Vec<Vec<u64>> {
    let at = |position: usize| (0..n).map(|i| if i == position { q - 1 } else { 0 }).collect();
    let mut random = SplitMix64(q ^ n as u64);
    vec![
        vec![0; n],
        vec![1; n],
        vec![q - 1; n],
        (0..n).map(|i| if i % 2 == 0 { 0 } else { q - 1 }).collect(),
        (0..n).map(|i| if i < n / 2 { q - 1 } else { 0 }).collect(),
        at(0),
        at(n - 1),
        (0..n as u64).map(|i| q / 2 + i % 2).collect(),
        random.residues(q, n),
        random.residues(q, n),
    ]
}

/// Primes at the limits of the widths that kernels distinguish, for a ring of degree `2^log_n`, all 1 modulo `2N`.
///
/// They are the smallest such prime, the largest of 30 bits, the smallest and the largest of 50 bits, the smallest
/// above `2^50`, and the largest of 60 and of 61 bits.
pub fn edge_primes(log_n: u32) -> Vec<u64> {
    let step = 2u64 << log_n;
    let smallest_above =
        |low: u64| ((low / step + 1)..).map(|k| k * step + 1).find(|&q| is_prime(q)).unwrap_or(u64::MAX);
    let largest = |bits| {
        #[expect(clippy::unwrap_used, reason = "such primes exist for every supported degree")]
        ntt_primes(log_n, bits, 1, &[]).unwrap()[0]
    };
    vec![
        smallest_above(0),
        largest(30),
        smallest_above(1 << 49),
        largest(50),
        smallest_above(1 << 50),
        largest(60),
        largest(61),
    ]
}
