//! The meaning of encoding: slots survive, add, multiply, rotate and conjugate.

use super::{Embedding, Random, U, embeddings, norm};
use crate::encoder::{Integers, centred};
use keywright_ring::{Automorphism, Modulus, rotation_element};
use num_complex::Complex64;

const Q: u64 = (1 << 61) - 1;

fn encode(embedding: &Embedding, values: &[Complex64], log_slots: u32, scale: f64) -> Vec<i64> {
    let q = Modulus::new(Q).unwrap();
    let integers = Integers::slots(embedding, values, log_slots, scale).unwrap();
    integers.check_fits(&[q]).unwrap();
    let mut limb = vec![0; 1 << embedding.log_n()];
    integers.residues(&q, &mut limb);
    limb.into_iter().map(|r| q.centered(r)).collect()
}

fn decode(embedding: &Embedding, coefficients: &[i64], log_slots: u32, scale: f64) -> Vec<Complex64> {
    let q = Modulus::new(Q).unwrap();
    let limb: Vec<_> = coefficients.iter().map(|&c| q.reduce_i64(c)).collect();
    let c = centred(&[q], &[&limb]);
    let n = 1usize << log_slots;
    let gap = c.len() / (2 * n);
    let mut slots: Vec<_> = (0..n).map(|k| Complex64::new(c[k * gap], c[(k + n) * gap]) / scale).collect();
    embedding.to_slots(log_slots, &mut slots);
    slots
}

/// The bound of the module documentation for one encoding and decoding.
fn bound(slots: &[Complex64], scale: f64) -> f64 {
    let n = slots.len() as f64;
    n / (2f64.sqrt() * scale) + (8.0 * n.log2() + 4.0) * U * norm(slots)
}

fn worst(a: &[Complex64], b: &[Complex64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max)
}

#[test]
fn round_trip_at_every_degree_and_slot_count() {
    let mut random = Random(3);
    for log_n in 10..=16 {
        for embedding in embeddings(log_n) {
            for log_slots in 0..log_n {
                let values = random.complex(1 << log_slots);
                for log_scale in [20, 40, 58] {
                    let scale = f64::from(log_scale).exp2();
                    let coefficients = encode(&embedding, &values, log_slots, scale);
                    let error = worst(&decode(&embedding, &coefficients, log_slots, scale), &values);
                    let limit = bound(&values, scale);
                    assert!(
                        error <= limit,
                        "N = 2^{log_n}, 2^{log_slots} slots, 2^{log_scale}: {error:e} > {limit:e}"
                    );
                    // Rounding errors are independent: far from the worst case, they stay below six deviations.
                    let typical = 6.0 * (2f64.powi(log_slots as i32) / 6.0).sqrt() / scale;
                    let arithmetic = limit - 2f64.powi(log_slots as i32) / (2f64.sqrt() * scale);
                    assert!(error <= typical + arithmetic, "2^{log_slots} slots: {error:e} is not typical");
                }
            }
        }
    }
}

#[test]
fn fewer_values_are_padded_and_real_values_are_complex_ones() {
    let embedding = Embedding::new(10);
    let values = [1.5, -0.25, 3.0];
    let integers = Integers::slots(&embedding, &values, 3, 1e9).unwrap();
    let q = Modulus::new(Q).unwrap();
    let mut limb = vec![0; 1024];
    integers.residues(&q, &mut limb);
    let coefficients: Vec<_> = limb.iter().map(|&r| q.centered(r)).collect();
    let mut padded = [Complex64::ZERO; 8];
    for (z, x) in padded.iter_mut().zip(values) {
        z.re = x;
    }
    assert_eq!(coefficients, encode(&embedding, &padded, 3, 1e9));
    assert!(worst(&decode(&embedding, &coefficients, 3, 1e9), &padded) <= bound(&padded, 1e9));
}

#[test]
fn real_slots_are_symmetric_and_encode_the_same() {
    let embedding = Embedding::new(10);
    let mut random = Random(6);
    for log_slots in 0..=9 {
        let slots = 1usize << log_slots;
        let values: Vec<f64> = (0..slots).map(|_| random.unit()).collect();
        let complex: Vec<Complex64> = values.iter().map(|&x| x.into()).collect();
        // Words, and numbers of 2^62 and more.
        for scale in [1e9, 1e30] {
            let [real, other] = [
                Integers::real_slots(&embedding, &values, log_slots, scale).unwrap(),
                Integers::slots(&embedding, &complex, log_slots, scale).unwrap(),
            ]
            .map(|integers| {
                let q = Modulus::new(Q).unwrap();
                let mut limb = vec![0; 2 * slots.max(512)];
                integers.residues(&q, &mut limb);
                let gap = limb.len() / (2 * slots);
                limb.iter().step_by(gap).map(|&r| q.centered(r)).collect::<Vec<_>>()
            });
            assert_eq!(real[slots], 0);
            assert!((1..slots).all(|i| real[2 * slots - i] == -real[i]), "2^{log_slots} slots, {scale:e}");
            if scale < 1e10 {
                assert!(real.iter().zip(&other).all(|(a, b)| (a - b).abs() <= 1));
            }
        }
    }
}

#[test]
fn sums_and_negacyclic_products_of_polynomials_are_those_of_slots() {
    let embedding = Embedding::new(10);
    let mut random = Random(4);
    let scale = (1u64 << 24) as f64;
    for log_slots in [0, 1, 4, 9] {
        let n = 1usize << log_slots;
        let (x, y) = (random.complex(n), random.complex(n));
        let a = encode(&embedding, &x, log_slots, scale);
        let b = encode(&embedding, &y, log_slots, scale);

        let sum: Vec<_> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let expected: Vec<_> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        let error = worst(&decode(&embedding, &sum, log_slots, scale), &expected);
        assert!(error <= bound(&x, scale) + bound(&y, scale));

        let mut product = vec![0i64; 1024];
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                if i + j < 1024 { product[i + j] += a * b } else { product[i + j - 1024] -= a * b }
            }
        }
        let expected: Vec<_> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
        let error = worst(&decode(&embedding, &product, log_slots, scale * scale), &expected);
        // (x + e)(y + f) - xy, with |x|, |y| at most sqrt(2), and the arithmetic of one more decoding.
        let (e, f) = (bound(&x, scale), bound(&y, scale));
        let limit = 2f64.sqrt() * (e + f) + e * f + 4.0 * n as f64 * bound(&expected, f64::INFINITY);
        assert!(error <= limit, "2^{log_slots} slots: {error:e} > {limit:e}");
    }
}

#[test]
fn galois_elements_rotate_left_and_conjugate() {
    let mut random = Random(5);
    let scale = (1u64 << 40) as f64;
    for (log_n, log_slots) in [(10, 9), (10, 5), (11, 10), (11, 0)] {
        let embedding = Embedding::new(log_n);
        let n = 1usize << log_slots;
        let values = random.complex(n);
        let coefficients = encode(&embedding, &values, log_slots, scale);
        let apply = |element: u64| {
            let mut out = vec![0; coefficients.len()];
            Automorphism::new(log_n, element).unwrap().apply_signed(&coefficients, &mut out);
            decode(&embedding, &out, log_slots, scale)
        };
        let limit = bound(&values, scale);
        for steps in [0, 1, 3, n as i64 / 2, -1] {
            let rotated: Vec<_> =
                (0..n as i64).map(|i| values[(i + steps).rem_euclid(n as i64) as usize]).collect();
            assert!(worst(&apply(rotation_element(log_n, steps)), &rotated) <= limit, "rotation by {steps}");
        }
        let conjugated: Vec<_> = values.iter().map(Complex64::conj).collect();
        assert!(worst(&apply((2 << log_n) - 1), &conjugated) <= limit, "conjugation");
    }
}
