use super::Embedding;
use crate::encoder::{EncoderError, Integers};
use keywright_ring::Modulus;
use num_complex::Complex64;

#[test]
fn bad_input_is_named() {
    let e = Embedding::new(10);
    let slots = |values: &[f64], log_slots, scale| Integers::slots(&e, values, log_slots, scale).unwrap_err();
    assert_eq!(slots(&[1.0], 10, 1e9), EncoderError::SlotCount { log_slots: 10, log_n: 10 });
    assert_eq!(slots(&[1.0], u32::MAX, 1e9), EncoderError::SlotCount { log_slots: u32::MAX, log_n: 10 });
    assert_eq!(slots(&[1.0; 5], 2, 1e9), EncoderError::TooManyValues { count: 5, room: 4, what: "slots" });
    for scale in [0.0, -1.0, f64::INFINITY, 1e-310] {
        assert_eq!(slots(&[1.0], 2, scale), EncoderError::Scale(scale));
    }
    assert!(matches!(slots(&[1.0], 2, f64::NAN), EncoderError::Scale(_)));
    let infinite = EncoderError::NotFinite { index: 2, value: f64::NEG_INFINITY };
    assert_eq!(slots(&[1.0, 1e300, f64::NEG_INFINITY], 2, 1e9), infinite);
    let complex = [Complex64::ONE, Complex64::new(0.0, f64::NAN)];
    let error = Integers::slots(&e, &complex, 1, 1e9).unwrap_err();
    assert!(matches!(error, EncoderError::NotFinite { index: 1, value } if value.is_nan()));

    let coefficients = |values: &[f64]| Integers::coefficients(&e, values, 1e9).unwrap_err();
    let too_many = EncoderError::TooManyValues { count: 1025, room: 1024, what: "coefficients" };
    assert_eq!(coefficients(&[0.0; 1025]), too_many);
    assert!(matches!(coefficients(&[0.0, f64::NAN]), EncoderError::NotFinite { index: 1, .. }));
    assert!(
        matches!(coefficients(&[f64::MAX]), EncoderError::TooLarge { needed_bits, .. } if needed_bits > 1050.0)
    );
    assert!(
        matches!(slots(&[f64::MAX], 9, 1e9), EncoderError::TooLarge { needed_bits, .. } if needed_bits > 1050.0)
    );
    assert!(matches!(slots(&[2e295; 512], 9, 1.0), EncoderError::TooLarge { .. }));
}

#[test]
fn a_value_too_large_for_the_modulus_says_how_many_bits_it_needs() {
    let e = Embedding::new(10);
    let q = Modulus::new((1 << 50) - 27).unwrap();
    let integers = Integers::slots(&e, &[4096.0; 512], 9, (1u64 << 45) as f64).unwrap();
    let error = integers.check_fits(&[q]).unwrap_err();
    let EncoderError::TooLarge { needed_bits, available_bits } = error else { unreachable!("{error}") };
    assert!((needed_bits - 58.0).abs() < 1e-9 && (available_bits - 50.0).abs() < 1e-9, "{error}");
    assert!(error.to_string().contains("needs 58.0 bits with its sign, and 50.0 are available"));
}

#[test]
#[should_panic(expected = "log_n = 9 is outside 10..=17")]
fn a_degree_that_is_no_ring_is_refused() {
    let _ = Embedding::new(9);
}

#[test]
#[should_panic(expected = "values are not the")]
fn a_length_that_is_not_the_slot_count_is_refused() {
    Embedding::new(10).to_slots(4, &mut [Complex64::ZERO; 8]);
}
