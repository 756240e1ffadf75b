//! Equal results for all ways to make automorphisms: trees of hops with keys of several shapes, against the product in
//! `f64`, with the error within the derived estimate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fixture::{Owner, Values};
use keywright_circuits::CircuitError;
use keywright_circuits::linear_transform::{BsgsPlan, LinearTransform, Storage, evaluate};
use keywright_ckks::{CkksError, Complex64, Evaluator};
use keywright_rlwe::{EvaluationKeys, Hop, KeyElement, KeyRoutes, KeySpec, RlweError, Route};
use proptest::prelude::*;

const FLOAT: f64 = 1.0 / (1u64 << 44) as f64;
const LEVEL: usize = 3;

fn small() -> Owner {
    Owner::small(&[50, 45, 45, 45, 45, 45], &[50, 50], 45.0)
}

/// A key of one of several shapes: two special primes, one, or one and a dropped ciphertext prime.
fn shaped(g: u64, shape: usize) -> KeySpec {
    let (alpha, special) = [(2, vec![6, 7]), (1, vec![6]), (2, vec![6, 5])][shape % 3].clone();
    KeySpec { element: KeyElement::Galois(g), level: LEVEL, alpha, special, seeded: true, subring: None }
}

/// A random tree: every target is a child of the ciphertext or of an earlier automorphism, sometimes of one that is no
/// target.
fn route(owner: &Owner, targets: &BTreeSet<u64>, values: &mut Values) -> Route {
    let two_n = 2 * owner.parameters.rlwe().n() as u64;
    let inverse = |g: u64| (1..).step_by(2).find(|&h| h * g % two_n == 1).unwrap();
    let mut reached = vec![1];
    let mut hops = Vec::new();
    for &target in targets {
        let mut parent = reached[values.word() as usize % reached.len()];
        if values.word().is_multiple_of(3) {
            let between = parent * 3125 % two_n;
            if !reached.contains(&between) && !targets.contains(&between) {
                let spec = shaped(3125, values.word() as usize);
                hops.push(Hop { parent, child: between, spec });
                reached.push(between);
                parent = between;
            }
        }
        let spec = shaped(target * inverse(parent) % two_n, values.word() as usize);
        hops.push(Hop { parent, child: target, spec });
        reached.push(target);
    }
    Route { level: LEVEL, targets: targets.clone(), hops }
}

fn routed(owner: &Owner, routes: Vec<Route>) -> EvaluationKeys {
    let routes = Arc::new(KeyRoutes::new(owner.parameters.rlwe(), routes, []).unwrap());
    let mut specs: Vec<KeySpec> = routes.keys().cloned().collect();
    specs.sort_by_key(|spec| (spec.element, spec.alpha, spec.special.clone()));
    specs.dedup();
    owner.keys(specs).with_routes(routes).unwrap()
}

fn element(owner: &Owner, steps: usize) -> u64 {
    let KeyElement::Galois(g) = owner.rotation(steps) else { unreachable!() };
    g
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn transforms_by_hops(
        log_slots in 3u32..=10,
        n1 in 1usize..=16,
        chained in any::<bool>(),
        indices in proptest::collection::btree_set(0usize..1024, 2..9),
        seed in any::<u64>(),
    ) {
        let owner = small();
        let slots = 1usize << log_slots;
        let mut values = Values(seed);
        let diagonals: BTreeMap<usize, Vec<Complex64>> =
            indices.into_iter().map(|r| (r % slots, values.complex(slots))).collect();
        let steps = |indices, slots| {
            let plan = BsgsPlan::new(indices, slots, n1.min(slots))?;
            Ok::<_, CircuitError>(if chained { plan.chained() } else { plan })
        };
        let transform =
            LinearTransform::with_steps(&owner.parameters, &diagonals, log_slots, LEVEL, &[6, 7], Storage::Encoded, steps).unwrap();
        let plan = transform.plan();
        let babies: BTreeSet<u64> = plan.babies.iter().filter(|&&k| k != 0).map(|&k| element(&owner, k)).collect();
        let giants = plan.rotations().into_iter().filter(|k| !plan.babies.contains(k) || k % n1.min(slots) == 0);
        let groups: BTreeSet<BTreeSet<u64>> =
            giants.map(|k| BTreeSet::from([element(&owner, k)])).chain([babies]).filter(|g| !g.is_empty()).collect();
        let routes = groups.iter().map(|targets| route(&owner, targets, &mut values)).collect();
        let keys = routed(&owner, routes);
        let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
        let v = values.complex(slots);
        let input = owner.encrypt(&v, LEVEL + 1);
        let out = evaluate(&evaluator, &[(&transform, &input)]).unwrap();
        let expected: Vec<Complex64> =
            (0..slots).map(|k| diagonals.iter().map(|(r, d)| d[k] * v[(k + r) % slots]).sum()).collect();
        owner.check(&out, &expected, FLOAT * transform.row_sum(), "routed transform");
    }

    #[test]
    fn rotations_by_hops(steps in proptest::collection::btree_set(1usize..1024, 1..7), seed in any::<u64>()) {
        let owner = small();
        let mut values = Values(seed);
        let targets: BTreeSet<u64> = steps.iter().map(|&k| element(&owner, k)).collect();
        let keys = routed(&owner, vec![route(&owner, &targets, &mut values)]);
        let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
        let v = values.complex(1024);
        let input = owner.encrypt(&v, LEVEL);
        let list: Vec<i64> = steps.iter().map(|&k| k as i64).chain([0, steps.first().map_or(0, |&k| k as i64)]).collect();
        for (&k, out) in list.iter().zip(evaluator.rotate_hoisted(&input, &list).unwrap()) {
            let expected: Vec<Complex64> = (0..1024).map(|i| v[(i + k as usize) % 1024]).collect();
            owner.check(&out, &expected, FLOAT, "routed rotation");
        }
        // A part of a group is made by the part of its tree that leads there.
        for &k in &steps {
            let out = evaluator.rotate(&input, k as i64).unwrap();
            let expected: Vec<Complex64> = (0..1024).map(|i| v[(i + k) % 1024]).collect();
            owner.check(&out, &expected, FLOAT, "part of a group");
        }
    }
}

#[test]
fn what_is_not_planned_is_refused() {
    let owner = small();
    let targets = BTreeSet::from([element(&owner, 1)]);
    let route = route(&owner, &targets, &mut Values(5));
    let keys = routed(&owner, vec![route.clone()]);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let v = Values(6).complex(1024);
    let refused = |level, k| {
        matches!(
            evaluator.rotate(&owner.encrypt(&v, level), k),
            Err(CkksError::Rlwe(RlweError::NotPlanned { level: at, .. })) if at == level
        )
    };
    assert!(refused(LEVEL, 2) && refused(LEVEL - 1, 1) && !refused(LEVEL, 1));
    let product = evaluator.multiply_lazy(&owner.encrypt(&v, LEVEL), &owner.encrypt(&v, LEVEL)).unwrap();
    assert!(matches!(
        evaluator.relinearize(&product),
        Err(CkksError::Rlwe(RlweError::NotPlanned { level: LEVEL, .. }))
    ));
    let rlwe = owner.parameters.rlwe();
    let lacking = EvaluationKeys::new(rlwe);
    let routes = Arc::new(KeyRoutes::new(rlwe, [route.clone()], []).unwrap());
    assert!(matches!(lacking.with_routes(routes), Err(RlweError::MissingKey { .. })));

    let hop = |parent, child, steps| Hop { parent, child, spec: shaped(element(&owner, steps), 0) };
    let [one, two] = [1, 2].map(|k| element(&owner, k));
    for (hops, targets) in [
        (vec![hop(one, two, 1)], vec![two]),
        (vec![hop(1, two, 1)], vec![two]),
        (vec![hop(1, one, 1)], vec![two]),
        (vec![hop(1, one, 1), hop(1, one, 1)], vec![one]),
        (vec![Hop { parent: 1, child: one, spec: owner.spec(KeyElement::Relinearization, 5, 2) }], vec![one]),
    ] {
        let route = Route { level: LEVEL, targets: targets.into_iter().collect(), hops };
        assert!(matches!(KeyRoutes::new(rlwe, [route], []), Err(RlweError::Route { level: LEVEL, .. })));
    }
    let high = Route { level: LEVEL + 1, ..route.clone() };
    assert!(matches!(KeyRoutes::new(rlwe, [high], []), Err(RlweError::Route { .. })));
    let mut other = route.clone();
    other.hops = vec![hop(1, element(&owner, 2), 2), hop(element(&owner, 2), one, 1023)];
    if other.hops != route.hops {
        assert!(matches!(KeyRoutes::new(rlwe, [route, other], []), Err(RlweError::Route { .. })));
    }
}
