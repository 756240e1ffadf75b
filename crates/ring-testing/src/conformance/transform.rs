use keywright_ring::Backend;

use super::{assert_limb, portable, ring};
use crate::oracle;
use crate::samples::{SplitMix64, edge_limbs, edge_primes};

/// At `N = 2^10`: the forward transform evaluates at the roots in the documented order, the inverse undoes it, and a
/// product of evaluations is the negacyclic product.
pub fn transform_is_evaluation(backend: &'static dyn Backend) {
    let log_n = 10;
    let primes = edge_primes(log_n);
    let ring = ring(log_n, &primes, backend);
    for (i, &q) in primes.iter().enumerate() {
        let psi = oracle::primitive_root(q, log_n);
        for (number, limb) in edge_limbs(q, 1 << log_n).into_iter().enumerate() {
            let mut x = limb.clone();
            ring.forward_limb(i, &mut x);
            assert_limb(&x, &oracle::evaluate_all(&limb, q, psi), || {
                format!("forward of limb {number} mod {q}")
            });
            ring.inverse_limb(i, &mut x);
            assert_limb(&x, &limb, || format!("inverse of limb {number} mod {q}"));
        }
        let mut random = SplitMix64(q);
        let (a, b) = (random.residues(q, 1 << log_n), random.residues(q, 1 << log_n));
        let (mut x, mut y, mut product) = (a.clone(), b.clone(), vec![0; 1 << log_n]);
        ring.forward_limb(i, &mut x);
        ring.forward_limb(i, &mut y);
        backend.mul(ring.modulus(i), &x, &y, &mut product);
        ring.inverse_limb(i, &mut product);
        assert_limb(&product, &oracle::negacyclic_product(&a, &b, q), || {
            format!("negacyclic product mod {q}")
        });
    }
}

/// Every degree from `2^11` to `2^17`: both transforms equal those of the portable back end bit for bit, on any
/// canonical input. Edge primes and edge limbs at `2^13` and `2^16`; a narrow and a wide prime elsewhere.
pub fn transform_equals_portable(backend: &'static dyn Backend) {
    for log_n in 11..=17 {
        let edges = edge_primes(log_n);
        let whole = log_n == 13 || log_n == 16;
        let primes = if whole { edges } else { vec![edges[3], edges[6]] };
        let (tested, reference) = (ring(log_n, &primes, backend), ring(log_n, &primes, portable()));
        for (i, &q) in primes.iter().enumerate() {
            let limbs = edge_limbs(q, 1 << log_n);
            // At the larger degrees: all q - 1, one of q - 1 at the end, random.
            let chosen: &[usize] = if log_n <= 13 { &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9] } else { &[2, 6, 8] };
            for &number in chosen {
                for inverse in [false, true] {
                    let (mut x, mut y) = (limbs[number].clone(), limbs[number].clone());
                    if inverse {
                        tested.inverse_limb(i, &mut x);
                        reference.inverse_limb(i, &mut y);
                    } else {
                        tested.forward_limb(i, &mut x);
                        reference.forward_limb(i, &mut y);
                        // The residues as integers of both signs.
                        let values: Vec<i64> = limbs[number]
                            .iter()
                            .map(|&x| if x % 2 == 0 { x as i64 } else { x as i64 - q as i64 })
                            .collect();
                        let mut small = vec![0; values.len()];
                        tested.forward_small_limb(i, &values, &mut small, &[]);
                        assert_limb(&small, &y, || {
                            format!("integers, N = 2^{log_n}, limb {number}, mod {q}")
                        });
                    }
                    assert_limb(&x, &y, || {
                        format!("inverse = {inverse}, N = 2^{log_n}, limb {number}, mod {q}")
                    });
                }
            }
        }
    }
}

/// At `N = 2^10`, `2^13` and `2^16`, in every subring: one value of each run of equal values of the ring's transform.
pub fn subring_transform_is_the_rings(backend: &'static dyn Backend) {
    for log_n in [10, 13, 16] {
        let edges = edge_primes(log_n);
        let ring = ring(log_n, &edges, backend);
        for (i, &q) in edges.iter().enumerate() {
            for log_m in 10..=log_n {
                let repeat = 1usize << (log_n - log_m);
                for number in [2, 6, 8] {
                    let coefficients = &edge_limbs(q, 1 << log_m)[number];
                    let mut whole = vec![0; 1 << log_n];
                    whole.iter_mut().step_by(repeat).zip(coefficients).for_each(|(word, c)| *word = *c);
                    ring.forward_limb(i, &mut whole);
                    let mut part = coefficients.clone();
                    ring.forward_subring_limb(i, &mut part);
                    let signed = |&x: &u64| if x % 2 == 0 { x as i64 } else { x as i64 - q as i64 };
                    let values: Vec<i64> = coefficients.iter().map(signed).collect();
                    let mut small = vec![0; values.len()];
                    ring.forward_small_limb(i, &values, &mut small, &[]);
                    assert_limb(&small, &part, || {
                        format!("integers, degree 2^{log_m} in 2^{log_n}, mod {q}")
                    });
                    let expanded: Vec<u64> =
                        part.iter().flat_map(|&value| std::iter::repeat_n(value, repeat)).collect();
                    assert_limb(&expanded, &whole, || {
                        format!("degree 2^{log_m} in 2^{log_n}, limb {number}, mod {q}")
                    });
                }
            }
        }
    }
}
