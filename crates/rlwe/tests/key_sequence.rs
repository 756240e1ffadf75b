//! Keys of a list: in its order, with the two keys of an ephemeral secret made together.
#![expect(clippy::unwrap_used, reason = "tests")]

use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, RlweError, SecretKey,
    Security,
};
use zeroize::Zeroizing;

fn rng(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&Zeroizing::new([byte; 32]))
}

fn parameters() -> Parameters {
    let literal = ParametersLiteral {
        security: Security::InsecureForExperiments,
        ..ParametersLiteral::from_bits(10, &[50, 45, 45], &[50, 50]).unwrap()
    };
    Parameters::new(literal).unwrap()
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
    for (i, wanted) in specs.iter().enumerate() {
        assert_eq!(keys.len(), specs.len() - i);
        assert_eq!(keys.next().unwrap().unwrap().spec(), wanted);
    }
    assert!(keys.next().is_none());

    // The pair is that of one call: a key is not the one that another ephemeral secret would give.
    let pair = |order: [usize; 2]| {
        let listed = order.map(|i| specs[[0, 3][i]].clone());
        let mut made: Vec<_> = KeyGenerator::new(&secret, rng(3))
            .switching_keys(&listed)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        made.sort_by_key(|key| key.spec().element);
        made
    };
    let together = KeyGenerator::new(&secret, rng(3)).encapsulation_keys(&specs[3], &specs[0]).unwrap();
    for made in [pair([0, 1]), pair([1, 0])] {
        assert!(made.iter().zip(&together).all(|(a, b)| a.b_rows() == b.b_rows()));
    }
}

#[test]
fn a_list_with_half_a_pair_or_two_is_refused_before_a_key_is_made() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let spec = |element, level| KeySpec::new(&parameters, element, level, 1, true);
    let (there, back) = (spec(KeyElement::DenseToSparse(32), 0), spec(KeyElement::SparseToDense(32), 2));
    let other = spec(KeyElement::SparseToDense(16), 2);
    let lower = spec(KeyElement::SparseToDense(32), 1);
    for list in [
        vec![there.clone()],
        vec![back.clone()],
        vec![there.clone(), other],
        vec![there.clone(), back.clone(), lower],
        vec![there.clone(), there, back],
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
        for key in generator.encapsulation_keys(&there, &back).unwrap() {
            keys.insert(key).unwrap();
        }
        // Another pair, at whatever level, belongs to another secret.
        let lower = KeySpec { level: 1, ..back.clone() };
        for key in generator.encapsulation_keys(&there, &lower).unwrap() {
            let element = key.spec().element;
            assert_eq!(keys.insert(key), Err(RlweError::EphemeralRepeated(element)));
        }
    }
    assert_eq!(keys.len(), 4);
}
