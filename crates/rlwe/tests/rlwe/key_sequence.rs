//! Keys of a list: in its order, with the two keys of an ephemeral secret made together.

use keywright_ring::{Evaluation, Poly};
use keywright_ring_testing::rng;
use keywright_rlwe::{
    Decomposed, EvaluationKeys, Finish, KeyElement, KeyGenerator, KeySpec, Parameters, RlweError, SecretKey,
    noise, raise_modulus,
};

use crate::fixture::insecure;

fn parameters() -> Parameters {
    insecure(10, &[50, 45, 45], &[50, 50])
}

#[test]
fn keys_come_in_the_order_of_the_list() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let spec = |element, level| KeySpec::new(&parameters, element, level, 1, true);
    let specs = [
        spec(KeyElement::SparseToDense(32), 2),
        spec(KeyElement::Galois(5), 1),
        spec(KeyElement::DenseToSparse(16), 0),
        spec(KeyElement::DenseToSparse(32), 0),
        spec(KeyElement::Relinearization, 2),
        spec(KeyElement::SparseToDense(16), 1),
    ];
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let mut keys = generator.switching_keys(&specs).unwrap();
    for (i, spec) in specs.iter().enumerate() {
        assert_eq!(keys.len(), specs.len() - i);
        assert_eq!(keys.next().unwrap().unwrap().spec(), spec);
    }
    assert!(keys.next().is_none());
}

/// A constant modulo `q_0` under keys of one list in any order: switching there and back is the identity, and with a
/// Galois element the automorphism. Keys of different ephemeral secrets would give noise.
#[test]
fn all_keys_of_a_weight_share_an_ephemeral_secret() {
    let parameters = parameters();
    let (ring, n) = (parameters.ring(), parameters.n());
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let spec = |element, level| KeySpec::new(&parameters, element, level, 1, true);
    let galois = 25;
    let specs = [
        spec(KeyElement::SparseToDenseGalois { weight: 32, galois }, 2),
        spec(KeyElement::Galois(5), 1),
        spec(KeyElement::DenseToSparse(32), 0),
        spec(KeyElement::SparseToDense(32), 1),
    ];
    let keys = KeyGenerator::new(&secret, rng(4)).evaluation_keys(&specs).unwrap();
    let m = parameters.modulus(0);
    // c_1 has small coefficients, so c_1 s is small too, and equals its representative.
    let coefficients: Vec<i64> = (0..n as i64).map(|i| i * 37 % 1001 - 500).collect();
    let poly = |level: usize| {
        let mut out = Poly::zero(n, level + 1);
        for (i, limb) in out.limbs_mut().enumerate() {
            ring.forward_small_limb(i, &coefficients, limb, &[]);
        }
        out
    };
    let switch = |element, level, input: &[Poly<Evaluation>], g: Option<u64>| {
        let key_use = keys.best(element, level, false).unwrap();
        let decomposed = Decomposed::new(&parameters, key_use.plan.clone(), &input[1]).unwrap();
        let key = key_use.key.load().unwrap();
        let rows = decomposed.rows_of(&key, key_use.coalesce).unwrap();
        let automorphism = g.map(|g| parameters.automorphism(g).unwrap());
        let first =
            if level > 0 { raise_modulus(&parameters, &input[0], level).unwrap() } else { input[0].clone() };
        let finish = Finish { addend: [Some(&first), None], automorphism: automorphism.as_deref() };
        decomposed.switch(&[(&key, rows)], &[finish]).remove(0).polys
    };
    let sparse = switch(KeyElement::DenseToSparse(32), 0, &[Poly::zero(n, 1), poly(0)], None);
    for (element, level, g) in [
        (KeyElement::SparseToDense(32), 1, 1),
        (KeyElement::SparseToDenseGalois { weight: 32, galois }, 1, galois),
        (KeyElement::SparseToDenseGalois { weight: 32, galois }, 2, galois),
    ] {
        let dense = switch(element, level, &sparse, Some(g));
        let automorphism = parameters.automorphism(g).unwrap();
        // Modulo q_0, where raising the modulus changes nothing.
        let (mut result, mut expected) = (vec![0; n], vec![0; n]);
        ring.backend().mul(m, dense[1].limb(0), secret.limb(0), &mut result);
        ring.backend().add_assign(m, &mut result, dense[0].limb(0));
        let mut product = vec![0; n];
        ring.backend().mul(m, poly(0).limb(0), secret.limb(0), &mut product);
        ring.backend().permute(&automorphism, &product, &mut expected);
        ring.inverse_limb(0, &mut result);
        ring.inverse_limb(0, &mut expected);
        let error = result.iter().zip(&expected).map(|(&a, &b)| m.centered(m.sub(a, b)).unsigned_abs()).max();
        // Two switches, each with the rounding of its division.
        let variance: f64 = [(KeyElement::DenseToSparse(32), 0), (element, level)]
            .into_iter()
            .map(|(element, level)| {
                let key_use = keys.best(element, level, false).unwrap();
                noise::key_switch(&parameters, &key_use.plan, &key_use.key)
            })
            .sum();
        assert!(error.unwrap() as f64 <= noise::bound(variance), "{element}: {error:?}");
        assert!(error.unwrap() as f64 >= noise::bound(variance) / 6.0, "{element}: {error:?}");
    }
}

#[test]
fn a_list_with_half_a_pair_or_two_is_refused_before_a_key_is_made() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let spec = |element, level| KeySpec::new(&parameters, element, level, 1, true);
    let (there, back) = (spec(KeyElement::DenseToSparse(32), 0), spec(KeyElement::SparseToDense(32), 2));
    let other = spec(KeyElement::SparseToDense(16), 2);
    let rotated = spec(KeyElement::SparseToDenseGalois { weight: 32, galois: 5 }, 2);
    let lower = spec(KeyElement::SparseToDense(32), 1);
    for list in [
        vec![there.clone()],
        vec![back.clone()],
        vec![there.clone(), other],
        vec![there.clone(), back.clone(), lower],
        vec![there.clone(), there.clone(), back],
        vec![rotated.clone()],
        vec![there, rotated.clone(), rotated],
    ] {
        let mut generator = KeyGenerator::new(&secret, rng(2));
        let refused = generator.switching_keys(&list).err();
        assert!(matches!(refused, Some(RlweError::EphemeralSecret(_))), "{list:?}");
    }
}

#[test]
fn a_set_holds_one_ephemeral_secret_of_a_weight() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let spec = |element, level| KeySpec::new(&parameters, element, level, 1, true);
    let mut keys = EvaluationKeys::new(&parameters);
    let mut generator = KeyGenerator::new(&secret, rng(2));
    for weight in [32, 16] {
        let (there, back) =
            (spec(KeyElement::DenseToSparse(weight), 0), spec(KeyElement::SparseToDense(weight), 2));
        for key in generator.switching_keys(&[there.clone(), back.clone()]).unwrap() {
            keys.insert(key.unwrap()).unwrap();
        }
        // Another pair, at any level, belongs to another secret.
        let lower = KeySpec { level: 1, ..back.clone() };
        for key in generator.switching_keys(&[there.clone(), lower.clone()]).unwrap() {
            let key = key.unwrap();
            let element = key.spec().element;
            assert_eq!(keys.insert(key), Err(RlweError::EphemeralRepeated(element)));
        }
    }
    assert_eq!(keys.len(), 4);
}
