//! Every engine gives the words of `keywright-ring`.

use keywright_client::reduction::{Montgomery, Reduction, ShiftAdd30, ShiftAdd60, Shoup};
use keywright_client::{Engine, Residue, RingEngine, SmallEngine};
use keywright_ring::primes::is_prime;
use keywright_ring::{Seed, StreamId};
use keywright_ring_testing::samples::SplitMix64;

use crate::fixture::{SHIFT_ADD_30, SHIFT_ADD_60, generic_primes};

fn same<R: Reduction>(log_n: u32, q: u64) {
    let (small, ring) = (SmallEngine::<R>::new(log_n, q).unwrap(), RingEngine::new(log_n, q).unwrap());
    let n = ring.n();
    let mut random = SplitMix64(q ^ u64::from(log_n));
    let mut limb = || {
        let mut words = random.residues(q, n);
        words[..4].copy_from_slice(&[0, q - 1, 1, q / 2]);
        words
    };
    let narrow = |words: &[u64]| words.iter().map(|&x| R::Word::from_u64(x)).collect::<Vec<_>>();
    let (a, b, acc) = (limb(), limb(), limb());
    let check = |what: &str, expected: &[u64], seen: &[R::Word]| {
        assert!(expected.iter().zip(seen).all(|(x, y)| *x == y.to_u64()), "{what}, N = 2^{log_n}, mod {q}");
    };
    let (mut expected, mut seen) = (a.clone(), narrow(&a));
    ring.forward(&mut expected);
    small.forward(&mut seen);
    check("forward", &expected, &seen);
    ring.inverse(&mut expected);
    small.inverse(&mut seen);
    check("inverse", &expected, &seen);
    assert_eq!(expected, a);
    let (mut expected, mut seen) = (acc.clone(), narrow(&acc));
    ring.mul_add(&mut expected, &a, &b);
    small.mul_add(&mut seen, &narrow(&a), &narrow(&b));
    check("mul_add", &expected, &seen);
    ring.mul_sub(&mut expected, &b, &a);
    small.mul_sub(&mut seen, &narrow(&b), &narrow(&a));
    check("mul_sub", &expected, &seen);
    assert_eq!(expected, acc);
    let id = StreamId { object: 9, digit: 1, limb: 2 };
    for start in [0, 256] {
        ring.uniform(&Seed([7; 32]), id, start, &mut expected[..384]);
        small.uniform(&Seed([7; 32]), id, start, &mut seen[..384]);
        check("uniform", &expected[..384], &seen[..384]);
    }
    let values: Vec<i64> = (0..128).map(|i| i * 12345 - 700_000).collect();
    ring.lift(&values, &mut expected[..128]);
    small.lift(&values, &mut seen[..128]);
    check("lift", &expected[..128], &seen[..128]);
    let (mut expected, mut seen) = (acc[..256].to_vec(), narrow(&acc[..256]));
    let values: Vec<i64> = (0..256).map(|i| i * 9871 - 900_000).collect();
    ring.lift_add(&values, &mut expected);
    small.lift_add(&values, &mut seen);
    check("lift_add", &expected, &seen);
    let modulus = ring.modulus();
    for ((sum, &before), &value) in expected.iter().zip(&acc).zip(&values) {
        assert_eq!(*sum, modulus.add(before, modulus.reduce_i64(value)));
    }
}

/// The largest prime below a power of two for which every degree has a transform.
fn below(power: u64) -> u64 {
    let step = 1 << 18;
    (1..power / step).map(|k| power - k * step + 1).find(|&q| is_prime(q)).unwrap()
}

#[test]
fn every_engine_gives_the_words_of_the_ring() {
    for log_n in [10, 11, 16, 17] {
        same::<ShiftAdd30>(log_n, SHIFT_ADD_30);
        same::<Montgomery<u32>>(log_n, SHIFT_ADD_30);
        same::<Montgomery<u64>>(log_n, SHIFT_ADD_30);
        same::<ShiftAdd60>(log_n, SHIFT_ADD_60);
        same::<Montgomery<u64>>(log_n, SHIFT_ADD_60);
        let [narrow, middle, wide] = generic_primes();
        same::<Montgomery<u32>>(log_n, narrow);
        same::<Montgomery<u64>>(log_n, middle);
        same::<Montgomery<u64>>(log_n, wide);
        for q in [SHIFT_ADD_30, narrow, middle, below(1 << Shoup::BITS)] {
            same::<Shoup>(log_n, q);
        }
    }
}

#[test]
fn what_is_no_ring_is_refused() {
    assert!(SmallEngine::<Montgomery<u64>>::new(9, SHIFT_ADD_60).is_err());
    assert!(SmallEngine::<Montgomery<u64>>::new(18, SHIFT_ADD_60).is_err());
    assert!(SmallEngine::<Montgomery<u64>>::new(12, SHIFT_ADD_60 + 2).is_err());
    assert!(SmallEngine::<Montgomery<u32>>::new(12, SHIFT_ADD_60).is_err());
    assert!(SmallEngine::<ShiftAdd30>::new(12, SHIFT_ADD_60).is_err());
    assert!(SmallEngine::<Shoup>::new(12, SHIFT_ADD_60).is_err());
    // A prime that is not 1 modulo 2N.
    assert!(SmallEngine::<Montgomery<u64>>::new(12, (1 << 61) - 1).is_err());
}
