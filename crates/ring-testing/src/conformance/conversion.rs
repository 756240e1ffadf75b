use keywright_ring::{Backend, Conversion, Modulus};
use num_bigint::BigInt;

use super::{assert_limb, portable, ring};
use crate::oracle;
use crate::samples::{SplitMix64, edge_limbs, edge_primes};

/// Lists of source primes by their index in the list of edge primes (0 is left out: the smallest prime is no gadget digit).
const SOURCES: [&[usize]; 7] = [&[1], &[3], &[6], &[2, 3], &[3, 4, 5], &[1, 2, 3, 6], &[1, 2, 3, 4, 5, 6]];

fn moduli(primes: &[u64]) -> Vec<Modulus> {
    #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
    primes.iter().map(|&q| Modulus::new(q).unwrap()).collect()
}

fn rows_of(backend: &dyn Backend, conversion: &Conversion, limbs: &[Vec<u64>], n: usize) -> Vec<u64> {
    let slices: Vec<&[u64]> = limbs.iter().map(Vec::as_slice).collect();
    let mut rows = vec![u64::MAX; conversion.decomposer().row_count() * n];
    conversion.decomposer().rows(backend, &slices, &mut rows);
    rows
}

/// `n` integers modulo `Q`: small, random, and on both sides of every border of the rounding at `Q/2`.
fn integers(sources: &[u64], rows: usize, n: usize) -> Vec<BigInt> {
    let whole: BigInt = sources.iter().map(|&q| BigInt::from(q)).product();
    let half: BigInt = &whole / 2;
    let margin = oracle::rounding_margin(rows, sources);
    let mut list: Vec<BigInt> = (-2i64..=2).map(BigInt::from).collect();
    for sign in [1, -1] {
        for border in
            [half.clone(), &half - &margin, &half - &margin / 2, &half - &margin / 4, &half - 2 * &margin]
        {
            list.extend((-2i64..=2).map(|d| sign * (&border + d)));
        }
    }
    let mut random = SplitMix64(sources.len() as u64);
    while list.len() < n {
        let residues: Vec<u64> = sources.iter().map(|&q| random.next_word() % q).collect();
        list.push(oracle::from_residues(&residues, sources));
    }
    list
}

/// At `N = 2^10`, with big integers: rows stand for the integer itself, or, only where it is within the documented margin
/// of `Q/2`, for its neighbour modulo `Q`; every entry is below `2^50`; every residue is that integer's.
pub fn conversion_is_exact(backend: &'static dyn Backend) {
    let n = 1 << 10;
    let edges = edge_primes(10);
    for list in SOURCES {
        let sources: Vec<u64> = list.iter().map(|&i| edges[i]).collect();
        let whole: BigInt = sources.iter().map(|&q| BigInt::from(q)).product();
        let conversion = Conversion::new(&moduli(&sources), &moduli(&edges));
        let count = conversion.decomposer().row_count();
        let margin = oracle::rounding_margin(count, &sources);
        let numbers = integers(&sources, count, n);
        let limbs: Vec<Vec<u64>> =
            sources.iter().map(|&q| numbers.iter().map(|x| oracle::residue(x, q)).collect()).collect();
        let rows = rows_of(backend, &conversion, &limbs, n);
        let rows: Vec<&[u64]> = rows.chunks_exact(n).collect();
        assert!(
            rows.iter().all(|row| row.iter().all(|&y| y >> 50 == 0)),
            "a row entry of {sources:?} is above 2^50"
        );
        let values: Vec<BigInt> = (0..n)
            .map(|i| {
                let column: Vec<u64> = rows.iter().map(|row| row[i]).collect();
                oracle::row_value(&column, &sources)
            })
            .collect();
        for (limb, &q) in limbs.iter().zip(&sources) {
            let seen: Vec<u64> = values.iter().map(|v| oracle::residue(v, q)).collect();
            assert_limb(&seen, limb, || format!("residues mod {q} of the rows of {sources:?}"));
        }
        for value in &values {
            // |value| <= Q/2 + margin.
            assert!(
                2 * BigInt::from(value.magnitude().clone()) <= &whole + 2 * &margin,
                "{value} of {sources:?}"
            );
        }
        for (i, &p) in edges.iter().enumerate() {
            let mut out = vec![u64::MAX; n];
            backend.convert(conversion.column(i), &rows, &mut out);
            let expected: Vec<u64> = values.iter().map(|v| oracle::residue(v, p)).collect();
            assert_limb(&out, &expected, || format!("conversion of {sources:?} to {p}"));
        }
    }
}

/// Rows and residues have the bits of the portable back end at `N = 2^13` and `2^16`, on edge limbs.
pub fn conversion_equals_portable(backend: &'static dyn Backend) {
    for log_n in [13, 16] {
        let n = 1 << log_n;
        let edges = edge_primes(log_n);
        for list in SOURCES {
            let sources: Vec<u64> = list.iter().map(|&i| edges[i]).collect();
            let conversion = Conversion::new(&moduli(&sources), &moduli(&edges));
            for number in [2, 3, 8] {
                let limbs: Vec<Vec<u64>> =
                    sources.iter().map(|&q| edge_limbs(q, n).swap_remove(number)).collect();
                let rows = rows_of(backend, &conversion, &limbs, n);
                let reference = rows_of(portable(), &conversion, &limbs, n);
                assert_limb(&rows, &reference, || format!("rows of {sources:?}, N = 2^{log_n}"));
                let rows: Vec<&[u64]> = rows.chunks_exact(n).collect();
                for (i, p) in edges.iter().enumerate() {
                    let (mut seen, mut expected) = (vec![u64::MAX; n], vec![0; n]);
                    backend.convert(conversion.column(i), &rows, &mut seen);
                    portable().convert(conversion.column(i), &rows, &mut expected);
                    assert_limb(&seen, &expected, || format!("{sources:?} to {p}, N = 2^{log_n}"));
                }
            }
        }
    }
}

/// Conversion fused with the forward transform gives the bits of the two steps, with from 2 rows to as many as the suite
/// has, random and with every entry at its largest.
pub fn convert_forward_is_both_steps(backend: &'static dyn Backend) {
    for log_n in [10, 13, 16] {
        let n = 1 << log_n;
        let edges = edge_primes(log_n);
        let (tested, reference) = (ring(log_n, &edges, backend), ring(log_n, &edges, portable()));
        for list in SOURCES {
            let sources: Vec<u64> = list.iter().map(|&i| edges[i]).collect();
            let conversion = Conversion::new(&moduli(&sources), &moduli(&edges));
            let limbs: Vec<Vec<u64>> = sources.iter().map(|&q| SplitMix64(q).residues(q, n)).collect();
            let random = rows_of(portable(), &conversion, &limbs, n);
            for rows in [random, vec![(1 << 50) - 1; conversion.decomposer().row_count() * n]] {
                let rows: Vec<&[u64]> = rows.chunks_exact(n).collect();
                for (i, p) in edges.iter().enumerate() {
                    let (mut seen, mut expected) = (vec![u64::MAX; n], vec![0; n]);
                    tested.plan(i).convert_forward(conversion.column(i), &rows, &mut seen);
                    portable().convert(conversion.column(i), &rows, &mut expected);
                    reference.forward_limb(i, &mut expected);
                    assert_limb(&seen, &expected, || format!("{sources:?} to {p}, N = 2^{log_n}"));
                }
            }
        }
    }
}
