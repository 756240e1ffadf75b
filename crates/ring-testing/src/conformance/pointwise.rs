use keywright_ring::backend::Quotient;
use keywright_ring::{Backend, Modulus};

use super::assert_limb;
use crate::oracle;
use crate::samples::{edge_limbs, edge_primes};

/// Addition, subtraction, negation, products and scalar products against `u128` remainders, on every pair of edge
/// limbs, modulo every edge prime.
pub fn pointwise_is_modular_arithmetic(backend: &'static dyn Backend) {
    let n = 1024;
    for q in edge_primes(10) {
        #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
        let m = &Modulus::new(q).unwrap();
        let limbs = edge_limbs(q, n);
        let c = &limbs[9];
        let largest = q as i64 - 1;
        let values: Vec<i64> = (0..n)
            .map(|i| [0, 1, -1, 29, -29, largest, -largest, i as i64 - 512][i % 8] % q as i64)
            .collect();
        let mut seen = vec![u64::MAX; n];
        backend.lift_small(m, &values, &mut seen);
        let expected: Vec<u64> = values.iter().map(|&v| v.rem_euclid(q as i64) as u64).collect();
        assert_limb(&seen, &expected, || format!("lift_small mod {q}"));
        for a in &limbs {
            for b in &limbs {
                let zip = |f: &dyn Fn(u64, u64, u64) -> u64| -> Vec<u64> {
                    (0..n).map(|i| f(a[i], b[i], c[i])).collect()
                };
                let check = |name: &str, seen: &[u64], f: &dyn Fn(u64, u64, u64) -> u64| {
                    assert_limb(seen, &zip(f), || format!("{name} mod {q}"));
                };
                let mut x = a.clone();
                backend.add_assign(m, &mut x, b);
                check("add_assign", &x, &|a, b, _| oracle::add(a, b, q));
                x.clone_from(a);
                backend.sub_assign(m, &mut x, b);
                check("sub_assign", &x, &|a, b, _| oracle::sub(a, b, q));
                x.clone_from(a);
                backend.neg_assign(m, &mut x);
                check("neg_assign", &x, &|a, _, _| oracle::sub(0, a, q));
                backend.mul(m, a, b, &mut x);
                check("mul", &x, &|a, b, _| oracle::mul(a, b, q));
                x.clone_from(c);
                backend.mul_add_assign(m, &mut x, a, b);
                check("mul_add_assign", &x, &|a, b, c| oracle::add(c, oracle::mul(a, b, q), q));
            }
            for w in [0, 1, 2, q / 2, q - 1, limbs[8][0]] {
                let factor = m.shoup(w);
                let check = |name: &str, seen: &[u64], f: &dyn Fn(u64, u64) -> u64| {
                    let expected: Vec<u64> = (0..n).map(|i| f(a[i], c[i])).collect();
                    assert_limb(seen, &expected, || format!("{name} by {w} mod {q}"));
                };
                let mut x = a.clone();
                backend.mul_scalar_assign(m, &mut x, factor);
                check("mul_scalar_assign", &x, &|a, _| oracle::mul(a, w, q));
                x.clone_from(c);
                backend.mul_scalar_add_assign(m, &mut x, a, factor);
                check("mul_scalar_add_assign", &x, &|a, c| oracle::add(c, oracle::mul(a, w, q), q));
                // Dividend and remainder may both be extreme, in either direction.
                for (name, dividend, remainder) in [("quotient", a, c), ("quotient reversed", c, a)] {
                    let quotient = |i: usize| oracle::mul(oracle::sub(dividend[i], remainder[i], q), w, q);
                    let mut step =
                        Quotient { dividend, remainder, factor, addend: None, addend_factor: None };
                    let compare = |step: &Quotient<'_>, expected: &dyn Fn(usize) -> u64| {
                        let mut seen = vec![u64::MAX; n];
                        backend.quotient(m, step, &mut seen);
                        let expected: Vec<u64> = (0..n).map(expected).collect();
                        assert_limb(&seen, &expected, || format!("{name} by {w} mod {q}"));
                    };
                    compare(&step, &quotient);
                    step.addend = Some(&limbs[4]);
                    compare(&step, &|i| oracle::add(quotient(i), limbs[4][i], q));
                    step.addend_factor = Some(m.shoup(q - 1));
                    compare(&step, &|i| oracle::sub(quotient(i), limbs[4][i], q));
                }
            }
        }
    }
}
