use keywright_ring::conversion::ScaledPart;
use keywright_ring::{Backend, Conversion, Modulus, Ring, ntt_primes};
use num_bigint::BigInt;

use super::{assert_limb, portable, ring};
use crate::oracle;
use crate::samples::{SplitMix64, edge_limbs, edge_primes};

/// Lists of source primes by their index in the list of edge primes. Index 0 is left out: the smallest prime cannot be
/// in a gadget digit.
const SOURCES: [&[usize]; 7] = [&[1], &[3], &[6], &[2, 3], &[3, 4, 5], &[1, 2, 3, 6], &[1, 2, 3, 4, 5, 6]];

fn moduli(primes: &[u64]) -> Vec<Modulus> {
    #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
    primes.iter().map(|&q| Modulus::new(q).unwrap()).collect()
}

/// The scaled residues of coefficients modulo the source primes, the first of the ring, in the order of its back end.
fn scaled_of(ring: &Ring, conversion: &Conversion, limbs: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let sources = conversion.decomposer().sources().iter().zip(limbs).enumerate();
    sources
        .map(|(i, (source, limb))| {
            let (mut limb, mut out) = (limb.clone(), vec![u64::MAX; ring.n()]);
            ring.forward_limb(i, &mut limb);
            ring.inverse_scaled(i, &mut limb, source.factor, &mut out);
            out
        })
        .collect()
}

/// Scaled residues in the order of the words of a limb.
fn in_order(ring: &Ring, residues: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let layout = ring.backend().scaled_layout(ring.n());
    residues.iter().map(|limb| (0..ring.n()).map(|i| limb[layout.position(ring.n(), i)]).collect()).collect()
}

/// All terms of residues in the order of the words of a limb, derived by the back end.
fn terms_of(ring: &Ring, conversion: &Conversion, residues: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let (decomposer, n) = (conversion.decomposer(), ring.n());
    let slices: Vec<&[u64]> = residues.iter().map(Vec::as_slice).collect();
    let mut derived = vec![u64::MAX; decomposer.derived_count() * n];
    ring.backend().derive_terms(decomposer, &slices, &mut derived);
    let sources = decomposer.sources();
    let whole =
        ScaledPart { sources, residues: &slices, derived: &derived, part: 0, words: n, fetch: (0, 0) };
    let terms: Vec<Vec<u64>> = whole.terms().map(<[u64]>::to_vec).collect();
    assert_eq!(terms.len(), decomposer.term_count(), "terms of the residues");
    terms
}

/// The polynomial of the residues, as evaluations modulo prime `i` of the ring.
fn converted(ring: &Ring, conversion: &Conversion, residues: &[Vec<u64>], i: usize) -> Vec<u64> {
    let slices: Vec<&[u64]> = residues.iter().map(Vec::as_slice).collect();
    let mut out = vec![u64::MAX; ring.n()];
    let targets = [(i, conversion.column(i))];
    ring.convert_forward(conversion.decomposer(), &slices, &targets, &mut [&mut out]);
    out
}

/// The source primes of a list, then the other edge primes: the primes of a ring that begins with the sources.
fn primes_from(edges: &[u64], list: &[usize]) -> Vec<u64> {
    let sources = list.iter().map(|&i| edges[i]);
    let others = (0..edges.len()).filter(|i| !list.contains(i)).map(|i| edges[i]);
    sources.chain(others).collect()
}

/// `n` integers modulo `Q`: small, random, and on both sides of every rounding boundary at `Q/2`.
fn integers(sources: &[u64], residues: usize, n: usize) -> Vec<BigInt> {
    let whole: BigInt = sources.iter().map(|&q| BigInt::from(q)).product();
    let half: BigInt = &whole / 2;
    let margin = oracle::rounding_margin(residues, sources);
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

/// Against big integers at `N = 2^10`. Residues represent the integer itself or, within the documented margin of `Q/2`
/// only, its neighbour modulo `Q`. Every term is below `2^50`, and every residue belongs to that integer.
pub fn conversion_is_exact(backend: &'static dyn Backend) {
    let n = 1 << 10;
    let edges = edge_primes(10);
    let edge_lists = SOURCES.iter().map(|list| (primes_from(&edges, list), list.len()));
    // Primes of equal width, where back ends may have forms of their own.
    #[expect(clippy::unwrap_used, reason = "such primes exist")]
    let equal = [(45, 3), (46, 5), (46, 6), (46, 7)]
        .map(|(bits, count)| (ntt_primes(10, bits, count + 2, &[]).unwrap(), count));
    for (primes, count) in edge_lists.chain(equal) {
        let sources = &primes[..count];
        let ring = ring(10, &primes, backend);
        let whole: BigInt = sources.iter().map(|&q| BigInt::from(q)).product();
        let conversion = Conversion::new(&moduli(sources), &moduli(&primes));
        let margin = oracle::rounding_margin(conversion.decomposer().term_count(), sources);
        let numbers = integers(sources, conversion.decomposer().term_count(), n);
        let limbs: Vec<Vec<u64>> =
            sources.iter().map(|&q| numbers.iter().map(|x| oracle::residue(x, q)).collect()).collect();
        let residues = scaled_of(&ring, &conversion, &limbs);
        let terms = terms_of(&ring, &conversion, &in_order(&ring, &residues));
        assert!(
            terms.iter().all(|term| term.iter().all(|&y| y >> 50 == 0)),
            "a term of {sources:?} is above 2^50"
        );
        let values: Vec<BigInt> = (0..n)
            .map(|i| {
                let column: Vec<u64> = terms.iter().map(|term| term[i]).collect();
                oracle::term_value(&column, sources)
            })
            .collect();
        for (limb, &q) in limbs.iter().zip(sources) {
            let seen: Vec<u64> = values.iter().map(|v| oracle::residue(v, q)).collect();
            assert_limb(&seen, limb, || format!("residues mod {q} of the terms of {sources:?}"));
        }
        for value in &values {
            // |value| <= Q/2 + margin.
            assert!(
                2 * BigInt::from(value.magnitude().clone()) <= &whole + 2 * &margin,
                "{value} of {sources:?}"
            );
        }
        for (i, &p) in primes.iter().enumerate() {
            let mut out = converted(&ring, &conversion, &residues, i);
            ring.inverse_limb(i, &mut out);
            let expected: Vec<u64> = values.iter().map(|v| oracle::residue(v, p)).collect();
            assert_limb(&out, &expected, || format!("conversion of {sources:?} to {p}"));
        }
    }
}

/// Scaled residues, terms and converted polynomials equal those of the portable back end bit for bit at `N = 2^10`,
/// `2^13` and `2^16`, on edge limbs and with all residues at their largest.
pub fn conversion_equals_portable(backend: &'static dyn Backend) {
    for log_n in [10, 13, 16] {
        let n = 1 << log_n;
        let edges = edge_primes(log_n);
        for list in SOURCES {
            let primes = primes_from(&edges, list);
            let sources = &primes[..list.len()];
            let (tested, reference) = (ring(log_n, &primes, backend), ring(log_n, &primes, portable()));
            let conversion = Conversion::new(&moduli(sources), &moduli(&primes));
            let largest: Vec<Vec<u64>> = sources.iter().map(|&q| vec![q - 1; n]).collect();
            // All words of a limb equal: the order does not matter.
            let mut cases = vec![(largest.clone(), largest)];
            for number in [2, 3, 8] {
                let limbs: Vec<Vec<u64>> =
                    sources.iter().map(|&q| edge_limbs(q, n).swap_remove(number)).collect();
                cases.push((
                    scaled_of(&tested, &conversion, &limbs),
                    scaled_of(&reference, &conversion, &limbs),
                ));
            }
            for (residues, expected_residues) in cases {
                let in_both =
                    in_order(&tested, &residues).into_iter().zip(in_order(&reference, &expected_residues));
                for ((seen, expected), q) in in_both.zip(sources) {
                    assert_limb(&seen, &expected, || {
                        format!("scaled residue mod {q} of {sources:?}, N = 2^{log_n}")
                    });
                }
                let terms = terms_of(&tested, &conversion, &residues);
                let expected = terms_of(&reference, &conversion, &residues);
                for (seen, expected) in terms.iter().zip(&expected) {
                    assert_limb(seen, expected, || format!("a term of {sources:?}, N = 2^{log_n}"));
                }
                for (i, p) in primes.iter().enumerate() {
                    let seen = converted(&tested, &conversion, &residues, i);
                    let expected = converted(&reference, &conversion, &expected_residues, i);
                    assert_limb(&seen, &expected, || format!("{sources:?} to {p}, N = 2^{log_n}"));
                }
            }
        }
    }
}
