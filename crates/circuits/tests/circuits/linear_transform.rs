//! Linear transforms against the matrix-vector product in `f64`, with the error within the derived estimate.

use std::collections::{BTreeMap, BTreeSet};

use crate::fixture::{Owner, Values};
use keywright_circuits::CircuitError;
use keywright_circuits::linear_transform::{
    self, BsgsPlan, LinearTransform, Storage, SwitchErrors, evaluate,
};
use keywright_ckks::{CkksError, CkksParameters, Complex64, Evaluator};
use keywright_rlwe::{EvaluationKeys, RlweError};
use proptest::prelude::*;

pub(crate) type Diagonals = BTreeMap<usize, Vec<Complex64>>;

/// Bound on the error of the reference and of decoding, both computed in `f64`: `2^-44` of the values, which is 512
/// units for fewer than 100 additions and 30 butterfly stages.
pub(crate) const FLOAT: f64 = 1.0 / (1u64 << 44) as f64;

pub(crate) fn small() -> Owner {
    Owner::small(&[50, 45, 45, 45, 45, 45], &[50, 50], 45.0)
}

pub(crate) fn random(indices: &[usize], slots: usize, seed: u64) -> Diagonals {
    let mut values = Values(seed);
    indices.iter().map(|&r| (r, values.complex(slots))).collect()
}

pub(crate) fn product(diagonals: &Diagonals, v: &[Complex64]) -> Vec<Complex64> {
    let n = v.len();
    (0..n).map(|k| diagonals.iter().map(|(r, d)| d[k] * v[(k + r) % n]).sum()).collect()
}

pub(crate) fn keys_for(
    owner: &Owner,
    transforms: &[&LinearTransform],
    level: usize,
    alpha: usize,
) -> EvaluationKeys {
    let steps: BTreeSet<usize> = transforms.iter().flat_map(|t| t.plan().rotations()).collect();
    owner.keys(steps.into_iter().map(|k| owner.spec(owner.rotation(k), level, alpha)))
}

/// One transform at `level`, of a ciphertext `above` levels higher, with keys at the top.
fn run(
    owner: &Owner,
    diagonals: &Diagonals,
    log_slots: u32,
    level: usize,
    above: usize,
    n1: usize,
    alpha: usize,
) -> f64 {
    run_with(owner, diagonals, log_slots, level, above, n1, alpha, Ok)
}

/// The same, with other steps.
fn run_with(
    owner: &Owner,
    diagonals: &Diagonals,
    log_slots: u32,
    level: usize,
    above: usize,
    n1: usize,
    alpha: usize,
    change: impl FnOnce(BsgsPlan) -> Result<BsgsPlan, CircuitError>,
) -> f64 {
    let top = owner.parameters.max_level();
    let special = owner.spec(owner.rotation(1), top, alpha).special;
    let steps = |indices, slots| change(BsgsPlan::new(indices, slots, n1)?);
    let transform = LinearTransform::with_steps(
        &owner.parameters,
        diagonals,
        log_slots,
        level,
        &special,
        Storage::Encoded,
        steps,
    )
    .unwrap();
    let keys = keys_for(owner, &[&transform], top, alpha);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let v = Values(77).complex(1 << log_slots);
    let input = owner.encrypt(&v, level + above);
    let out = evaluate(&evaluator, &[(&transform, &input)]).unwrap();
    assert_eq!((out.level(), out.scale, out.packing), (level - 1, input.scale, input.packing));
    let expected = product(diagonals, &v);
    let what = format!("2^{log_slots} slots, level {level}, n1 {n1}, diagonals {:?}", diagonals.keys());
    let seen = owner.check(&out, &expected, FLOAT * transform.row_sum(), &what);
    seen / out.estimate.bound()
}

#[test]
fn dense_matrices_of_every_size() {
    let owner = small();
    for log_slots in 0..=10u32 {
        let slots = 1usize << log_slots;
        let count = slots.min(32);
        // Spread over all rotations, including the last one.
        let indices: Vec<usize> =
            (0..count).map(|k| (k * slots / count + k % 3 * (slots / count / 3)) % slots).collect();
        let diagonals = random(&indices, slots, u64::from(log_slots));
        for n1 in [1, 4, slots].into_iter().filter(|&n1| n1 <= slots) {
            let ratio = run(&owner, &diagonals, log_slots, 3, 1, n1, 2);
            // The estimate adds deviations as in the worst case, but it is not vacuous.
            assert!(ratio > 1.0 / 200.0, "2^{log_slots} slots: {ratio}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn sparse_matrices(
        log_slots in 0u32..=10,
        level in 1usize..=5,
        n1 in 1usize..=64,
        alpha in 1usize..=2,
        indices in proptest::collection::btree_set(0usize..1024, 1..10),
        seed in any::<u64>(),
        tier in 1usize..=64,
        chained in any::<bool>(),
    ) {
        let owner = small();
        let slots = 1usize << log_slots;
        let indices: Vec<usize> = indices.into_iter().map(|r| r % slots).collect();
        let diagonals = random(&indices, slots, seed);
        let n1 = n1.min(slots);
        let change = |plan: BsgsPlan| if chained { plan.chained() } else { plan }.tiered(tier.min(n1));
        run_with(&owner, &diagonals, log_slots, level, (5 - level).min(1), n1, alpha, change);
    }
}

/// Rotations whose keys remove other primes than the transform are whole key switches: all of them, or every other one.
#[test]
fn keys_of_any_special_primes_serve() {
    let owner = Owner::small(&[60, 45, 45, 45, 45], &[60, 60, 60], 45.0);
    let top = owner.parameters.max_level();
    let diagonals = random(&[0, 1, 2, 3, 5, 6, 8, 9, 11, 16, 21], 1 << 6, 41);
    let v = Values(78).complex(1 << 6);
    let expected = product(&diagonals, &v);
    let changes: [fn(BsgsPlan) -> BsgsPlan; 3] =
        [|plan| plan, |plan| plan.tiered(2).unwrap(), |plan| plan.chained().tiered(2).unwrap()];
    for (level, special) in [(1, vec![5]), (1, vec![5, 6, 7]), (2, vec![6, 7]), (3, vec![5, 6]), (4, vec![7])]
    {
        for (change, every) in changes.iter().flat_map(|change| [(change, 1), (change, 2)]) {
            let steps = |indices, slots| Ok(change(BsgsPlan::new(indices, slots, 4)?));
            let transform = LinearTransform::with_steps(
                &owner.parameters,
                &diagonals,
                6,
                level,
                &special,
                Storage::Encoded,
                steps,
            )
            .unwrap();
            let unfit = if special.len() == 3 { 2 } else { 3 };
            let rotations = transform.plan().rotations();
            let keys = owner.keys(rotations.iter().enumerate().map(|(i, &k)| {
                let alpha = if i % every == 0 { unfit } else { special.len() };
                let mut spec = owner.spec(owner.rotation(k), top, alpha);
                if i % every != 0 {
                    spec.special.clone_from(&special);
                }
                spec
            }));
            let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
            let input = owner.encrypt(&v, level);
            let out = evaluate(&evaluator, &[(&transform, &input)]).unwrap();
            let what = format!("level {level} over {special:?}, one key in {every} does not fit");
            owner.check(&out, &expected, FLOAT * transform.row_sum(), &what);
            let errors = SwitchErrors::new(&evaluator, &[transform.plan().clone()], level, &special).unwrap();
            assert_eq!(errors.babies[0].len(), transform.plan().babies.len());
        }
    }
}

#[test]
fn chained_giant_steps_need_one_key_and_give_the_same() {
    let owner = small();
    for (log_slots, indices, n1, switches) in [
        (10, (0..24).collect::<Vec<_>>(), 4, 3 + 5),
        (10, vec![1, 6, 21, 40], 4, 2 + 10),
        (6, vec![0, 16, 48], 16, 3),
        (4, vec![0, 1, 2], 4, 2),
        (2, vec![3], 1, 1),
    ] {
        let diagonals = random(&indices, 1 << log_slots, 17);
        run_with(&owner, &diagonals, log_slots, 3, 1, n1, 2, |plan| Ok(plan.chained()));
        let plan = BsgsPlan::new(indices.iter().copied(), 1 << log_slots, n1).unwrap();
        assert_eq!(plan.chained().key_switches(), switches, "{indices:?}");
    }
}

#[test]
fn baby_steps_in_tiers_need_fewer_keys_and_give_the_same() {
    let owner = small();
    for (log_slots, indices, n1, tier, level, switches, keys) in [
        (10, (0..31).collect::<Vec<_>>(), 8, 4, 3, 3 + 1 + 3 + 3, vec![1, 2, 3, 4, 8]),
        (10, (0..31).collect(), 8, 2, 1, 4 + 3 + 3, vec![1, 2, 8]),
        (10, (0..15).map(|k| 4 * k).collect(), 16, 4, 5, 3 + 3, vec![4, 16]),
        // Hops pass over tiers that are left out, and tiers have unequal lengths.
        (6, vec![0, 7, 13, 30], 16, 4, 4, 3 + 3 + 1, vec![1, 2, 3, 4, 16]),
        (6, vec![0, 1, 2, 3, 4], 8, 5, 2, 4, vec![1, 2, 3, 4]),
        // No baby step is a rotation of the input.
        (5, vec![6, 9], 16, 6, 3, 1 + 1, vec![3, 6]),
        (4, vec![11], 16, 1, 3, 11, vec![1]),
    ] {
        let diagonals = random(&indices, 1 << log_slots, 23);
        let plan = BsgsPlan::new(indices.iter().copied(), 1 << log_slots, n1).unwrap();
        let plan = plan.chained().tiered(tier).unwrap();
        assert_eq!((plan.key_switches(), plan.rotations()), (switches, keys), "{indices:?}");
        for chained in [false, true] {
            let change = |plan: BsgsPlan| if chained { plan.chained() } else { plan }.tiered(tier);
            let above = usize::from(level < 5);
            let ratio = run_with(&owner, &diagonals, log_slots, level, above, n1, 2, change);
            assert!(ratio > 1.0 / 200.0, "{indices:?}, tiers of {tier}: {ratio}");
        }
    }
    for tier in [0, 9] {
        let error = BsgsPlan::new(0..16, 64, 8).unwrap().tiered(tier).unwrap_err();
        assert!(matches!(error, CircuitError::Count { min: 1, max: 8, .. }), "{error}");
    }
}

#[test]
fn block_rows_of_tiers() {
    let owner = small();
    let special = owner.spec(owner.rotation(1), 5, 2).special;
    let sets = [random(&[0, 1, 2, 9, 17, 22], 32, 1), random(&[3, 8, 24, 31], 32, 2)];
    let transforms: Vec<_> = sets
        .iter()
        .zip([2, 8])
        .map(|(set, tier)| {
            let steps = |indices, slots| BsgsPlan::new(indices, slots, 8)?.tiered(tier);
            LinearTransform::with_steps(&owner.parameters, set, 5, 4, &special, Storage::Encoded, steps)
                .unwrap()
        })
        .collect();
    let keys = keys_for(&owner, &transforms.iter().collect::<Vec<_>>(), 5, 2);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let vectors: Vec<_> = (0..2).map(|t| Values(50 + t).complex(32)).collect();
    let inputs: Vec<_> = vectors.iter().zip([5, 4]).map(|(v, level)| owner.encrypt(v, level)).collect();
    let out = evaluate(&evaluator, &transforms.iter().zip(&inputs).collect::<Vec<_>>()).unwrap();
    let products = sets.iter().zip(&vectors).map(|(set, v)| product(set, v));
    let expected = products.reduce(|a, b| a.iter().zip(b).map(|(x, y)| x + y).collect()).unwrap();
    owner.check(&out, &expected, 10.0 * FLOAT, "block row of tiers");
}

#[test]
fn periodic_diagonals_are_stored_once_and_give_the_same() {
    let owner = small();
    let (slots, limbs) = (1024, 3 + 1 + 2);
    for period in [1, 2, 64, 512] {
        let mut values = Values(period as u64);
        let diagonals: Diagonals = [0, 3, 9, 700]
            .into_iter()
            .map(|r| (r, values.complex(period).into_iter().cycle().take(slots).collect()))
            .collect();
        run(&owner, &diagonals, 10, 3, 0, 4, 2);
        let transform = LinearTransform::new(&owner.parameters, &diagonals, 10, 3, &[6, 7], 4).unwrap();
        assert_eq!(transform.bytes(), 4 * 16 * period * limbs);
    }
}

#[test]
fn rows_are_diagonals() {
    let owner = small();
    let (slots, period) = (64, 16);
    let indices = [0, 3, 17, 67, 40];
    let mut values = Values(4).reals(indices.len() * period);
    // A row of a smaller period, and one of zeros.
    values.copy_within(0..period / 2, period / 2);
    values[4 * period..].fill(0.0);
    let rows = linear_transform::Diagonals::Rows { indices: &indices, values: &values, period };
    let mut map = Diagonals::new();
    for (&r, row) in indices.iter().zip(values.chunks_exact(period)) {
        map.insert(r, (0..slots).map(|k| Complex64::from(row[k % period])).collect());
    }
    for storage in [Storage::Encoded, Storage::Coefficients] {
        let steps = |indices, slots| BsgsPlan::new(indices, slots, 4);
        let p = &owner.parameters;
        let [rows, map] = [rows, (&map).into()].map(|diagonals: linear_transform::Diagonals<'_>| {
            LinearTransform::with_steps(p, diagonals, 6, 3, &[6], storage, steps).unwrap()
        });
        // 3 and 67 are equal.
        assert_eq!(rows.bytes(), storage.bytes(true, [8, 16, 16, 1], 5));
        assert_eq!((rows.bytes(), rows.plan(), rows.row_sum()), (map.bytes(), map.plan(), map.row_sum()));
        let keys = keys_for(&owner, &[&rows], 3, 1);
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let input = owner.encrypt(&Values(5).complex(slots), 3);
        let [a, b] = [&rows, &map].map(|t| evaluate(&evaluator, &[(t, &input)]).unwrap());
        assert!(a.rlwe.polys == b.rlwe.polys);
    }
}

#[test]
fn rows_and_coefficients_that_do_not_fit_are_refused() {
    let owner = small();
    let refuse = |indices: &[usize], values: &[f64], period| {
        let rows = linear_transform::Diagonals::Rows { indices, values, period };
        LinearTransform::new(&owner.parameters, rows, 4, 2, &[6], 2).unwrap_err()
    };
    for period in [0, 3, 32] {
        let error = refuse(&[1], &vec![1.0; period], period);
        assert_eq!(error, CircuitError::DiagonalPeriod { period, slots: 16 });
    }
    for values in [0, 4, 12, 15] {
        let error = refuse(&[1, 2], &vec![1.0; values], 4);
        assert!(matches!(error, CircuitError::DiagonalLength { index: 1, expected: 4, .. }), "{error}");
    }
    for value in [f64::NAN, f64::NEG_INFINITY] {
        let error = refuse(&[1, 2], &[1.0, 2.0, 3.0, value], 2);
        assert!(matches!(error, CircuitError::NotFinite { index: 2, .. }), "{error}");
    }
    // The scale is the prime of 45 bits: a value of 2^17 makes the coefficients of a constant 62 bits.
    for (value, fits) in [(65536.0, true), (262_144.0, false)] {
        let diagonals = Diagonals::from([(3, vec![Complex64::from(value); 16])]);
        let make = |storage| {
            let steps = |indices, slots| BsgsPlan::new(indices, slots, 2);
            LinearTransform::with_steps(&owner.parameters, &diagonals, 4, 2, &[6], storage, steps)
        };
        assert!(make(Storage::Encoded).is_ok());
        let kept = make(Storage::Coefficients);
        assert_eq!(kept.is_ok(), fits);
        if let Err(error) = kept {
            assert!(
                matches!(error, CircuitError::CoefficientWidth { index: 3, bits } if (62.9..63.1).contains(&bits)),
                "{error}"
            );
        }
    }
}

#[test]
fn block_rows_share_giant_steps() {
    let owner = small();
    let (log_slots, level) = (5, 4);
    let special = owner.spec(owner.rotation(1), 5, 2).special;
    let sets = [random(&[0, 1, 2, 9, 17], 32, 1), random(&[3, 8, 24, 31], 32, 2), random(&[5], 32, 3)];
    let transforms: Vec<_> = sets
        .iter()
        .zip([4, 8, 1])
        .map(|(set, n1)| {
            LinearTransform::new(&owner.parameters, set, log_slots, level, &special, n1).unwrap()
        })
        .collect();
    let keys = keys_for(&owner, &transforms.iter().collect::<Vec<_>>(), 5, 2);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let vectors: Vec<_> = (0..3).map(|t| Values(40 + t).complex(32)).collect();
    let inputs: Vec<_> = vectors.iter().zip([4, 5, 4]).map(|(v, level)| owner.encrypt(v, level)).collect();
    let pairs: Vec<_> = transforms.iter().zip(&inputs).collect();
    let out = evaluate(&evaluator, &pairs).unwrap();
    let mut expected = vec![Complex64::ZERO; 32];
    for (set, v) in sets.iter().zip(&vectors) {
        expected.iter_mut().zip(product(set, v)).for_each(|(sum, x)| *sum += x);
    }
    owner.check(&out, &expected, 10.0 * FLOAT, "block row");
}

#[test]
fn keys_of_other_levels_and_digits_can_be_mixed() {
    let owner = small();
    let diagonals = random(&(0..16).collect::<Vec<_>>(), 1024, 8);
    let special = vec![6, 7];
    let transform = LinearTransform::new(&owner.parameters, &diagonals, 10, 3, &special, 4).unwrap();
    let spec = |k: usize| keywright_rlwe::KeySpec {
        element: owner.rotation(k),
        level: 3 + k % 3,
        alpha: 1 + k / 4 % 2 + k % 2,
        special: special.clone(),
        seeded: k.is_multiple_of(2),
        subring: None,
    };
    let keys = owner.keys(transform.plan().rotations().into_iter().map(spec));
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let v = Values(5).complex(1024);
    let out = evaluate(&evaluator, &[(&transform, &owner.encrypt(&v, 3))]).unwrap();
    owner.check(&out, &product(&diagonals, &v), 32.0 * FLOAT, "mixed keys");
}

#[test]
fn coalesced_keys_serve_diagonals_over_dropped_primes() {
    let owner = small();
    let diagonals = random(&(0..8).collect::<Vec<_>>(), 256, 9);
    // Keys of one prime per digit at the top; at level 2 three dropped primes can be merged.
    let specs =
        |k| keywright_rlwe::KeySpec { alpha: 1, special: vec![6], ..owner.spec(owner.rotation(k), 5, 1) };
    let plan = owner.parameters.rlwe().switch_plan(&specs(1), 2, 3, false).unwrap();
    assert_eq!(plan.layout.digits.len(), 1);
    assert!(plan.mod_down.removed.len() > 1);
    let transform =
        LinearTransform::new(&owner.parameters, &diagonals, 8, 2, &plan.mod_down.removed, 4).unwrap();
    let keys = owner.keys(transform.plan().rotations().into_iter().map(specs));
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let v = Values(6).complex(256);
    let out = evaluate(&evaluator, &[(&transform, &owner.encrypt(&v, 2))]).unwrap();
    owner.check(&out, &product(&diagonals, &v), 16.0 * FLOAT, "coalesced keys");
}

#[test]
fn coinciding_diagonals_are_summed() {
    let owner = small();
    let mut diagonals = random(&[1, 3], 4, 10);
    let folded = random(&[1], 4, 11);
    diagonals.insert(9, folded[&1].clone());
    // The reference takes index 9 modulo 4 too.
    run(&owner, &diagonals, 2, 2, 0, 2, 2);
}

#[test]
fn exactly_the_keys_of_the_plan_are_needed() {
    let owner = small();
    let diagonals = random(&[0, 1, 2, 5, 6, 9, 13, 62], 64, 12);
    let special = owner.spec(owner.rotation(1), 3, 2).special;
    let transform = LinearTransform::new(&owner.parameters, &diagonals, 6, 3, &special, 4).unwrap();
    let rotations = transform.plan().rotations();
    let v = owner.encrypt(&Values(8).complex(64), 3);
    let all: Vec<_> = rotations.iter().map(|&k| owner.spec(owner.rotation(k), 3, 2)).collect();
    let keys = owner.keys(all.clone());
    assert!(evaluate(&Evaluator::new(&owner.parameters, &keys).unwrap(), &[(&transform, &v)]).is_ok());
    for (absent, k) in rotations.iter().enumerate() {
        let keys =
            owner.keys(all.iter().enumerate().filter(|&(i, _)| i != absent).map(|(_, spec)| spec.clone()));
        let error =
            evaluate(&Evaluator::new(&owner.parameters, &keys).unwrap(), &[(&transform, &v)]).unwrap_err();
        let expected = owner.rotation(*k);
        assert!(
            matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey { element, level: 3, .. })) if *element == expected),
            "{error}"
        );
        assert!(error.to_string().contains(&format!("rotation by {k}")), "{error}");
    }
}

#[test]
fn misuse_is_refused() {
    let owner = small();
    let p = &owner.parameters;
    let diagonals = random(&[0, 1, 2], 16, 13);
    let make = |d: &Diagonals, log_slots, level, special: &[usize], n1| {
        LinearTransform::new(p, d, log_slots, level, special, n1).unwrap_err()
    };
    assert!(matches!(make(&diagonals, 4, 0, &[6], 2), CircuitError::Ckks(CkksError::LevelsExhausted { .. })));
    assert!(matches!(
        make(&diagonals, 4, 6, &[6], 2),
        CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { .. }))
    ));
    assert!(matches!(make(&diagonals, 11, 2, &[6], 2), CircuitError::LogSlots { log_slots: 11, max: 10 }));
    assert!(matches!(
        make(&diagonals, 5, 2, &[6], 2),
        CircuitError::DiagonalLength { found: 16, expected: 32, .. }
    ));
    assert!(matches!(make(&diagonals, 4, 2, &[6], 17), CircuitError::BabySteps { n1: 17, slots: 16 }));
    assert!(matches!(make(&Diagonals::new(), 4, 2, &[6], 2), CircuitError::Empty(_)));
    for special in [&[2][..], &[8], &[6, 6]] {
        let error = make(&diagonals, 4, 2, special, 2);
        assert!(
            matches!(error, CircuitError::Ckks(CkksError::Rlwe(RlweError::SpecialPrime { .. }))),
            "{error}"
        );
    }
    let mut bad = diagonals.clone();
    bad.get_mut(&1).unwrap()[3].im = f64::NAN;
    assert!(matches!(make(&bad, 4, 2, &[6], 2), CircuitError::NotFinite { index: 1, .. }));

    let special = [6, 7];
    let transform = LinearTransform::new(p, &diagonals, 4, 2, &special, 2).unwrap();
    let keys = keys_for(&owner, &[&transform], 5, 2);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let refuse = |inputs: &[_]| evaluate(&evaluator, inputs).unwrap_err();
    let v = Values(9).complex(16);
    let good = owner.encrypt(&v, 2);
    assert!(matches!(refuse(&[]), CircuitError::Empty(_)));
    let low = owner.encrypt(&v, 1);
    assert!(matches!(
        refuse(&[(&transform, &low)]),
        CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { level: 2, max: 1, .. }))
    ));
    let wide = owner.encrypt(&Values(9).complex(32), 2);
    assert!(matches!(refuse(&[(&transform, &wide)]), CircuitError::Ckks(CkksError::PackingMismatch { .. })));
    let mut scaled = good.clone();
    scaled.scale *= 1.001;
    let error = refuse(&[(&transform, &good), (&transform, &scaled)]);
    assert!(matches!(error, CircuitError::Ckks(CkksError::ScaleMismatch { .. })));
    let square = evaluator.multiply_lazy(&good, &good).unwrap();
    assert!(matches!(
        refuse(&[(&transform, &square)]),
        CircuitError::Ckks(CkksError::Degree { degree: 2, .. })
    ));
    let other = LinearTransform::new(p, &diagonals, 4, 1, &special, 2).unwrap();
    assert!(matches!(
        refuse(&[(&transform, &good), (&other, &good)]),
        CircuitError::Mismatch { what: "level", .. }
    ));
    let chained = |indices, slots| Ok(BsgsPlan::new(indices, slots, 2)?.chained());
    let other =
        LinearTransform::with_steps(p, &diagonals, 4, 2, &special, Storage::Encoded, chained).unwrap();
    assert!(matches!(
        refuse(&[(&transform, &good), (&other, &good)]),
        CircuitError::Mismatch { what: "giant steps", .. }
    ));
    let foreign = Owner::small(&[50, 45, 45, 45], &[50, 50], 45.0);
    let error = refuse(&[(&transform, &foreign.encrypt(&v, 2))]);
    assert!(matches!(error, CircuitError::Ckks(CkksError::Rlwe(RlweError::MixedParameters { .. }))));
}

#[test]
fn a_secure_ring() {
    let owner = Owner::new(CkksParameters::preset("N14_QP415_S45").unwrap());
    let diagonals = random(&(0..24).map(|k| 5 * k).collect::<Vec<_>>(), 1 << 13, 14);
    run(&owner, &diagonals, 13, 7, 0, 20, 1);
}
