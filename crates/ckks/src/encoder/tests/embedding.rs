use super::{Random, U, embeddings, norm};
use crate::encoder::fft::double_double::DoubleDouble;
use crate::encoder::fft::roots::{Root, Roots};
use num_complex::Complex64;

/// The slots by definition, in double-double.
fn naive_slots(coefficients: &[Complex64]) -> Vec<Root> {
    let n = coefficients.len() as u64;
    let roots = Roots::new(n.trailing_zeros().max(1) + 2);
    let step = if n == 1 { 2 } else { 1 };
    let zero = DoubleDouble::from_f64(0.0);
    let mut power = 1;
    (0..n)
        .map(|_| {
            let mut sum = Root { re: zero, im: zero };
            for (k, c) in coefficients.iter().enumerate() {
                let c = Root { re: DoubleDouble::from_f64(c.re), im: DoubleDouble::from_f64(c.im) };
                let term = c.mul(roots.get(power * k as u64 * step));
                sum = Root { re: sum.re.add(term.re), im: sum.im.add(term.im) };
            }
            power = power * 5 % (4 * n);
            sum
        })
        .collect()
}

fn distance(got: &[Complex64], exact: &[Root]) -> f64 {
    let part = |x: f64, e: DoubleDouble| (DoubleDouble::from_f64(x).add(e.neg()).hi).powi(2);
    got.iter().zip(exact).map(|(g, e)| part(g.re, e.re) + part(g.im, e.im)).sum::<f64>().sqrt()
}

#[test]
fn transforms_are_within_the_stated_error_of_the_definition() {
    let embeddings = embeddings(12);
    let mut random = Random(1);
    for log_slots in 0..=11 {
        let n = 1usize << log_slots;
        let coefficients = random.complex(n);
        let exact = naive_slots(&coefficients);
        let exact_norm = norm(&exact.iter().map(|r| Complex64::new(r.re.hi, r.im.hi)).collect::<Vec<_>>());
        let bound = 4.0 * U * f64::from(log_slots);
        for embedding in &embeddings {
            let mut values = coefficients.clone();
            embedding.to_slots(log_slots, &mut values);
            let error = distance(&values, &exact) / exact_norm;
            assert!(error <= bound, "2^{log_slots} slots: {error:e} above {bound:e}");
            // The inverse, for slots that are exact up to their last bit.
            let mut values: Vec<_> = exact.iter().map(|r| Complex64::new(r.re.hi, r.im.hi)).collect();
            embedding.to_coefficients(log_slots, &mut values);
            let difference: Vec<_> = values.iter().zip(&coefficients).map(|(a, b)| a - b).collect();
            let error = norm(&difference) / norm(&coefficients);
            assert!(error <= bound + U, "inverse, 2^{log_slots} slots: {error:e} above {bound:e}");
        }
    }
}

#[test]
fn instruction_sets_give_the_same_bits() {
    let embeddings = embeddings(16);
    let mut random = Random(2);
    for log_slots in 0..=15 {
        let values = random.complex(1 << log_slots);
        let results: Vec<_> = embeddings
            .iter()
            .map(|e| {
                let (mut slots, mut coefficients) = (values.clone(), values.clone());
                e.to_slots(log_slots, &mut slots);
                e.to_coefficients(log_slots, &mut coefficients);
                (slots, coefficients)
            })
            .collect();
        assert!(results.windows(2).all(|w| w[0] == w[1]), "2^{log_slots} slots");
    }
}
