use keywright_ring::backend::{Term, UniformRow};
use keywright_ring::{Backend, Modulus, Seed, StreamId};

use super::{assert_limb, portable};
use crate::oracle;
use crate::samples::{SplitMix64, edge_limbs, edge_primes};

/// Digit counts around the points where accumulators are reduced.
const COUNTS: [usize; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 70];
const SEED: Seed = Seed([42; 32]);

fn stream(digit: usize) -> StreamId {
    StreamId { object: 77, digit: digit as u8, limb: 5 }
}

/// `rows`, of which every second one is seeded if `seeded`.
fn uniform_rows(rows: &[Vec<u64>], seeded: bool) -> Vec<UniformRow<'_>> {
    let row = |(j, row)| match (seeded, j % 2) {
        (true, 0) => UniformRow::Seeded(&SEED, stream(j), 0),
        _ => UniformRow::Stored(row),
    };
    rows.iter().map(Vec::as_slice).enumerate().map(row).collect()
}

/// The sums of 1 to 70 products at `N = 2^10`, modulo every edge prime, of random and of largest residues. Rows are
/// stored, or alternately seeded and stored.
pub fn inner_product_is_the_sum(backend: &'static dyn Backend) {
    let n = 1024;
    for q in edge_primes(10) {
        #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
        let m = &Modulus::new(q).unwrap();
        let mut random = SplitMix64(q);
        for count in COUNTS {
            for largest in [false, true] {
                let mut limbs = || -> Vec<Vec<u64>> {
                    let limb = |_| if largest { vec![q - 1; n] } else { random.residues(q, n) };
                    (0..count).map(limb).collect()
                };
                let (digits, b, stored) = (limbs(), limbs(), limbs());
                for seeded in [false, true] {
                    let a = uniform_rows(&stored, seeded);
                    let mut rows = stored.clone();
                    for (row, form) in rows.iter_mut().zip(&a) {
                        if let UniformRow::Seeded(seed, id, _) = form {
                            portable().expand_uniform(seed, *id, m, row);
                        }
                    }
                    let sum = |rows: &[Vec<u64>]| -> Vec<u64> {
                        let entry = |i: usize| {
                            let terms = digits.iter().zip(rows).map(|(x, y)| oracle::mul(x[i], y[i], q));
                            terms.fold(0, |sum, term| oracle::add(sum, term, q))
                        };
                        (0..n).map(entry).collect()
                    };
                    let (mut out_b, mut out_a) = (vec![u64::MAX; n], vec![u64::MAX; n]);
                    backend.inner_product(m, &slices(&digits), &slices(&b), &a, &mut out_b, &mut out_a);
                    let what = |half| format!("{half} of {count} digits, seeded = {seeded}, mod {q}");
                    assert_limb(&out_b, &sum(&b), || what("b"));
                    assert_limb(&out_a, &sum(&rows), || what("a"));
                }
            }
        }
    }
}

/// The sums of 1 to 70 products with four rows each, modulo every edge prime, of random and of largest residues, that
/// are written to results or added to them. Words of factors are used once, or repeatedly.
pub fn inner_products_are_the_sums(backend: &'static dyn Backend) {
    let n = 512;
    for q in edge_primes(10) {
        #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
        let m = &Modulus::new(q).unwrap();
        let mut random = SplitMix64(q);
        for (count, (largest, add)) in COUNTS.iter().zip(CASES.into_iter().cycle()) {
            let mut limb = |n| if largest { vec![q - 1; n] } else { random.residues(q, n) };
            let factors: Vec<Vec<u64>> = (0..*count).map(|_| limb(n)).collect();
            let rows: Vec<[Vec<u64>; 4]> = (0..*count).map(|_| core::array::from_fn(|_| limb(n))).collect();
            let before: [Vec<u64>; 4] = core::array::from_fn(|_| limb(n));
            for repeat in [1, 2, 4, 8] {
                let pairs = factors.iter().zip(factors.iter().rev());
                let terms: Vec<Term<'_>> = pairs
                    .zip(&rows)
                    .map(|((factor, upcoming), rows)| Term {
                        factor: &factor[..n / repeat],
                        upcoming: &upcoming[..n / repeat],
                        rows: rows.each_ref().map(|row| &row[..]),
                    })
                    .collect();
                let mut out = before.clone();
                backend.inner_products(m, &terms, repeat, add, out.each_mut().map(|out| &mut out[..]));
                for (k, seen) in out.iter().enumerate() {
                    let entry = |i: usize| {
                        let start = if add { before[k][i] } else { 0 };
                        let products =
                            terms.iter().map(|term| oracle::mul(term.factor[i / repeat], term.rows[k][i], q));
                        products.fold(start, |sum, product| oracle::add(sum, product, q))
                    };
                    let expected: Vec<u64> = (0..n).map(entry).collect();
                    let what = || format!("row {k} of {count} terms, {repeat} times, add = {add}, mod {q}");
                    assert_limb(seen, &expected, what);
                }
            }
        }
    }
}

/// Whether all residues are the largest, and whether results are added.
const CASES: [(bool, bool); 5] = [(true, true), (false, true), (true, false), (false, false), (true, true)];

/// Equality with the portable back end, bit for bit, at `N = 2^13` and `2^16`, narrow and wide, with seeded rows that
/// reject every second candidate.
pub fn inner_product_equals_portable(backend: &'static dyn Backend) {
    for log_n in [13, 16] {
        let n = 1 << log_n;
        for q in edge_primes(log_n) {
            #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
            let m = &Modulus::new(q).unwrap();
            let limbs = edge_limbs(q, n);
            let digits: Vec<_> = limbs.iter().take(6).cloned().collect();
            let b: Vec<_> = limbs.iter().rev().take(6).cloned().collect();
            let a = uniform_rows(&b, true);
            let run = |tested: &dyn Backend| {
                let (mut out_b, mut out_a) = (vec![u64::MAX; n], vec![u64::MAX; n]);
                tested.inner_product(m, &slices(&digits), &slices(&b), &a, &mut out_b, &mut out_a);
                (out_b, out_a)
            };
            let (seen, expected) = (run(backend), run(portable()));
            assert_limb(&seen.0, &expected.0, || format!("b, N = 2^{log_n}, mod {q}"));
            assert_limb(&seen.1, &expected.1, || format!("a, N = 2^{log_n}, mod {q}"));
            // A part of the limbs, with streams that begin in the middle, gives that part of the sums.
            let part = n / 4..n / 2;
            let cut = |limbs: &[Vec<u64>]| -> Vec<Vec<u64>> {
                limbs.iter().map(|l| l[part.clone()].to_vec()).collect()
            };
            let later: Vec<_> = a
                .iter()
                .zip(&b)
                .map(|(row, stored)| match *row {
                    UniformRow::Seeded(seed, id, _) => UniformRow::Seeded(seed, id, part.start),
                    UniformRow::Stored(_) => UniformRow::Stored(&stored[part.clone()]),
                })
                .collect();
            let (mut out_b, mut out_a) = (vec![u64::MAX; part.len()], vec![u64::MAX; part.len()]);
            let (cut_digits, cut_b) = (cut(&digits), cut(&b));
            backend.inner_product(m, &slices(&cut_digits), &slices(&cut_b), &later, &mut out_b, &mut out_a);
            assert_limb(&out_b, &expected.0[part.clone()], || format!("part of b, N = 2^{log_n}, mod {q}"));
            assert_limb(&out_a, &expected.1[part.clone()], || format!("part of a, N = 2^{log_n}, mod {q}"));
        }
    }
}

fn slices(limbs: &[Vec<u64>]) -> Vec<&[u64]> {
    limbs.iter().map(Vec::as_slice).collect()
}
