use super::{Random, isas};
use crate::encoder::mixed_radix::centred_with;
use keywright_ring::{Modulus, ntt_primes};
use num_bigint::{BigInt, Sign};

fn moduli(count: usize) -> Vec<Modulus> {
    let mut primes = ntt_primes(10, 60, 1, &[]).unwrap();
    primes.extend(ntt_primes(10, 50, 26, &[]).unwrap());
    primes.extend(ntt_primes(10, 61, 30, &[]).unwrap());
    primes.extend(ntt_primes(10, 30, 7, &[]).unwrap());
    primes[..count].iter().map(|&q| Modulus::new(q).unwrap()).collect()
}

/// `x` as an exact integer times `2^-60`.
fn exact(x: f64) -> BigInt {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i64 - 1075 + 60;
    if x == 0.0 {
        return BigInt::ZERO;
    }
    let mantissa = BigInt::from((bits & ((1 << 52) - 1)) | 1 << 52);
    let magnitude = if exponent >= 0 { mantissa << exponent as u64 } else { mantissa >> (-exponent) as u64 };
    if x < 0.0 { -magnitude } else { magnitude }
}

/// Checks that the relative error of the centred values of `integers` is within `2^-52.9`.
fn check(moduli: &[Modulus], integers: &[BigInt]) {
    let limbs: Vec<Vec<u64>> = moduli
        .iter()
        .map(|m| {
            let q = BigInt::from(m.value());
            integers.iter().map(|x| u64::try_from(((x % &q) + &q) % &q).unwrap()).collect()
        })
        .collect();
    let limbs: Vec<&[u64]> = limbs.iter().map(Vec::as_slice).collect();
    for isa in isas() {
        for (got, x) in centred_with(isa, moduli, &limbs).into_iter().zip(integers) {
            let error: BigInt = exact(got) - (x << 60);
            // 2^-52.9 = 0.5359 * 2^-52.
            let scaled: BigInt = (BigInt::from(error.magnitude().clone()) * 10_000) << 52;
            let allowed: BigInt = (BigInt::from(x.magnitude().clone()) * 5_359) << 60;
            assert!(scaled <= allowed, "{} primes: {x} came out as {got:e}", moduli.len());
        }
    }
}

fn random_below(random: &mut Random, bits: u64) -> BigInt {
    let words: Vec<u32> = (0..bits.div_ceil(32)).map(|_| random.word() as u32).collect();
    let sign = if random.word() & 1 == 0 { Sign::Plus } else { Sign::Minus };
    BigInt::from_slice(sign, &words) >> (bits.div_ceil(32) * 32 - bits)
}

#[test]
fn values_of_every_size_are_rounded_once() {
    let mut random = Random(7);
    for count in [1, 2, 3, 4, 7, 16, 17] {
        let moduli = moduli(count);
        let q: BigInt = moduli.iter().map(|m| BigInt::from(m.value())).product();
        let half: BigInt = &q >> 1;
        // All sizes, in random order, over more than one block.
        let mut integers: Vec<BigInt> = (0..1500)
            .map(|_| {
                let bits = 1 + random.word() % (q.bits() - 2);
                random_below(&mut random, bits)
            })
            .collect();
        // The ends of the range, and the neighbourhoods of all partial products: digits of one sign and the other.
        let mut product = BigInt::from(1);
        for m in &moduli {
            let halved: BigInt = &product >> 1;
            for offset in [-1, 0, 1] {
                integers.extend([&product + offset, &halved + offset, offset - &halved]);
            }
            product *= m.value();
        }
        integers.extend([half.clone(), -half.clone(), BigInt::ZERO]);
        integers.retain(|x| x.magnitude() <= half.magnitude());
        check(&moduli, &integers);
    }
}

#[test]
fn small_values_modulo_many_primes() {
    let mut random = Random(8);
    let moduli = moduli(64);
    for bits in [30, 58, 61, 100, 160, 600, 979] {
        let integers: Vec<BigInt> = (0..700).map(|_| random_below(&mut random, bits)).collect();
        check(&moduli, &integers);
    }
}

#[test]
fn values_beyond_the_range_are_not_finite_and_leave_the_others_alone() {
    let moduli = moduli(30);
    let q: BigInt = moduli.iter().map(|m| BigInt::from(m.value())).product();
    let huge = u64::try_from;
    let integers = [BigInt::from(5), &q >> 1, BigInt::from(-7)];
    let limbs: Vec<Vec<u64>> = moduli
        .iter()
        .map(|m| integers.iter().map(|x| huge(((x % m.value()) + m.value()) % m.value()).unwrap()).collect())
        .collect();
    let limbs: Vec<&[u64]> = limbs.iter().map(Vec::as_slice).collect();
    for isa in isas() {
        let values = centred_with(isa, &moduli, &limbs);
        assert_eq!((values[0], values[2]), (5.0, -7.0));
        assert!(!values[1].is_finite());
    }
}
