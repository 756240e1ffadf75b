use keywright_bfv::BfvError;
use keywright_ring::backend;
use keywright_rlwe::noise;
use proptest::prelude::*;

use super::*;

/// Plaintext moduli with and without slots at `N = 2^10`, from the smallest to nearly the largest.
fn moduli() -> [(u64, &'static [u32]); 8] {
    [
        (2, &[40, 40, 40]),
        (3, &[40, 40, 40]),
        (256, &[45, 45, 45]),
        (12289, &[50, 50, 50]),
        (65537, &[55, 55, 55]),
        ((1 << 32) + 15, &[60, 60, 60]),
        (1 << 59, &[61, 61, 61, 61]),
        // The largest prime below 2^60 that is 1 modulo 2^11.
        (1_152_921_504_606_830_593, &[61, 61, 61, 61]),
    ]
}

fn packings(parameters: &BfvParameters) -> Vec<Packing> {
    [Packing::Coefficients].into_iter().chain(parameters.has_slots().then_some(Packing::Slots)).collect()
}

/// Values at the edges, then random ones.
fn kinds(n: usize, t: u64) -> Vec<Vec<u64>> {
    let mut sparse = vec![0; n];
    sparse[n - 1] = t - 1;
    vec![vec![0; n], vec![t - 1; n], vec![t / 2; n], sparse, random(n, t, 7), random(n, t, 8)]
}

#[test]
fn arithmetic_modulo_every_kind_of_integer() {
    for (t, q) in moduli() {
        let party = Party::new(parameters(10, q, &[61, 61], t), &[1]);
        let evaluator = party.evaluator();
        let (n, wide) = (party.parameters.rlwe().n(), u128::from(t));
        assert_eq!(party.parameters.has_slots(), [12289, 65537, 1_152_921_504_606_830_593].contains(&t));
        for packing in packings(&party.parameters) {
            let lists = kinds(n, t);
            for (x, y) in lists.iter().zip(lists.iter().cycle().skip(2)) {
                let (a, b) = (party.encrypt(x, packing), party.encrypt(y, packing));
                let p = party.parameters.encode(&signed(y), packing).unwrap();
                let sum = map2(x, y, |x, y| (x + y) % wide);
                let difference = map2(x, y, |x, y| (x + wide - y) % wide);
                let times = product(packing, x, y, t);
                party.check("encrypt", &a, x);
                party.check("add", &evaluator.add(&a, &b).unwrap(), &sum);
                party.check("sub", &evaluator.sub(&a, &b).unwrap(), &difference);
                party.check("neg", &evaluator.neg(&a).unwrap(), &map2(x, x, |x, _| (wide - x) % wide));
                party.check("add plain", &evaluator.add_plain(&a, &p).unwrap(), &sum);
                party.check("sub plain", &evaluator.sub_plain(&a, &p).unwrap(), &difference);
                party.check("multiply plain", &evaluator.multiply_plain(&a, &p).unwrap(), &times);
                party.check("multiply", &evaluator.multiply(&a, &b).unwrap(), &times);
                party.check("square", &evaluator.square(&a).unwrap(), &product(packing, x, x, t));
                party.check(
                    "multiply scalar",
                    &evaluator.multiply_scalar(&a, -((t / 2) as i64)).unwrap(),
                    &map2(x, x, |x, _| x * (wide - u128::from(t / 2)) % wide),
                );
            }
        }
    }
}

#[test]
fn degree_two_is_added_relinearized_and_switched() {
    let party = Party::new(parameters(10, &[45, 45, 45, 45], &[50, 50], 65537), &[]);
    let (evaluator, packing) = (party.evaluator(), Packing::Slots);
    let (x, y) = (random(1024, 65537, 9), random(1024, 65537, 10));
    let (a, b) = (party.encrypt(&x, packing), party.encrypt(&y, packing));
    let lazy = evaluator.multiply_lazy(&a, &b).unwrap();
    assert_eq!(lazy.degree(), 2);
    let product = map2(&x, &y, |x, y| x * y % 65537);
    party.check("lazy", &lazy, &product);
    let sum = evaluator.add(&a, &lazy).unwrap();
    party.check("sum", &sum, &map2(&x, &product, |x, y| (x + y) % 65537));
    let difference = evaluator.sub(&a, &lazy).unwrap();
    party.check("difference", &difference, &map2(&x, &product, |x, y| (x + 65537 - y) % 65537));
    party.check("switched", &evaluator.mod_switch(&lazy).unwrap(), &product);
    party.check("relinearized", &evaluator.relinearize(&lazy).unwrap(), &product);
    for refused in [evaluator.multiply(&a, &lazy), evaluator.square(&lazy), evaluator.swap_rows(&lazy)] {
        assert!(matches!(refused, Err(BfvError::Degree { degree: 2, .. })));
    }
}

#[test]
fn rotations_move_columns_and_swap_rows() {
    let party = Party::new(parameters(10, &[45, 45], &[45], 65537), &[1, 5, -3]);
    let evaluator = party.evaluator();
    let x = random(1024, 65537, 11);
    let a = party.encrypt(&x, Packing::Slots);
    let rotated = |k: i64| -> Vec<u64> {
        x.chunks(512)
            .flat_map(|row| (0..512).map(|j| row[(j + k).rem_euclid(512) as usize]).collect::<Vec<_>>())
            .collect()
    };
    let steps = [1, 5, -3, 0, 513];
    for (k, out) in steps.into_iter().zip(evaluator.rotate_rows_hoisted(&a, &steps).unwrap()) {
        party.check("hoisted", &out, &rotated(k));
        party.check("rotated", &evaluator.rotate_rows(&a, k).unwrap(), &rotated(k));
    }
    let swapped: Vec<u64> = x[512..].iter().chain(&x[..512]).copied().collect();
    party.check("swapped", &evaluator.swap_rows(&a).unwrap(), &swapped);
}

#[test]
fn levels_go_down_and_multiply_at_each() {
    let party = Party::new(parameters(10, &[50, 45, 61, 40, 50], &[61], 65537), &[1]);
    let (evaluator, n) = (party.evaluator(), 1024);
    let (x, y) = (random(n, 65537, 12), random(n, 65537, 13));
    let (mut a, mut b) = (party.encrypt(&x, Packing::Slots), party.encrypt(&y, Packing::Slots));
    for level in (1..party.parameters.max_level()).rev() {
        (a, b) = (evaluator.mod_switch(&a).unwrap(), evaluator.mod_switch(&b).unwrap());
        assert_eq!(a.level(), level);
        party.check("switched", &a, &x);
        party.check("product", &evaluator.multiply(&a, &b).unwrap(), &map2(&x, &y, |x, y| x * y % 65537));
        let fresh = party.parameters.encode(&signed(&y), Packing::Slots).unwrap();
        let fresh = party.encrypt_at(&fresh, level);
        party.check("fresh", &evaluator.add(&a, &fresh).unwrap(), &map2(&x, &y, |x, y| (x + y) % 65537));
    }
    let bottom = evaluator.mod_switch_to(&a, 0).unwrap();
    party.check("bottom", &bottom, &x);
    assert!(evaluator.mod_switch(&bottom).is_err());
    assert!(matches!(evaluator.add(&a, &bottom), Err(BfvError::LevelMismatch { left: 1, right: 0 })));
}

#[test]
fn scalars_and_pools_need_no_transform() {
    for t in [65537, 256] {
        let party = Party::new(parameters(10, &[45, 45], &[45], t), &[]);
        for packing in packings(&party.parameters) {
            for value in [0, 1, -1, (t - 1) as i64, -((t / 2) as i64)] {
                let scalar = party.parameters.encode_scalar(value, packing).unwrap();
                let expected = vec![value.rem_euclid(t as i64) as u64; 1024];
                assert_eq!(scalar.residues(), expected);
                let same = party.parameters.encode(&vec![value; 1024], packing).unwrap();
                for plaintext in [&scalar, &same] {
                    let mut zero_rng = party.randomness();
                    let public = KeyGenerator::new(&party.secret, rng(3)).public_key();
                    let zero = keywright_rlwe::encrypt_zero(&public, 1, &mut zero_rng, None).unwrap();
                    let variance = noise::fresh_public(party.parameters.rlwe());
                    let pooled = Ciphertext::from_zero(zero, plaintext, variance).unwrap();
                    party.check("pooled", &pooled, &expected);
                    let direct = party.encrypt_at(plaintext, 1);
                    party.check("direct", &direct, &expected);
                    assert_eq!(direct.estimate, pooled.estimate);
                }
                // A product with a constant equals the product with its list.
                let a = party.encrypt(&random(1024, t, 21), packing);
                if packing == Packing::Slots {
                    let products = [&scalar, &same].map(|p| {
                        let product = party.evaluator().multiply_plain(&a, p).unwrap();
                        party.decryptor().decrypt(&product).unwrap().residues()
                    });
                    assert_eq!(products[0], products[1]);
                }
            }
        }
    }
}

#[test]
fn every_back_end_gives_the_same_bits() {
    let literal = parameters(10, &[45, 61, 50], &[61], 65537).literal();
    let results: Vec<_> = backend::available()
        .into_iter()
        .map(|backend| {
            let parameters = BfvParameters::with_backend(literal.clone(), backend).unwrap();
            let party = Party::new(parameters, &[]);
            let (a, b) = (
                party.encrypt(&random(1024, 65537, 15), Packing::Slots),
                party.encrypt(&random(1024, 65537, 16), Packing::Slots),
            );
            let product = party.evaluator().multiply(&a, &b).unwrap();
            party.evaluator().mod_switch(&product).unwrap().rlwe
        })
        .collect();
    assert!(!results.is_empty() && results.iter().all(|rlwe| *rlwe == results[0]));
}

#[test]
fn symmetric_ciphertexts_expand() {
    let party = Party::new(parameters(10, &[45, 45], &[45], 65537), &[]);
    let x = random(1024, 65537, 14);
    let plaintext = party.parameters.encode(&signed(&x), Packing::Slots).unwrap();
    for level in 0..=1 {
        let seeded = party.decryptor().encrypt(&plaintext, level, &mut party.randomness()).unwrap();
        assert_eq!(seeded.bytes(), 1024 * 8 * (level + 1) + 32);
        party.check("expanded", &seeded.expand(), &x);
    }
}

#[test]
fn decoded_values_are_centred() {
    let parameters = parameters(10, &[45], &[], 65537);
    let values = [0, 1, 32768, -32768, 32769, 65536, -1];
    for packing in [Packing::Slots, Packing::Coefficients] {
        let decoded = parameters.encode(&values, packing).unwrap().decode();
        assert_eq!(decoded[..7], [0, 1, 32768, -32768, -32768, -1, -1]);
        assert!(decoded[7..].iter().all(|&v| v == 0));
    }
}

#[test]
fn slots_are_values_at_powers_of_five() {
    // X has the values psi^(5^j), then psi^(-5^j): their products with each other are 1, and they rotate by powers.
    let parameters = parameters(10, &[45, 45], &[45], 65537);
    let mut x = vec![0; 1024];
    x[1] = 1;
    let plaintext = parameters.encode(&x, Packing::Coefficients).unwrap();
    let party = Party::new(parameters, &[]);
    let mut a = party.encrypt_at(&plaintext, 0);
    a.packing = Packing::Slots;
    let slots = party.decryptor().decrypt(&a).unwrap().residues();
    let power = |x: u64, e: u64| (0..e).fold(1, |acc, _| acc * x % 65537);
    assert_eq!(power(slots[0], 1024), 65536);
    for j in 0..512 {
        assert_eq!(slots[(j + 1) % 512], power(slots[j], 5));
        assert_eq!(slots[j] * slots[512 + j] % 65537, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A random program of additions, products and switches gives the result of the same program on plaintexts.
    #[test]
    fn programs_are_exact(
        t in prop_oneof![Just(2u64), Just(257), Just(12289), Just(65537), Just(1 << 20), 2u64..1 << 24],
        steps in prop::collection::vec((0u8..7, any::<i64>()), 1..10),
        seed: u8,
    ) {
        let party = Party::new(parameters(10, &[50, 50, 50, 50, 50], &[50, 50], t), &[]);
        let (evaluator, wide) = (party.evaluator(), u128::from(t));
        let packing = party.parameters.default_packing();
        let mut x = random(1024, t, seed);
        let y = random(1024, t, seed.wrapping_add(1));
        let (mut a, b) = (party.encrypt(&x, packing), party.encrypt(&y, packing));
        let plain = party.parameters.encode(&signed(&y), packing).unwrap();
        for (step, word) in steps {
            let c = word.rem_euclid(t as i64);
            let level_b = evaluator.mod_switch_to(&b, a.level()).unwrap();
            let next = match step {
                0 => evaluator.add(&a, &level_b).map(|a| (a, map2(&x, &y, |x, y| (x + y) % wide))),
                1 => evaluator.sub_plain(&a, &plain).map(|a| (a, map2(&x, &y, |x, y| (x + wide - y) % wide))),
                2 => evaluator.multiply(&a, &level_b).map(|a| (a, product(packing, &x, &y, t))),
                3 => evaluator.multiply_plain(&a, &plain).map(|a| (a, product(packing, &x, &y, t))),
                4 => evaluator.multiply_scalar(&a, c).map(|a| (a, map2(&x, &x, |x, _| x * c as u128 % wide))),
                5 => evaluator.mod_switch(&a).map(|a| (a, x.clone())),
                _ => evaluator.square(&a).map(|a| (a, product(packing, &x, &x, t))),
            };
            match next {
                Ok((next, values)) => {
                    party.check("step", &next, &values);
                    (a, x) = (next, values);
                }
                Err(BfvError::NoiseExhausted { budget, .. }) => prop_assert!(budget < 1.0),
                Err(BfvError::Rlwe(_)) => prop_assert_eq!(a.level(), 0),
                Err(other) => panic!("{other}"),
            }
        }
    }
}
