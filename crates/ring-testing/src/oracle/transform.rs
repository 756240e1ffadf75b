//! Polynomials modulo `X^N + 1` and one prime.

use super::{add, mul, pow, sub};

/// The root that defines the evaluation order: the first `x^((q-1)/2N)`, over `x = 2, 3, ...`, of order `2N`.
pub fn primitive_root(q: u64, log_n: u32) -> u64 {
    let two_n = 2u64 << log_n;
    (2..q).map(|x| pow(x, (q - 1) / two_n, q)).find(|&r| pow(r, two_n / 2, q) == q - 1).unwrap_or(0)
}

/// Evaluation form by its definition: entry `i` is the value at `psi^(2 brv(i) + 1)`. `N^2` multiplications.
pub fn evaluate_all(coefficients: &[u64], q: u64, psi: u64) -> Vec<u64> {
    let log_n = coefficients.len().trailing_zeros();
    (0..coefficients.len())
        .map(|i| {
            let exponent = 2 * (i.reverse_bits() >> (usize::BITS - log_n)) as u64 + 1;
            let point = pow(psi, exponent, q);
            coefficients.iter().rev().fold(0, |value, &c| add(mul(value, point, q), c, q))
        })
        .collect()
}

/// The schoolbook product modulo `X^N + 1`.
pub fn negacyclic_product(a: &[u64], b: &[u64], q: u64) -> Vec<u64> {
    let n = a.len();
    let mut product = vec![0; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let entry = &mut product[(i + j) % n];
            let term = mul(x, y, q);
            *entry = if i + j < n { add(*entry, term, q) } else { sub(*entry, term, q) };
        }
    }
    product
}

/// Coefficients of `a(X^g)`.
pub fn automorphism(a: &[u64], element: u64, q: u64) -> Vec<u64> {
    let n = a.len();
    let mut image = vec![0; n];
    for (i, &c) in a.iter().enumerate() {
        let power = (i as u128 * u128::from(element) % (2 * n as u128)) as usize;
        image[power % n] = if power < n { c } else { sub(0, c, q) };
    }
    image
}
