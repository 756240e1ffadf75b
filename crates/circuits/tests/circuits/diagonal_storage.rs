//! Linear transforms whose diagonals are kept encoded, and as coefficients: both give the same ciphertext.

use crate::fixture::{Owner, Values};
use crate::linear_transform::{Diagonals, FLOAT, keys_for, product, random, small};
use keywright_circuits::CircuitError;
use keywright_circuits::linear_transform::{BsgsPlan, LinearTransform, Storage, evaluate};
use keywright_ckks::{Complex64, Evaluator};
use proptest::prelude::*;

/// The same transform in both storages.
fn both(
    owner: &Owner,
    diagonals: &Diagonals,
    log_slots: u32,
    level: usize,
    special: &[usize],
    change: impl Fn(BsgsPlan) -> Result<BsgsPlan, CircuitError>,
    n1: usize,
) -> [LinearTransform; 2] {
    [Storage::Encoded, Storage::Coefficients].map(|storage| {
        let steps = |indices, slots| change(BsgsPlan::new(indices, slots, n1)?);
        let transform = LinearTransform::with_steps(
            &owner.parameters,
            diagonals,
            log_slots,
            level,
            special,
            storage,
            steps,
        );
        transform.unwrap()
    })
}

fn periodic(indices: &[usize], periods: &[usize], slots: usize, seed: u64) -> Diagonals {
    let mut values = Values(seed);
    let cycle = |values: Vec<Complex64>| values.into_iter().cycle().take(slots).collect();
    indices.iter().zip(periods).map(|(&r, &period)| (r, cycle(values.complex(period)))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// In rings of degree 2^10, where every subring is transformed in a larger one, and above.
    #[test]
    fn diagonals_kept_as_coefficients_give_the_same_ciphertext(
        log_n in 10u32..=13,
        less in 0u32..=3,
        level in 1usize..=5,
        n1 in 1usize..=64,
        special in 1usize..=2,
        rows in proptest::collection::btree_map(0usize..512, 0u32..=12, 1..10),
        seed in any::<u64>(),
        chained in any::<bool>(),
        real in any::<bool>(),
        threads in 1usize..=2,
    ) {
        let owner = Owner::insecure(log_n, &[50, 45, 45, 45, 45, 45], &[50, 60], 45.0);
        let log_slots = log_n - 1 - less;
        let slots = 1usize << log_slots;
        let indices: Vec<usize> = rows.keys().map(|r| r % slots).collect();
        let periods: Vec<usize> = rows.values().map(|&log| 1 << log.min(log_slots)).collect();
        let mut diagonals = periodic(&indices, &periods, slots, seed);
        if real {
            let values = diagonals.values_mut().flatten();
            values.for_each(|value| value.im = 0.0);
        }
        let removed = owner.spec(owner.rotation(1), level, special).special;
        let n1 = n1.min(slots);
        let change = |plan: BsgsPlan| Ok(if chained { plan.chained() } else { plan });
        let transforms = both(&owner, &diagonals, log_slots, level, &removed, change, n1);
        let keys = keys_for(&owner, &[&transforms[0]], level, special);
        let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
        let input = owner.encrypt(&Values(77).complex(slots), level);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let [encoded, kept] =
            [0, 1].map(|i| pool.install(|| evaluate(&evaluator, &[(&transforms[i], &input)]).unwrap()));
        prop_assert!(encoded.rlwe.polys == kept.rlwe.polys);
        prop_assert_eq!(encoded.estimate.deviation, kept.estimate.deviation);
        let expected = product(&diagonals, &Values(77).complex(slots));
        owner.check(&encoded, &expected, FLOAT * transforms[0].row_sum(), "either form");
        // The prediction uses indices and periods alone.
        let least = |r: usize| (0..=log_slots).map(|log| 1usize << log).find(|&p| {
            let d = &diagonals[&r];
            (0..slots).all(|k| d[k] == d[k % p])
        });
        let least: Vec<usize> = diagonals.keys().filter_map(|&r| least(r)).collect();
        for transform in &transforms {
            let primes = level + 1 + removed.len();
            let periods = least.iter().copied();
            prop_assert_eq!(transform.bytes(), transform.storage().bytes(real, periods, primes));
        }
    }
}

#[test]
fn block_rows_of_both_kinds_of_storage() {
    let owner = small();
    let special = owner.spec(owner.rotation(1), 5, 2).special;
    let sets = [random(&[0, 1, 2, 9, 17, 22], 32, 1), random(&[3, 8, 24, 31], 32, 2)];
    let transforms = sets.each_ref().map(|set| both(&owner, set, 5, 4, &special, Ok, 8));
    let keys = keys_for(&owner, &[&transforms[0][0], &transforms[1][0]], 5, 2);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let inputs = [50, 51].map(|seed| owner.encrypt(&Values(seed).complex(32), 4));
    let result = |i: usize, j: usize| {
        evaluate(&evaluator, &[(&transforms[0][i], &inputs[0]), (&transforms[1][j], &inputs[1])])
            .unwrap()
            .rlwe
            .polys
    };
    let expected = result(0, 0);
    for (i, j) in [(0, 1), (1, 0), (1, 1)] {
        assert!(result(i, j) == expected, "{i} {j}");
    }
}

#[test]
fn block_rows_of_real_and_complex_diagonals() {
    let owner = small();
    let special = owner.spec(owner.rotation(1), 5, 2).special;
    let mut sets = [random(&[0, 1, 2, 9, 17, 22], 512, 1), random(&[3, 8, 24, 31], 512, 2)];
    sets[0].values_mut().flatten().for_each(|value| value.im = 0.0);
    let transforms = sets.each_ref().map(|set| both(&owner, set, 9, 4, &special, Ok, 8));
    assert!(transforms[0][0].is_real() && !transforms[1][0].is_real());
    let keys = keys_for(&owner, &[&transforms[0][0], &transforms[1][0]], 5, 2);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let vectors = [50, 51].map(|seed| Values(seed).complex(512));
    let inputs = vectors.each_ref().map(|v| owner.encrypt(v, 4));
    let products = sets.iter().zip(&vectors).map(|(set, v)| product(set, v));
    let expected = products.reduce(|a, b| a.iter().zip(b).map(|(x, y)| x + y).collect()).unwrap();
    let mut results = Vec::new();
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let out = evaluate(&evaluator, &[(&transforms[0][i], &inputs[0]), (&transforms[1][j], &inputs[1])])
            .unwrap();
        owner.check(&out, &expected, 10.0 * FLOAT, "real and complex diagonals");
        results.push(out.rlwe.polys);
    }
    assert!(results.iter().all(|polys| *polys == results[0]));
}

/// At `N = 2^16`, 40 baby steps take two batches, and 12 transformed diagonals do not fit the scratch at once.
#[test]
fn more_baby_steps_than_are_kept_at_a_time() {
    let owner = Owner::insecure(16, &[50, 45], &[50], 45.0);
    let (log_slots, slots) = (15, 1usize << 15);
    let indices: Vec<usize> = (0..52).collect();
    let periods: Vec<usize> =
        indices.iter().map(|r| if r % 3 == 0 { slots } else { slots >> (r % 5) }).collect();
    let mut diagonals = periodic(&indices, &periods, slots, 3);
    let keys = keys_for(&owner, &[&both(&owner, &diagonals, log_slots, 1, &[2], Ok, 40)[0]], 1, 1);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let v = Values(77).complex(slots);
    let input = owner.encrypt(&v, 1);
    for real in [false, true] {
        if real {
            diagonals.values_mut().flatten().for_each(|value| value.im = 0.0);
        }
        let transforms = both(&owner, &diagonals, log_slots, 1, &[2], Ok, 40);
        let [encoded, kept] = [0, 1].map(|i| evaluate(&evaluator, &[(&transforms[i], &input)]).unwrap());
        assert!(encoded.rlwe.polys == kept.rlwe.polys);
        let float = FLOAT * transforms[0].row_sum();
        owner.check(&kept, &product(&diagonals, &v), float, "40 baby steps");
    }
}
