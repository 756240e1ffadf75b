//! Reading returns what was written.

use crate::samples::{self, parameters};
use keywright_ring::sampling::SecretRng;
use keywright_ring::{Coefficient, MAX_LOG_N, MIN_LOG_N, Poly};
use keywright_rlwe::derive::{MasterKeys, MasterParameters};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeyIdentity, KeySpec, MAX_SUBRINGS, Parameters,
    ParametersLiteral, PublicKey, RlweCiphertext, SecretDistribution, SecretKey, Security,
    SeededRlweCiphertext, SubringLiteral, SwitchingKey, UniformPart, encrypt_zero_symmetric,
};
use keywright_search::{Answer, AnswerShape, MAX_ROWS};
use keywright_wire::{
    Content, Kind, Wire, WireError, WireSecret, inspect, sequence_from_bytes, sequence_to_bytes,
};
use proptest::prelude::*;
use zeroize::Zeroizing;

/// Writes, checks the announced length, inspects, reads.
pub(crate) fn round_trip<T: Wire>(object: &T, context: &T::Context) -> T {
    let bytes = object.to_bytes(context).unwrap();
    assert_eq!(bytes.len() as u64, object.encoded_len(context).unwrap());
    let info = inspect(&mut &bytes[..]).unwrap();
    assert_eq!((info.kind, info.bytes), (T::KIND, bytes.len() as u64));
    T::from_bytes(&bytes, context).unwrap()
}

fn assert_same_key(left: &SwitchingKey, right: &SwitchingKey) {
    assert_eq!(left.spec(), right.spec());
    assert!(left.b_rows() == right.b_rows());
    match (left.uniform(), right.uniform()) {
        (UniformPart::Seeded(a), UniformPart::Seeded(b)) => assert_eq!(a, b),
        (UniformPart::Stored(a), UniformPart::Stored(b)) => assert!(a == b),
        _ => panic!("one key is seeded and the other is not"),
    }
}

#[test]
fn public_objects() {
    let p = parameters();
    let public = samples::public_key(&p);
    let back = round_trip(&public, &p);
    assert!(back.seed() == public.seed() && back.b() == public.b() && back.a() == public.a());
    assert_same_key(&round_trip(&samples::seeded_key(&p), &p), &samples::seeded_key(&p));
    assert_same_key(&round_trip(&samples::stored_key(&p), &p), &samples::stored_key(&p));
    assert!(round_trip(&samples::ciphertext(&p), &p) == samples::ciphertext(&p));
    let seeded = samples::seeded_ciphertext(&p);
    let back = round_trip(&seeded, &p);
    assert!(back.seed == seeded.seed && back.c0 == seeded.c0);
    assert!(round_trip(&samples::coefficients(&p), &p) == samples::coefficients(&p));
    assert!(round_trip(&samples::evaluations(&p), &p) == samples::evaluations(&p));
    assert_eq!(round_trip(&samples::literal(), &()), samples::literal());
    assert_eq!(round_trip(&samples::sparse_literal(), &()), samples::sparse_literal());
}

#[test]
fn ckks_objects() {
    let c = samples::ckks_parameters();
    assert_eq!(round_trip(&samples::ckks_literal(), &()), samples::ckks_literal());
    let (plain, back) = (samples::plaintext(&c), round_trip(&samples::plaintext(&c), &c));
    assert!(back.poly == plain.poly);
    assert_eq!((back.scale, back.packing, back.magnitude), (plain.scale, plain.packing, plain.magnitude));
    let (ct, back) = (samples::ckks_ciphertext(&c), round_trip(&samples::ckks_ciphertext(&c), &c));
    assert!(back.rlwe == ct.rlwe);
    assert_eq!((back.scale, back.packing, back.estimate), (ct.scale, ct.packing, ct.estimate));
    let mut real = ct.clone();
    real.estimate.real = true;
    assert_eq!(round_trip(&real, &c).estimate, real.estimate);
    assert_eq!(real.to_bytes(&c).unwrap().len(), ct.to_bytes(&c).unwrap().len());
    let (seeded, back) = (samples::ckks_seeded(&c), round_trip(&samples::ckks_seeded(&c), &c));
    assert!(back.expand().rlwe == seeded.expand().rlwe);
    assert_eq!((back.scale, back.packing, back.estimate), (seeded.scale, seeded.packing, seeded.estimate));
}

#[test]
fn bfv_objects() {
    let b = samples::bfv_parameters(&samples::literal());
    assert_eq!(round_trip(&samples::bfv_literal(), &()), samples::bfv_literal());
    let (ct, back) = (samples::bfv_ciphertext(&b), round_trip(&samples::bfv_ciphertext(&b), &b));
    assert!(back.rlwe == ct.rlwe);
    assert_eq!((back.packing, back.estimate), (ct.packing, ct.estimate));
    let (seeded, back) = (samples::bfv_seeded(&b), round_trip(&samples::bfv_seeded(&b), &b));
    assert!(back.expand().rlwe == seeded.expand().rlwe);
    assert_eq!((back.packing, back.estimate()), (seeded.packing, seeded.estimate()));
}

#[test]
fn encrypted_sums() {
    let p = samples::sum_parameters();
    assert!(round_trip(&samples::encrypted_update(), p) == samples::encrypted_update());
    assert!(round_trip(&samples::encrypted_sum(), p) == samples::encrypted_sum());
    let Content::EncryptedUpdate(update) =
        inspect(&mut &samples::encrypted_update().to_bytes(p).unwrap()[..]).unwrap().content
    else {
        panic!("another kind")
    };
    assert_eq!((update.binding(), update.count()), (*samples::encrypted_update().binding(), 6));
    let Content::EncryptedSum(sum) =
        inspect(&mut &samples::encrypted_sum().to_bytes(p).unwrap()[..]).unwrap().content
    else {
        panic!("another kind")
    };
    assert_eq!((sum.inputs(), sum.count()), (2, 7));
}

#[test]
fn answers_of_a_search() {
    let b = samples::bfv_parameters(&samples::literal());
    let answer = samples::search_answer(&b);
    assert!(round_trip(&answer, &b) == answer);
    let bytes = answer.to_bytes(&b).unwrap();
    let Content::SearchAnswer(description) = inspect(&mut &bytes[..]).unwrap().content else {
        panic!("another kind")
    };
    assert_eq!((description.modulus, description.shape), (b.plaintext_modulus(), answer.shape));
}

/// A shape that the parameters do not allow is refused before the body is read.
#[test]
fn shapes_of_answers_have_bounds() {
    let b = samples::bfv_parameters(&samples::literal());
    let answer = samples::search_answer(&b);
    for shape in [
        AnswerShape { rows: 0, ..answer.shape },
        AnswerShape { rows: MAX_ROWS + 1, ..answer.shape },
        AnswerShape { width_1: 39, ..answer.shape },
        AnswerShape { width_0: 28, ..answer.shape },
        AnswerShape { width_0: 0, ..answer.shape },
    ] {
        let claim = Answer { shape, ..answer.clone() };
        assert!(matches!(claim.to_bytes(&b), Err(WireError::Field { .. })), "{shape:?}");
    }
}

#[test]
fn sequences_of_objects() {
    let p = parameters();
    let objects = vec![samples::ciphertext(&p), samples::ciphertext(&p)];
    let bytes = sequence_to_bytes(&objects, &p).unwrap();
    assert!(sequence_from_bytes::<RlweCiphertext>(&bytes, &p, 2).unwrap() == objects);
    for (bytes, max) in [(&bytes[..], 1), (&bytes[..0], 2)] {
        let refused = sequence_from_bytes::<RlweCiphertext>(bytes, &p, max);
        assert!(matches!(refused, Err(WireError::Field { .. })));
    }
    let refused = sequence_from_bytes::<RlweCiphertext>(&bytes[..bytes.len() - 1], &p, 2);
    assert!(matches!(refused, Err(WireError::Truncated { .. })));
}

#[test]
fn a_secret_key() {
    let p = parameters();
    let secret = samples::secret_key(&p);
    let bytes = secret.to_secret_bytes(&p).unwrap();
    // Header, identity, two checksums, two bits per coefficient.
    assert_eq!(bytes.len(), 44 + 16 + 4 + 1024 / 4 + 4);
    let info = inspect(&mut &bytes[..]).unwrap();
    assert_eq!((info.kind, info.content), (Kind::SecretKey, Content::SecretKey));
    assert_eq!(SecretKey::from_secret_bytes(&bytes, &p).unwrap().coefficients(), secret.coefficients());
}

/// Real keys, at a practical size, work after a round trip.
#[test]
fn generated_keys_and_encryptions() {
    let p = Parameters::new(ParametersLiteral::from_bits(13, &[50, 40, 40], &[50]).unwrap()).unwrap();
    let mut rng = SecretRng::from_entropy(&Zeroizing::new([3; 32]));
    let secret = SecretKey::sample(&p, &mut rng).unwrap();
    let message = encrypt_zero_symmetric(&secret, 2, &mut rng, None).unwrap();
    let back: SeededRlweCiphertext = round_trip(&message, &p);
    assert!(back.expand(&p) == message.expand(&p));
    let mut generator = KeyGenerator::new(&secret, rng);
    let spec = KeySpec::new(&p, KeyElement::Galois(25), 2, 1, true);
    let key = generator.switching_key(&spec).unwrap();
    assert_same_key(&round_trip(&key, &p), &key);
    // 3 digits of 4 limbs, packed to their widths, plus 115 bytes: header 44, identity 16, spec 14, digits 1, seed 32,
    // checksums 8.
    assert_eq!(key.encoded_len(&p).unwrap(), 3 * (8192 / 8) * (50 + 40 + 40 + 50) + 115);
    let public: PublicKey = round_trip(&generator.public_key(), &p);
    assert_eq!(public.b().limb_count(), 3);
}

#[test]
fn an_empty_key_set_and_one_with_several_keys_of_an_element() {
    let p = parameters();
    assert!(round_trip(&EvaluationKeys::new(&p), &p).is_empty());
    let mut keys = samples::key_set(&p);
    keys.insert(samples::seeded_key(&p)).unwrap();
    keys.insert(samples::switching_key(&p, KeyElement::Galois(5), 0, false, 3)).unwrap();
    let back = round_trip(&keys, &p);
    assert_eq!(back.len(), 4);
    back.iter()
        .zip(keys.iter())
        .for_each(|(left, right)| assert_same_key(&left.load().unwrap(), &right.load().unwrap()));
}

#[test]
fn keys_of_an_ephemeral_secret_come_back() {
    let p = parameters();
    let secret = samples::secret_key(&p);
    let spec = |element, level| KeySpec::new(&p, element, level, 1, true);
    let specs = [
        spec(KeyElement::DenseToSparse(1 << 10), 0),
        spec(KeyElement::SparseToDense(1 << 10), 2),
        spec(KeyElement::SparseToDenseGalois { weight: 1 << 10, galois: (2 << 10) - 1 }, 1),
    ];
    let rng = SecretRng::from_entropy(&Zeroizing::new([6; 32]));
    for key in KeyGenerator::new(&secret, rng).switching_keys(&specs).unwrap() {
        let key = key.unwrap();
        assert_same_key(&round_trip(&key, &p), &key);
    }
}

#[test]
fn inspection_shows_what_there_is() {
    let p = parameters();
    let info = |bytes: &[u8]| inspect(&mut &bytes[..]).unwrap();
    let shown = info(&samples::literal().to_bytes(&()).unwrap());
    assert_eq!(shown.content, Content::Parameters(samples::literal()));
    assert_eq!((shown.identity.log_n, shown.identity.q_count, shown.identity.p_count), (10, 3, 1));
    assert_eq!(shown.identity.security, Security::InsecureForExperiments);
    let Content::SwitchingKey(key) = info(&samples::seeded_key(&p).to_bytes(&p).unwrap()).content else {
        panic!()
    };
    assert_eq!((&key.spec, key.digits, key.seed), (samples::seeded_key(&p).spec(), 2, Some(samples::HALF)));
    let Content::KeySet(entries) = info(&samples::key_set(&p).to_bytes(&p).unwrap()).content else {
        panic!()
    };
    let elements: Vec<_> = entries.iter().map(|entry| entry.spec.element).collect();
    assert_eq!(elements, [KeyElement::Galois(2047), KeyElement::Secret(9)]);
    let Content::RlweCiphertext(shape) = info(&samples::ciphertext(&p).to_bytes(&p).unwrap()).content else {
        panic!()
    };
    assert_eq!((shape.level, shape.polynomials), (1, 2));
}

#[test]
fn ciphertexts_of_a_shape_that_cannot_be_are_not_written() {
    let p = parameters();
    let ciphertext = samples::ciphertext(&p);
    let lone = RlweCiphertext { polys: ciphertext.polys[..1].to_vec(), key: KeyIdentity::UNKNOWN };
    assert!(matches!(lone.to_bytes(&p), Err(WireError::Field { value: 1, min: 2, .. })));
    let uneven = RlweCiphertext {
        polys: vec![ciphertext.polys[0].clone(), keywright_rlwe::prefix(&ciphertext.polys[1], 1)],
        key: KeyIdentity::UNKNOWN,
    };
    assert!(matches!(uneven.to_bytes(&p), Err(WireError::Field { value: 1, min: 2, max: 2, .. })));
    let long =
        RlweCiphertext { polys: vec![Poly::zero(1024, 4), Poly::zero(1024, 4)], key: KeyIdentity::UNKNOWN };
    assert!(matches!(long.to_bytes(&p), Err(WireError::Field { value: 4, max: 3, .. })));
    let small =
        RlweCiphertext { polys: vec![Poly::zero(512, 2), Poly::zero(512, 2)], key: KeyIdentity::UNKNOWN };
    assert!(matches!(small.to_bytes(&p), Err(WireError::Field { value: 512, min: 1024, .. })));
}

/// Any literal of a degree that rings have, including one whose other numbers no ring accepts.
fn any_literal() -> impl Strategy<Value = ParametersLiteral> {
    let secret = prop_oneof![
        Just(SecretDistribution::Ternary),
        (1..=u32::MAX as usize).prop_map(|weight| SecretDistribution::Sparse { weight }),
    ];
    let security = prop_oneof![Just(Security::Classical128), Just(Security::InsecureForExperiments)];
    let primes = || proptest::collection::vec(any::<u64>(), 0..=64);
    let indices = proptest::collection::vec(0..=255usize, 0..=64);
    let subring = (0..=255u32, 0..=255usize, indices).prop_map(|(log_n, level, special)| SubringLiteral {
        log_n,
        level,
        special,
    });
    let subrings = proptest::collection::vec(subring, 0..=MAX_SUBRINGS);
    (MIN_LOG_N..=MAX_LOG_N, primes(), primes(), secret, security, subrings).prop_map(
        |(log_n, q, p, secret, security, subrings)| ParametersLiteral {
            log_n,
            q,
            p,
            secret,
            security,
            subrings,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_literal_round_trips(literal in any_literal()) {
        prop_assert_eq!(round_trip(&literal, &()), literal);
    }

    #[test]
    fn different_literals_have_different_fingerprints(left in any_literal(), right in any_literal()) {
        let identity = |literal: &ParametersLiteral| inspect(&mut &literal.to_bytes(&()).unwrap()[..]).unwrap().identity;
        prop_assert_eq!(left == right, identity(&left) == identity(&right));
    }

    /// Any residues at any width of prime.
    #[test]
    fn any_polynomial_round_trips(bits in 20u32..=61, limbs in 1usize..=3, words in proptest::collection::vec(any::<u64>(), 64)) {
        let literal = ParametersLiteral::from_bits(10, &[bits; 3], &[])?;
        let literal = ParametersLiteral { security: Security::InsecureForExperiments, ..literal };
        let p = Parameters::new(literal)?;
        let mut poly = Poly::<Coefficient>::zero(1024, limbs);
        for (i, limb) in poly.limbs_mut().enumerate() {
            let q = p.modulus(i).value();
            // Extremes among arbitrary values.
            limb.iter_mut().zip(words.iter().cycle()).enumerate().for_each(|(k, (residue, word))| {
                *residue = match k % 5 { 0 => q - 1, 1 => 0, _ => word.rotate_left(k as u32) % q };
            });
        }
        prop_assert!(round_trip(&poly, &p) == poly);
    }

    /// Arbitrary bytes are refused: they lack the magic.
    #[test]
    fn arbitrary_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(inspect(&mut &bytes[..]).is_err());
        prop_assert!(RlweCiphertext::from_bytes(&bytes, &parameters()).is_err());
    }
}

/// A derived key is not written, alone or in a set; master keys derive the same keys after a round trip.
#[test]
fn derived_keys_are_made_again_not_written() {
    let p = parameters();
    let secret = samples::secret_key(&p);
    let chain = MasterParameters::from_bits(&p, &[61]).unwrap();
    let rng = SecretRng::from_entropy(&Zeroizing::new([5; 32]));
    let masters = MasterKeys::generate(&chain, &secret, rng, &[5, 2047], 2).unwrap();
    let back = round_trip(&masters, &p);
    let spec = KeySpec::new(&p, KeyElement::Galois(25), 2, 1, false);
    let derive = |masters: &MasterKeys| {
        let specs = [spec.clone()];
        masters.derive(&specs, 2).unwrap().next().unwrap().unwrap()
    };
    let key = derive(&masters);
    assert_same_key(&key, &derive(&back));
    assert!(
        matches!(key.to_bytes(&p), Err(WireError::DerivedKey { element }) if element == KeyElement::Galois(25))
    );
    let mut keys = EvaluationKeys::new(&p);
    keys.insert(key).unwrap();
    assert!(matches!(keys.to_bytes(&p), Err(WireError::DerivedKey { .. })));
    let Content::MasterKeys(extra, entries) =
        inspect(&mut &masters.to_bytes(&p).unwrap()[..]).unwrap().content
    else {
        panic!("another kind")
    };
    assert_eq!((extra, entries.len()), (chain.extra().to_vec(), 2));
}
