//! The known answers of `vectors/`, computed there by independent programs.
#![expect(clippy::unwrap_used, reason = "a malformed vector file fails the test")]

use std::str::FromStr;

use keywright_ring::sampling::{SecretRng, gaussian};
use keywright_ring::{Modulus, Ring, Seed, StreamId, backend};
use keywright_ring_testing::samples::SplitMix64;

/// The words of each line of a vector file.
fn cases(text: &str) -> impl Iterator<Item = Vec<&str>> {
    assert!(text.lines().count() >= 3, "a vector file is cut short");
    text.lines().map(|line| line.split(' ').collect())
}

fn parse<T: FromStr>(word: &str) -> T {
    word.parse().ok().unwrap()
}

/// The checksum of `vectors/README.md`.
fn fold(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0, |sum, w| sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(w))
}

#[test]
fn transforms_have_known_values() {
    for fields in cases(include_str!("../../../vectors/ntt.txt")) {
        let (log_n, q) = (parse::<u32>(fields[0]), parse(fields[1]));
        let coefficients = SplitMix64(q).residues(q, 1 << log_n);
        for backend in backend::available() {
            let ring = Ring::new(log_n, &[q], backend).unwrap();
            let mut limb = coefficients.clone();
            ring.forward_limb(0, &mut limb);
            for pair in fields[3..].chunks_exact(2) {
                let (index, value): (usize, u64) = (parse(pair[0]), parse(pair[1]));
                assert_eq!(limb[index], value, "{backend:?}, N = 2^{log_n}, mod {q}, entry {index}");
            }
            ring.inverse_limb(0, &mut limb);
            assert!(limb == coefficients, "{backend:?}, N = 2^{log_n}, mod {q}: inverse");
        }
    }
}

#[test]
fn expanded_limbs_have_known_values() {
    for fields in cases(include_str!("../../../vectors/expander.txt")) {
        let byte = |i: usize| u8::from_str_radix(&fields[0][2 * i..2 * i + 2], 16).unwrap();
        let seed = Seed(std::array::from_fn(byte));
        let id = StreamId { object: parse(fields[1]), digit: parse(fields[2]), limb: parse(fields[3]) };
        let modulus = Modulus::new(parse(fields[4])).unwrap();
        for backend in backend::available() {
            let mut limb = vec![0; parse(fields[5])];
            backend.expand_uniform(&seed, id, &modulus, &mut limb);
            let first: Vec<u64> = fields[7..].iter().map(|word| parse(word)).collect();
            assert_eq!(limb[..first.len()], first, "{backend:?}, {id:?}");
            assert_eq!(fold(limb), parse::<u64>(fields[6]), "{backend:?}, {id:?}");
        }
    }
}

#[test]
fn gaussian_samples_have_known_values() {
    for fields in cases(include_str!("../../../vectors/gaussian.txt")) {
        let mut samples = vec![0; parse(fields[1])];
        gaussian(&mut SecretRng::from_entropy(&[parse(fields[0]); 32].into()), &mut samples);
        let first: Vec<i64> = fields[3..].iter().map(|word| parse(word)).collect();
        assert_eq!(samples[..first.len()], first);
        assert_eq!(fold(samples.iter().map(|&x| x as u64)), parse::<u64>(fields[2]));
    }
}
