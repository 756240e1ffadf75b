//! Against `vectors/encoder.txt`, computed by definition in Python with 60 digits.

use super::{Embedding, Random, U, norm};
use crate::encoder::Integers;
use crate::encoder::fft::roots::Roots;
use keywright_ring::Modulus;
use num_complex::Complex64;

const VECTORS: &str = include_str!("../../../../../vectors/encoder.txt");

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(line: &str) -> Vec<T> {
    line.split(' ').filter_map(|x| x.parse().ok()).collect()
}

#[test]
fn roots_are_correctly_rounded() {
    let roots = Roots::new(18);
    let lines: Vec<_> = VECTORS.lines().filter(|l| l.starts_with("root")).collect();
    assert_eq!(lines.len(), 64);
    for line in lines {
        let [e, cosine, sine] = numbers::<u64>(line)[..] else { unreachable!("three numbers: {line}") };
        let root = roots.get(e);
        assert_eq!((root.re.hi.to_bits(), root.im.hi.to_bits()), (cosine, sine), "exponent {e}");
    }
}

#[test]
fn encodings_and_slots_agree_with_the_definition() {
    let embedding = Embedding::new(10);
    let q = Modulus::new((1 << 61) - 1).unwrap();
    let mut lines = VECTORS.lines().skip_while(|l| !l.starts_with("case"));
    let mut cases = 0;
    while let Some(header) = lines.next() {
        let [log_slots, log_scale, state] = numbers::<u64>(header)[..] else {
            unreachable!("three numbers: {header}")
        };
        let n = 1usize << log_slots;
        let log_slots = log_slots as u32;
        let scale = (log_scale as f64).exp2();
        let mut random = Random(state);
        let mut next = || (random.word() as i64 >> 41) as f64;
        let slots: Vec<_> = (0..n).map(|_| Complex64::new(next(), next()) / 1_048_576.0).collect();
        let expected: Vec<i128> = numbers(lines.next().unwrap());
        assert_eq!(expected.len(), 2 * n);

        let integers = Integers::slots(&embedding, &slots, log_slots, scale).unwrap();
        // In the units of the file. The error of one coefficient is at most the Euclidean norm of all.
        let arithmetic = (4.0 * f64::from(log_slots) + 1.0) * U * norm(&slots) / (n as f64).sqrt() * scale;
        let bound = (0.5 + 1.01 * arithmetic) * 1_048_576.0 + 1.0;
        let mut limb = vec![0; 1024];
        if log_scale < 60 {
            integers.check_fits(&[q]).unwrap();
            integers.residues(&q, &mut limb);
            for (k, &e) in expected.iter().enumerate() {
                let got = i128::from(q.centered(limb[k * 512 / n])) << 20;
                assert!(
                    ((got - e) as f64).abs() <= bound,
                    "case {header}: coefficient {k} is {got}, not {e}"
                );
            }
        } else {
            let p = Modulus::new((1 << 60) - (1 << 18) + 1).unwrap();
            let mut second = limb.clone();
            assert!(integers.check_fits(&[q]).is_err());
            integers.check_fits(&[q, p]).unwrap();
            integers.residues(&q, &mut limb);
            integers.residues(&p, &mut second);
            let values = crate::encoder::centred(&[q, p], &[&limb, &second]);
            for (k, &e) in expected.iter().enumerate() {
                let got = values[k * 512 / n] * 1_048_576.0;
                // One rounding of each of the two to f64.
                let slack = 2.0 * U * got.abs();
                assert!(
                    (got - e as f64).abs() <= bound + slack,
                    "case {header}: coefficient {k} is {got}, not {e}"
                );
            }
        }
        assert_eq!(
            limb.iter().filter(|&&c| c != 0).count(),
            2 * n,
            "coefficients between those of Y are zero"
        );

        let coefficients: Vec<f64> = (0..2 * n).map(|_| next()).collect();
        let expected: Vec<i128> = numbers(lines.next().unwrap());
        assert_eq!(expected.len(), 2 * n);
        let mut values: Vec<_> =
            (0..n).map(|k| Complex64::new(coefficients[k], coefficients[n + k])).collect();
        let bound = (n as f64).sqrt() * norm(&values) * 4.0 * f64::from(log_slots) * U;
        embedding.to_slots(log_slots, &mut values);
        for (j, z) in values.iter().enumerate() {
            for (got, e) in [(z.re, expected[2 * j]), (z.im, expected[2 * j + 1])] {
                let e = e as f64 / 1_048_576.0;
                let slack = 2.0 * U * e.abs() + 0.5 / 1_048_576.0;
                assert!(
                    (got - e).abs() <= 1.01 * bound + slack,
                    "case {header}: slot {j} has {got}, not {e}"
                );
            }
        }
        cases += 1;
    }
    assert_eq!(cases, 6);
}
