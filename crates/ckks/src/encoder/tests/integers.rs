use super::{Random, embeddings};
use crate::encoder::{Embedding, Integers};
use keywright_ring::Modulus;
use num_bigint::BigInt;

const PRIMES: [u64; 7] =
    [257, 12_289, 1_073_479_681, (1 << 50) - 27, (1 << 50) + 55, (1 << 60) - (1 << 18) + 1, (1 << 61) - 1];

/// The nearest integer, ties to even, from the definition of the format.
fn rounded(x: f64) -> BigInt {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i64 - 1075;
    let mantissa = BigInt::from((bits & ((1 << 52) - 1)) | 1 << 52);
    let magnitude = if exponent >= 0 {
        mantissa << exponent as u64
    } else {
        BigInt::from(x.abs().round_ties_even() as u64)
    };
    if x < 0.0 { -magnitude } else { magnitude }
}

fn residue(x: &BigInt, q: u64) -> u64 {
    let q = BigInt::from(q);
    u64::try_from(((x % &q) + &q) % &q).unwrap()
}

#[test]
fn residues_are_those_of_the_exact_integers() {
    let mut random = Random(6);
    for (small, large) in [(-3, 3), (20, 49), (40, 53), (45, 61), (55, 70), (0, 130), (900, 970)] {
        let mut values: Vec<f64> = (0..1024)
            .map(|i| random.unit() * f64::from(small + (i * (large - small)) / 1024).exp2())
            .collect();
        values[..8].copy_from_slice(&[0.0, 0.5, 1.5, -0.5, -1.5, 2.5, -0.0, 4_503_599_627_370_495.5]);
        let expected: Vec<_> = values.iter().map(|&x| rounded(x)).collect();
        for embedding in embeddings(10) {
            let integers = Integers::coefficients(&embedding, &values, 1.0).unwrap();
            let largest = expected.iter().map(|x| x.magnitude().clone()).max().unwrap();
            assert_eq!(rounded(integers.largest()), BigInt::from(largest));
            for q in PRIMES {
                let mut limb = vec![0; 1024];
                integers.residues(&Modulus::new(q).unwrap(), &mut limb);
                for (i, x) in expected.iter().enumerate() {
                    assert_eq!(limb[i], residue(x, q), "{} modulo {q}, values up to 2^{large}", values[i]);
                }
            }
        }
    }
}

#[test]
fn sparse_residues_lie_at_multiples_of_the_gap() {
    let q = Modulus::new((1 << 50) - 27).unwrap();
    for scale in [1e6, 1e25] {
        for embedding in embeddings(11) {
            let integers = Integers::slots(&embedding, &Random(9).complex(4), 2, scale).unwrap();
            let mut limb = vec![7; 2048];
            integers.residues(&q, &mut limb);
            for (i, &r) in limb.iter().enumerate() {
                assert_eq!(r != 0, i % 256 == 0, "coefficient {i} is {r}");
            }
        }
    }
}

#[test]
fn coefficients_fit_up_to_half_the_modulus_exactly() {
    let embedding = Embedding::new(10);
    let (p, q) = (Modulus::new((1 << 50) - 27).unwrap(), Modulus::new((1 << 61) - 1).unwrap());
    let half = ((1u64 << 50) - 28) / 2;
    for (x, fits) in [(half as f64, true), ((half + 1) as f64, false)] {
        for x in [x, -x] {
            assert_eq!(
                Integers::coefficients(&embedding, &[0.0, x], 1.0).unwrap().check_fits(&[p]).is_ok(),
                fits
            );
        }
    }
    // The largest f64 below (pq - 1)/2, and the next one.
    let half: BigInt = (BigInt::from(p.value()) * q.value()) >> 1;
    let mut below = half.to_string().parse::<f64>().unwrap();
    if rounded(below) > half {
        below = below.next_down();
    }
    assert!(rounded(below) <= half && rounded(below.next_up()) > half);
    for (x, fits) in [(below, true), (below.next_up(), false)] {
        assert_eq!(Integers::coefficients(&embedding, &[x], 1.0).unwrap().check_fits(&[p, q]).is_ok(), fits);
    }
    assert!(Integers::coefficients(&embedding, &[1e290], 1.0).unwrap().check_fits(&[q; 20]).is_ok());
    assert!(Integers::coefficients(&embedding, &[0.2], 1.0).unwrap().check_fits(&[]).is_ok());
    assert!(Integers::coefficients(&embedding, &[1.0], 1.0).unwrap().check_fits(&[]).is_err());
}
