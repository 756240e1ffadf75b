//! Equality with the portable back end, bit for bit.

use alloc::vec::Vec;

use super::super::portable::Portable;
use super::arithmetic::short;
use super::*;
use crate::backend::Quotient;
use crate::conversion::{Column, ScaledPart};
use crate::{Automorphism, Seed, StreamId};
use crate::{Ring, ntt_primes};

/// Runs only where the CPU can; says so where it cannot.
fn backend() -> Option<&'static dyn Backend> {
    let backend = Avx512::detect();
    if backend.is_none() {
        std::eprintln!("skipped: this CPU has no AVX-512 IFMA and VBMI2");
    }
    backend
}

/// Residues that are random, all zero, all one less than the modulus, and a mix of both ends.
fn samples(m: &Modulus, n: usize) -> Vec<Vec<u64>> {
    let q = m.value();
    let mut state = q ^ 0x9E37_79B9_7F4A_7C15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let random = (0..n).map(|_| next() % q).collect();
    let ends = (0..n).map(|_| if next() % 2 == 0 { 0 } else { q - 1 }).collect();
    let mut unit = alloc::vec![0; n];
    unit[n / 2 + 5] = 1;
    alloc::vec![random, ends, alloc::vec![0; n], alloc::vec![q - 1; n], unit]
}

/// The largest and smallest usable primes of each width.
fn edge_primes(log_n: u32) -> Vec<u64> {
    let mut primes = Vec::new();
    for bits in [61, 51, 50, 49, 30] {
        primes.extend(ntt_primes(log_n, bits, 1, &[]).unwrap());
    }
    let step = 2u64 << log_n;
    let mut short = (1..(short::LARGEST - 1) / step + 1).rev().map(|k| k * step + 1);
    primes.extend(short.find(|&p| crate::primes::is_prime(p)));
    assert!(short::is_short(&Modulus::new(primes[5]).unwrap()));
    for low in [1 << 50, 1 << 20] {
        let smallest = (low / step + 1..).map(|k| k * step + 1).find(|&p| crate::primes::is_prime(p));
        primes.extend(smallest);
    }
    primes
}

#[test]
fn transforms_agree() {
    let Some(backend) = backend() else { return };
    for log_n in 10..=17 {
        let primes = edge_primes(log_n);
        let fast = Ring::new(log_n, &primes, backend).unwrap();
        let slow = Ring::new(log_n, &primes, &Portable).unwrap();
        for (i, &q) in primes.iter().enumerate() {
            for (k, sample) in samples(fast.modulus(i), 1 << log_n).into_iter().enumerate() {
                let (mut a, mut b) = (sample.clone(), sample.clone());
                fast.forward_limb(i, &mut a);
                slow.forward_limb(i, &mut b);
                assert!(a == b, "forward, log_n {log_n}, prime {q}, sample {k}");
                a.copy_from_slice(&sample);
                b.copy_from_slice(&sample);
                fast.inverse_limb(i, &mut a);
                slow.inverse_limb(i, &mut b);
                assert!(a == b, "inverse, log_n {log_n}, prime {q}, sample {k}");
            }
        }
    }
}

#[test]
fn pointwise_kernels_agree() {
    let Some(fast) = backend() else { return };
    for q in edge_primes(10) {
        let m = Modulus::new(q).unwrap();
        let all = samples(&m, 1024);
        for (x, y) in all.iter().flat_map(|x| all.iter().map(move |y| (x, y))) {
            for w in [0, 1, q - 1, q / 3].map(|w| m.shoup(w)) {
                let run = |backend: &dyn Backend| {
                    let mut results = alloc::vec![x.clone(); 8];
                    backend.add_assign(&m, &mut results[0], y);
                    backend.sub_assign(&m, &mut results[1], y);
                    backend.neg_assign(&m, &mut results[2]);
                    backend.mul(&m, x, y, &mut results[3]);
                    backend.mul_add_assign(&m, &mut results[4], y, y);
                    backend.mul_scalar_assign(&m, &mut results[5], w);
                    backend.mul_scalar_add_assign(&m, &mut results[6], y, w);
                    let quotient = Quotient {
                        dividend: x,
                        remainder: y,
                        factor: w,
                        addend: Some(y),
                        addend_factor: Some(w),
                    };
                    backend.quotient(&m, &quotient, &mut results[7]);
                    results
                };
                assert!(run(fast) == run(&Portable), "prime {q}, factor {}", w.value);
            }
        }
    }
}

#[test]
fn permutations_agree() {
    let Some(fast) = backend() else { return };
    let input: Vec<u64> = (0..4096).collect();
    for element in [1, 3, 5, 25, 8191, 4097] {
        let automorphism = Automorphism::new(12, element).unwrap();
        let (mut a, mut b) = (alloc::vec![0; 4096], alloc::vec![0; 4096]);
        fast.permute(&automorphism, &input, &mut a);
        Portable.permute(&automorphism, &input, &mut b);
        assert_eq!(a, b);
    }
}

/// One source of each kind, up to more terms than one lazy sum holds, converted to narrow and wide targets.
#[test]
fn conversions_agree() {
    let Some(fast) = backend() else { return };
    let log_n = 11;
    let targets: Vec<u64> = edge_primes(log_n);
    let mut others = ntt_primes(log_n, 50, 30, &targets).unwrap();
    others.extend(ntt_primes(log_n, 60, 2, &targets).unwrap());
    others.reverse();
    let ring = Ring::new(log_n, &targets, fast).unwrap();
    let plain = Ring::new(log_n, &targets, &Portable).unwrap();
    let n = ring.n();
    let layout = fast.scaled_layout(n);
    for sources in [&others[..1], &others[1..4], &others[2..7], &others[..14], &others[..32]] {
        let sources: Vec<_> = sources.iter().map(|&q| Modulus::new(q).unwrap()).collect();
        let conversion = crate::Conversion::new(&sources, ring.moduli());
        let decomposer = conversion.decomposer();
        for k in 0..4 {
            let plain_rows: Vec<_> = sources.iter().map(|m| samples(m, n).swap_remove(k)).collect();
            let mut rows = alloc::vec![alloc::vec![0; n]; sources.len()];
            for (row, plain) in rows.iter_mut().zip(&plain_rows) {
                plain.iter().enumerate().for_each(|(i, &word)| row[layout.position(n, i)] = word);
            }
            let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
            let plain_rows: Vec<_> = plain_rows.iter().map(|row| &row[..]).collect();
            let (mut a, mut b) = (
                alloc::vec![0; n * decomposer.derived_count()],
                alloc::vec![1; n * decomposer.derived_count()],
            );
            fast.derive_terms(decomposer, &rows, &mut a);
            Portable.derive_terms(decomposer, &rows, &mut b);
            assert!(a == b, "{} sources, sample {k}", sources.len());
            for (i, column) in conversion.columns().iter().enumerate() {
                let (mut a, mut b) = (alloc::vec![0; n], alloc::vec![1; n]);
                ring.convert_forward(decomposer, &rows, &[(i, column)], &mut [&mut a]);
                plain.convert_forward(decomposer, &plain_rows, &[(i, column)], &mut [&mut b]);
                assert!(a == b, "{} sources to prime {}", sources.len(), column.modulus.value());
            }
        }
    }
}

/// All terms at the largest value that the contract allows, at every count up to more than two lazy sums.
#[test]
fn largest_terms_are_converted() {
    let Some(fast) = backend() else { return };
    let (log_n, n) = (10, 1 << 10);
    let row = alloc::vec![(1 << 50) - 1; n];
    let targets = edge_primes(log_n);
    let (ring, plain) =
        (Ring::new(log_n, &targets, fast).unwrap(), Ring::new(log_n, &targets, &Portable).unwrap());
    let narrow = ntt_primes(log_n, 50, 1, &targets).unwrap();
    let narrow = crate::Conversion::new(&[Modulus::new(narrow[0]).unwrap()], &[]);
    let source = narrow.decomposer().sources()[0];
    assert!(source.modulus.is_narrow());
    for (i, m) in ring.moduli().iter().enumerate() {
        let q = m.value();
        for count in [1, 11, 12, 13, 24, 25, 255] {
            let constants = alloc::vec![q - 1; count];
            let montgomery = if m.is_narrow() { constants.clone() } else { Vec::new() };
            // Montgomery constants q - 1 stand for plain constants (q - 1) 2^-52.
            let plain_constant = if m.is_narrow() { m.mul(q - 1, m.inv(m.reduce(1 << 52))) } else { q - 1 };
            let column = Column { modulus: *m, constants: alloc::vec![plain_constant; count], montgomery };
            let (sources, rows) = (alloc::vec![source; count - 1], alloc::vec![&row[..]; count - 1]);
            let run = |ring: &Ring| {
                let words = ring.backend().scaled_layout(n).part_words();
                let (plan, mut out) = (ring.plan(i), alloc::vec![0; n]);
                for part in 0..n / words {
                    let derived = &row[..words];
                    let part = ScaledPart {
                        sources: &sources,
                        residues: &rows,
                        derived,
                        part,
                        words,
                        fetch: (0, 0),
                    };
                    plan.convert_part(&column, part, &mut out);
                }
                ring.finish_limb(i, &mut out, [&[]; 2]);
                out
            };
            assert!(run(&ring) == run(&plain), "{count} terms, prime {q}");
        }
    }
}

#[test]
fn inner_products_agree() {
    let Some(fast) = backend() else { return };
    for q in edge_primes(10) {
        let m = Modulus::new(q).unwrap();
        let all = samples(&m, 1024);
        for count in [1, 6, 12, 13, 30] {
            for seeded in [false, true] {
                for shift in [0, 3] {
                    let pick = |k: usize| if shift == 3 { &all[3][..] } else { &all[k % all.len()][..] };
                    let seed = Seed([count as u8; 32]);
                    let digits: Vec<_> = (0..count).map(pick).collect();
                    let b: Vec<_> = (0..count).map(|k| pick(3 * k + 1)).collect();
                    let a: Vec<_> = (0..count)
                        .map(|k| {
                            let id = StreamId { object: 9, digit: k as u8, limb: 7 };
                            if seeded {
                                UniformRow::Seeded(&seed, id, 0)
                            } else {
                                UniformRow::Stored(pick(2 * k))
                            }
                        })
                        .collect();
                    let run = |backend: &dyn Backend| {
                        let (mut out_b, mut out_a) = (alloc::vec![7; 1024], alloc::vec![7; 1024]);
                        backend.inner_product(&m, &digits, &b, &a, &mut out_b, &mut out_a);
                        (out_b, out_a)
                    };
                    assert!(run(fast) == run(&Portable), "prime {q}, {count} digits, seeded {seeded}");
                }
            }
        }
    }
}

#[test]
fn expansion_agrees() {
    let Some(fast) = backend() else { return };
    let seed = Seed(core::array::from_fn(|i| i as u8));
    for q in edge_primes(10).into_iter().chain([(1 << 49) + 21, 3]) {
        let m = Modulus::new(q).unwrap();
        for length in [1024, 4096, 1000] {
            let id = StreamId { object: u64::MAX - 5, digit: 200, limb: 65_000 };
            let (mut a, mut b) = (alloc::vec![0; length], alloc::vec![1; length]);
            fast.expand_uniform(&seed, id, &m, &mut a);
            Portable.expand_uniform(&seed, id, &m, &mut b);
            assert!(a == b, "prime {q}, length {length}");
        }
    }
}
