use keywright_bfv::{BfvError, BfvLiteral, BfvParameters};
use keywright_ckks::encoder::EncoderError;
use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Complex64, Decryptor, Magnitude, Packing};
use keywright_pool::bfv::BfvPool;
use keywright_pool::ckks::CkksPool;
use keywright_pool::{PoolError, WhenEmpty};

use crate::fixture::{keys, options, parameters, pool, rlwe_keys};

/// Decrypts and compares with the bound on the error.
fn assert_decrypts(ciphertext: &Ciphertext, decryptor: &Decryptor<'_>, expected: &[f64]) {
    let values = decryptor.decrypt_real(ciphertext).unwrap();
    let bound = ciphertext.error_bound();
    assert_eq!(values.len(), expected.len());
    for (x, y) in values.iter().zip(expected) {
        assert!((x - y).abs() <= bound, "{x} instead of {y}, bound {bound}");
    }
}

/// The declaration of a message that is known: its largest absolute value.
fn largest(values: impl IntoIterator<Item = f64>) -> Magnitude {
    Magnitude::new(values.into_iter().map(f64::abs).fold(f64::MIN_POSITIVE, f64::max)).unwrap()
}

#[test]
fn constants_are_the_same_polynomial_as_the_encoder_s() {
    let parameters = parameters();
    for value in [0.0, -0.0, 1.0, -1.0, 255.0 / 256.0, -1e-9, 3.7, 8000.0, -8000.0] {
        let residues = parameters.encode_constant(value, 1, parameters.scale()).unwrap();
        let slots = Packing::Slots { log_slots: parameters.max_log_slots() };
        let naive = parameters.encode_real(&[value; 512], slots, 1, parameters.scale()).unwrap();
        for (limb, residue) in naive.poly.limbs().zip(residues) {
            assert!(limb.iter().all(|&x| x == residue), "{value}");
        }
    }
}

#[test]
fn messages_of_both_kinds_decrypt_within_the_bound() {
    let parameters = parameters();
    let (secret, public) = keys(&parameters);
    let decryptor = Decryptor::new(&parameters, &secret).unwrap();
    let from_public = pool(&public, options(20, 0, WhenEmpty::Error));
    let from_secret = pool(&secret, options(20, 0, WhenEmpty::Error));
    from_public.fill(20).unwrap();
    from_secret.fill(20).unwrap();
    let declared = largest([8000.0]);
    let whole = CkksPool::new(&parameters, &from_public).unwrap().declaring(declared);
    let seeded = CkksPool::new(&parameters, &from_secret).unwrap().declaring(declared);
    for (value, log_slots) in [(0.0, 9), (1.5, 0), (-1.0, 3), (8000.0, 9), (-1e-6, 5)] {
        let message = whole.encode_scalar(value, log_slots).unwrap();
        let expected = vec![value; 1 << log_slots];
        assert_decrypts(&whole.encrypt(&message).unwrap(), &decryptor, &expected);
        assert_decrypts(&seeded.encrypt(&message).unwrap().expand(), &decryptor, &expected);
    }
    let values: Vec<f64> = (0..512).map(|i| f64::from(i) / 100.0 - 2.0).collect();
    for packing in [Packing::Slots { log_slots: 9 }, Packing::Coefficients] {
        let message = whole.encode_real(&values, packing).unwrap();
        let mut expected = values.clone();
        expected.resize(if packing == Packing::Coefficients { 1024 } else { 512 }, 0.0);
        assert_decrypts(&whole.encrypt(&message).unwrap(), &decryptor, &expected);
        assert_decrypts(&seeded.encrypt(&message).unwrap().expand(), &decryptor, &expected);
    }
    let message = whole.encode(&[Complex64::new(1.0, -2.0)], 1).unwrap();
    let ciphertext = whole.encrypt(&message).unwrap();
    let values = decryptor.decrypt(&ciphertext).unwrap();
    assert!((values[0] - Complex64::new(1.0, -2.0)).norm() <= 2.0 * ciphertext.estimate.bound());
}

#[test]
fn bad_messages_take_no_entry() {
    let parameters = parameters();
    let (_, public) = keys(&parameters);
    let pool = pool(&public, options(1, 0, WhenEmpty::Error));
    pool.fill(1).unwrap();
    let messages = CkksPool::new(&parameters, &pool).unwrap();
    for value in [f64::NAN, f64::INFINITY, 1e300] {
        assert!(matches!(messages.encode_scalar(value, 9), Err(PoolError::Ckks(_))), "{value}");
        assert!(matches!(messages.encode_real(&[value], Packing::Coefficients), Err(PoolError::Ckks(_))));
    }
    assert!(matches!(
        messages.encode_scalar(1.0, 10),
        Err(PoolError::Ckks(CkksError::Encode(EncoderError::SlotCount { log_slots: 10, log_n: 10 })))
    ));
    assert_eq!((pool.metrics().unwrap().fill, pool.metrics().unwrap().taken), (1, 0));

    let other = CkksParameters::preset("N13_QP214_S38").unwrap();
    assert!(matches!(CkksPool::new(&other, &pool), Err(PoolError::Rlwe(_))));
}

#[test]
fn bfv_messages_of_both_kinds_decrypt_exactly() {
    let rlwe = parameters().rlwe().literal().clone();
    let bfv = |t| BfvParameters::new(BfvLiteral { rlwe: rlwe.clone(), plaintext_modulus: t }).unwrap();
    let parameters = bfv(12289);
    let (secret, public) = rlwe_keys(parameters.rlwe());
    let decryptor = keywright_bfv::Decryptor::new(&parameters, &secret).unwrap();
    let from_public = pool(&public, options(1, 0, WhenEmpty::Encrypt));
    let from_secret = pool(&secret, options(1, 0, WhenEmpty::Encrypt));
    let whole = BfvPool::new(&parameters, &from_public).unwrap();
    let seeded = BfvPool::new(&parameters, &from_secret).unwrap();
    let values: Vec<i64> = (0..1024).map(|i| i * 12 - 6144).collect();
    let mut messages: Vec<_> = [0, 1, -1, 6144, -6144, 12288]
        .map(|value| parameters.encode_scalar(value, keywright_bfv::Packing::Slots).unwrap())
        .into();
    for packing in [keywright_bfv::Packing::Slots, keywright_bfv::Packing::Coefficients] {
        messages.push(parameters.encode(&values, packing).unwrap());
    }
    for message in &messages {
        let expected = message.decode();
        assert_eq!(decryptor.decrypt(&whole.encrypt(message).unwrap()).unwrap().decode(), expected);
        assert_eq!(decryptor.decrypt(&seeded.encrypt(message).unwrap().expand()).unwrap().decode(), expected);
    }

    let other = bfv(40961);
    let foreign = other.encode_scalar(1, keywright_bfv::Packing::Slots).unwrap();
    let taken = from_public.metrics().unwrap().taken;
    assert!(matches!(
        whole.encrypt(&foreign),
        Err(PoolError::Bfv(BfvError::MixedPlaintextModuli { left: 12289, right: 40961 }))
    ));
    assert_eq!(from_public.metrics().unwrap().taken, taken);
}
