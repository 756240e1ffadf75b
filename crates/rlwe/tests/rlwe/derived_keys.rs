//! Keys derived from master keys against their definition: the error of every row, and of rotations with them, is
//! within the derived bounds.

use keywright_ring::{Evaluation, Poly, RingError, galois_inverse, rotation_element};
use keywright_ring_testing::rng;
use keywright_rlwe::derive::{DerivationTree, MasterKeys, MasterParameters};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, RlweError, SecretKey,
    SwitchingKey, UniformPart, noise,
};
use proptest::prelude::*;

use crate::fixture::{check_switch, insecure, masters, same};

/// Four ciphertext primes, two special primes.
fn parameters(log_n: u32) -> Parameters {
    insecure(log_n, &[50, 40, 40, 40], &[55, 55])
}

/// Largest centred coefficient of a small polynomial in evaluation form, which must be the same integer modulo every
/// prime.
fn largest(parameters: &Parameters, primes: &[usize], poly: &Poly<Evaluation>) -> f64 {
    let mut first: Option<Vec<i64>> = None;
    for (i, &prime) in primes.iter().enumerate() {
        let mut limb = poly.limb(i).to_vec();
        parameters.ring().inverse_limb(prime, &mut limb);
        let centred: Vec<i64> = limb.iter().map(|&c| parameters.modulus(prime).centered(c)).collect();
        assert!(first.get_or_insert_with(|| centred.clone()) == &centred, "prime {prime} disagrees");
    }
    first.unwrap().iter().map(|c| c.unsigned_abs()).max().unwrap() as f64
}

/// Largest error `b_j + a_j s(X^(1/g)) - P g_j s` of any row of a key for a Galois element.
fn row_error(secret: &SecretKey, key: &SwitchingKey) -> f64 {
    let parameters = key.parameters();
    let (spec, backend) = (key.spec(), parameters.ring().backend());
    let (KeyElement::Galois(g), UniformPart::Stored(a_rows)) = (spec.element, key.uniform()) else {
        panic!("not a derived key")
    };
    let inverse = parameters.automorphism(galois_inverse(parameters.log_n(), g)).unwrap();
    let primes: Vec<usize> = spec.primes().collect();
    let mut worst = 0.0f64;
    for ((b, a), digit) in key.b_rows().iter().zip(a_rows).zip(key.digits()) {
        let mut error = Poly::unspecified(b.n(), b.limb_count());
        error.limbs_mut().zip(b.limbs()).for_each(|(own, limb)| own.copy_from_slice(limb));
        for (i, &prime) in primes.iter().enumerate() {
            let m = parameters.modulus(prime);
            let mut image = secret.limb(prime).to_vec();
            backend.permute(&inverse, secret.limb(prime), &mut image);
            backend.mul_add_assign(m, error.limb_mut(i), a.limb(i), &image);
            if digit.contains(&prime) {
                let p =
                    spec.special.iter().fold(1, |p, &k| m.mul(p, m.reduce(parameters.modulus(k).value())));
                let mut message = secret.limb(prime).to_vec();
                backend.mul_scalar_assign(m, &mut message, m.shoup(p));
                backend.sub_assign(m, error.limb_mut(i), &message);
            }
        }
        worst = worst.max(largest(parameters, &primes, &error));
    }
    worst
}

fn specs(parameters: &Parameters, steps: &[i64], level: usize, alpha: usize) -> Vec<KeySpec> {
    let spec = |&k| {
        let element = KeyElement::Galois(rotation_element(parameters.log_n(), k));
        KeySpec::new(parameters, element, level, alpha, false)
    };
    steps.iter().map(spec).collect()
}

fn derive(masters: &MasterKeys, specs: &[KeySpec]) -> Vec<SwitchingKey> {
    let keys: Vec<_> = masters.derive(specs, 64).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(keys.len(), specs.len());
    keys
}

/// Every row and a rotation: within the bound, and close enough to it that the bound is useful.
fn check(secret: &SecretKey, key: &SwitchingKey) {
    let bound = noise::bound(key.error_variance());
    let seen = row_error(secret, key);
    assert!(seen <= bound, "{:?}: error {seen} above {bound}", key.spec());
    assert!(seen >= bound / 6.0, "{:?}: error {seen} suspiciously below {bound}", key.spec());
    for level in 0..=key.spec().level {
        check_switch(secret, key, level, 1, None);
    }
}

#[test]
fn every_level_and_digit_size_at_small_degrees() {
    for (log_n, extra) in [(10, &[55, 55][..]), (11, &[45, 55, 55]), (12, &[60])] {
        let parameters = parameters(log_n);
        let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
        let masters = masters(&parameters, extra, &secret, &[1, 4, 16]);
        for level in [0, 1, 3] {
            for alpha in [1, 2] {
                let targets = specs(&parameters, &[1, 2, 5, 21, 16, 40], level, alpha.min(level + 1));
                for key in derive(&masters, &targets) {
                    assert!(targets.contains(key.spec()));
                    assert!(key.layout().is_derived());
                    check(&secret, &key);
                }
            }
        }
    }
}

/// Master keys for low levels use dropped ciphertext primes as special primes. Derived keys do too, and need not use
/// all special primes of the parameters.
#[test]
fn dropped_primes_and_some_special_primes() {
    let parameters = parameters(10);
    let secret = SecretKey::sample(&parameters, &mut rng(2)).unwrap();
    let chain = MasterParameters::from_bits(&parameters, &[55]).unwrap();
    let elements = [5, 25, 2047];
    let low = MasterKeys::generate(&chain, &secret, rng(3), &elements, 1).unwrap();
    let high = MasterKeys::generate(&chain, &secret, rng(3), &elements, 3).unwrap();
    assert!(low.keys().iter().all(|key| key.spec().special.len() > 1), "no dropped prime is used");
    assert!(low.bytes() < high.bytes() / 2);
    let element = KeyElement::Galois(125 * 2047 % 2048);
    for special in [vec![4], vec![5], vec![5, 4], vec![4, 3], vec![2, 3]] {
        let spec =
            KeySpec { element, level: 1, alpha: 1, special: special.clone(), seeded: true, subring: None };
        // A special prime above the masters' level is unavailable to them.
        let reach = special.iter().all(|&prime| prime <= 1 || prime >= 4);
        for (masters, reaches) in [(&low, reach), (&high, true)] {
            match masters.derive(std::slice::from_ref(&spec), 8) {
                Ok(keys) => {
                    assert!(reaches);
                    let keys: Vec<_> = keys.collect::<Result<_, _>>().unwrap();
                    assert_eq!(keys[0].spec(), &KeySpec { seeded: false, ..spec.clone() });
                    check(&secret, &keys[0]);
                }
                Err(error) => assert!(!reaches && matches!(error, RlweError::Underivable { .. }), "{error}"),
            }
        }
    }
}

/// A secure set of a real size: 868 bits at 2^15, checked at the modulus of the master keys.
#[test]
fn a_secure_set() {
    let mut q = vec![50; 11];
    q[0] = 55;
    let literal = ParametersLiteral::from_bits(15, &q, &[50, 50]).unwrap();
    let parameters = Parameters::new(literal).unwrap();
    let secret = SecretKey::sample(&parameters, &mut rng(4)).unwrap();
    let masters = masters(&parameters, &[55, 55, 52], &secret, &[1, 8]);
    for key in masters.keys().iter() {
        let chain = masters.parameters().chain();
        let bits = chain.log2_q(key.spec().level) + key.spec().special_bits(chain);
        assert!(bits <= 868.0 && bits > 800.0, "{bits}");
    }
    let key = &derive(&masters, &specs(&parameters, &[10], 10, 1))[0];
    let bound = noise::bound(key.error_variance());
    let seen = row_error(&secret, key);
    assert!(seen <= bound && seen >= bound / 6.0, "{seen} of {bound}");
    check_switch(&secret, key, 10, 1, None);
    // One more extra prime exceeds the bound: no master key at the top has all of them.
    let chain = MasterParameters::from_bits(&parameters, &[61, 61, 61, 61]).unwrap();
    let all = KeySpec {
        element: KeyElement::Galois(5),
        level: chain.chain().max_level(),
        alpha: 3,
        special: chain.chain().special_primes().collect(),
        seeded: true,
        subring: None,
    };
    let mut refused = MasterKeys::new(&chain);
    let error = refused.generate_specs(&secret, rng(5), &[all]).unwrap_err();
    assert!(matches!(error, RlweError::Insecure { bound: 868, .. }), "{error}");
}

fn all_same(a: &[SwitchingKey], b: &[SwitchingKey]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// Evicted keys come back bit for bit, alone or with others, on any number of threads.
#[test]
fn derived_again_they_are_the_same() {
    let parameters = parameters(10);
    let secret = SecretKey::sample(&parameters, &mut rng(6)).unwrap();
    let masters = masters(&parameters, &[55, 55], &secret, &[1, 4, 16]);
    let targets = specs(&parameters, &[1, 2, 3, 5, 6, 7, 9, 20, 21, 22, 37], 3, 2);
    let first = derive(&masters, &targets);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for threads in [1, 3] {
        assert!(all_same(&first, &pool(threads).install(|| derive(&masters, &targets))));
    }
    // Two at once.
    let (left, right) = rayon::join(|| derive(&masters, &targets), || derive(&masters, &targets));
    assert!(all_same(&first, &left) && all_same(&first, &right));
    // A set of derived keys is an ordinary set.
    let mut keys = EvaluationKeys::new(&parameters);
    for key in first {
        keys.insert(key).unwrap();
    }
    let g = rotation_element(10, 22);
    assert!(keys.best(KeyElement::Galois(g), 2, false).unwrap().key.load().unwrap().layout().is_derived());
}

#[test]
fn what_cannot_be_is_refused() {
    let parameters = parameters(10);
    let secret = SecretKey::sample(&parameters, &mut rng(8)).unwrap();
    let masters = masters(&parameters, &[55], &secret, &[1, 4]);
    let spec = |element| KeySpec::new(&parameters, element, 3, 1, false);
    let refused = |element, hops| masters.derive(&[spec(element)], hops).err().unwrap();
    assert_eq!(refused(KeyElement::Relinearization, 9), RlweError::NotGalois(KeyElement::Relinearization));
    assert!(matches!(refused(KeyElement::Galois(1), 9), RlweError::Underivable { .. }));
    // The conjugation is not a rotation, and 3 hops make at most 12 of {1, 4}.
    assert!(matches!(refused(KeyElement::Galois(2047), 255), RlweError::Underivable { .. }));
    let far = KeyElement::Galois(rotation_element(10, 13));
    assert!(matches!(refused(far, 3), RlweError::Underivable { .. }));
    assert!(matches!(refused(far, 0), RlweError::Count { .. }));
    assert!(matches!(refused(KeyElement::Galois(4), 9), RlweError::Ring(RingError::GaloisElement { .. })));
    assert!(matches!(refused(KeyElement::Galois(2049), 9), RlweError::Ring(RingError::GaloisElement { .. })));
    // Keys of other parameters, and keys that do not rotate.
    let mut other = MasterKeys::new(masters.parameters());
    let key = KeyGenerator::new(&secret, rng(9)).switching_key(&spec(KeyElement::Galois(5))).unwrap();
    assert!(matches!(other.insert(key), Err(RlweError::MixedParameters { .. })));
    let mut relinearization = masters.parameters().spec(5, 3, true).unwrap();
    relinearization.element = KeyElement::Relinearization;
    let error = other.generate_specs(&secret, rng(9), &[relinearization]).unwrap_err();
    assert_eq!(error, RlweError::NotGalois(KeyElement::Relinearization));
    let foreign = SecretKey::sample(masters.parameters().chain(), &mut rng(9)).unwrap();
    let error = other.generate_specs(&foreign, rng(9), &[]).unwrap_err();
    assert!(matches!(error, RlweError::MixedParameters { .. }));
    assert!(matches!(MasterParameters::new(&parameters, vec![]), Err(RlweError::Count { .. })));
    let many = MasterParameters::from_bits(&parameters, &[55; 33]);
    assert!(matches!(many, Err(RlweError::Count { count: 33, .. })));
    let taken = parameters.literal().q[1];
    let repeated = MasterParameters::new(&parameters, vec![taken]).unwrap_err();
    assert!(matches!(repeated, RlweError::Ring(RingError::Repeated(_))));
}

/// Shortest way of every element from 1, in steps.
fn distances(log_n: u32, masters: &[u64]) -> Vec<Option<usize>> {
    let two_n = 2u64 << log_n;
    let mut depths = vec![None; 1 << log_n];
    depths[0] = Some(0);
    let mut now = vec![1u64];
    for depth in 1.. {
        let mut next = Vec::new();
        for element in now.iter().flat_map(|e| masters.iter().map(move |m| e * m % two_n)) {
            if depths[element as usize / 2].is_none() {
                depths[element as usize / 2] = Some(depth);
                next.push(element);
            }
        }
        if next.is_empty() {
            return depths;
        }
        now = next;
    }
    depths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A tree is valid: every key is its parent times a master, every requested key is there, and a limit of steps is
    /// refused only if no path is that short.
    #[test]
    fn trees_reach_what_can_be_reached(
        masters in proptest::collection::vec(1u64..1024, 1..6),
        targets in proptest::collection::vec(1u64..1024, 1..30),
        max_hops in 1usize..40,
    ) {
        let odd = |list: Vec<u64>| list.into_iter().map(|x| 2 * x + 1).collect::<Vec<u64>>();
        let (masters, targets) = (odd(masters), odd(targets));
        let shortest = distances(10, &masters);
        let reachable = targets.iter().all(|&t| shortest[t as usize / 2].is_some_and(|d| d <= max_hops));
        match DerivationTree::new(10, &masters, &targets, max_hops) {
            Err(error) => {
                let underivable = matches!(error, RlweError::Underivable { .. });
                prop_assert!(!reachable && underivable);
            }
            Ok(tree) => {
                prop_assert!(reachable);
                prop_assert!(tree.depth() <= max_hops);
                for &target in &targets {
                    prop_assert!(tree.step(target).is_some_and(|step| step.is_target));
                }
                for step in tree.steps() {
                    prop_assert_eq!(step.parent * step.master % 2048, step.element);
                    prop_assert!(masters.contains(&step.master));
                    prop_assert_eq!(step.is_target, targets.contains(&step.element));
                    let above = if step.parent == 1 { 0 } else { tree.step(step.parent).unwrap().depth };
                    prop_assert_eq!(step.depth, above + 1);
                    prop_assert!(step.is_target || !tree.children(step.element).is_empty());
                    prop_assert!(tree.children(step.parent).contains(&step.element));
                }
            }
        }
    }
}
