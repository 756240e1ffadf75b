//! Every form of a ciphertext decrypts to the encrypted numbers, within the bound of its form; compact forms keep the
//! coefficients that carry numbers.

use keywright_client::{Client, ClientParameters, Encryptor, EngineChoice, Form, Layout};
use keywright_rlwe::noise;

use crate::fixture::{SHIFT_ADD_30, SHIFT_ADD_60, entropy, entry, numbers};

fn with_layout(thin: &ClientParameters, layout: Layout) -> ClientParameters {
    let mut literal = *thin.literal();
    literal.layout = layout;
    ClientParameters::new(literal).unwrap()
}

/// Bound on all coefficients' errors, in units of a number's last place; half a unit for each rounding.
fn bound(thin: &ClientParameters, variance: f64) -> f64 {
    let units = f64::from(thin.fixed_point().fraction_bits()).exp2() / thin.literal().scale as f64;
    (noise::TAIL * variance.sqrt() + 0.5) * units + 0.5
}

#[test]
fn every_form_comes_back_within_its_bound() {
    for (q, fraction_bits) in [(SHIFT_ADD_30, 18), (SHIFT_ADD_60, 48)] {
        let (parameters, thin) = entry(12, q, fraction_bits);
        let (n, rlwe) = (parameters.rlwe().n(), parameters.rlwe());
        let norm2 = rlwe.secret().expected_norm2(n);
        for layout in [
            Layout::Coefficients,
            Layout::Slots { log_slots: 11, complex: true },
            Layout::Slots { log_slots: 11, complex: false },
            Layout::Slots { log_slots: 5, complex: true },
            Layout::Slots { log_slots: 0, complex: false },
        ] {
            let thin = with_layout(&thin, layout);
            let mut owner = Client::generate(&thin, &mut entropy(1)).unwrap();
            let mut public_key = Vec::new();
            owner.public_key(&mut public_key).unwrap();
            let mut sender = Encryptor::new(&thin, &public_key, &mut entropy(2)).unwrap();
            let numbers = numbers(q, thin.capacity(), thin.fixed_point().max());
            let mut check = |bytes: &[u8], variance: f64, what: &str| {
                let mut seen = vec![0; numbers.len()];
                owner.decrypt(bytes, &mut seen).unwrap();
                let worst = seen.iter().zip(&numbers).map(|(a, b)| (a - b).abs()).max().unwrap();
                let bound = bound(&thin, variance);
                assert!(worst as f64 <= bound, "{what}, {layout:?}, mod {q}: {worst} above {bound}");
            };
            let dropping = |bits: u32| if bits == 0 { 0.0 } else { (2.0 * f64::from(bits)).exp2() / 12.0 };
            let mut bytes = Vec::new();
            sender.encrypt(&numbers[..], Form::Evaluations, &mut bytes).unwrap();
            check(&bytes, noise::fresh_public(rlwe), "public");
            for dropped in [[0, 0], [5, 2], [7, 3]] {
                bytes.clear();
                sender.encrypt(&numbers[..], Form::Compact(dropped), &mut bytes).unwrap();
                assert_eq!(bytes.len(), thin.form_bytes(Form::Compact(dropped), false).unwrap());
                let variance =
                    noise::fresh_public(rlwe) + dropping(dropped[0]) + norm2 * dropping(dropped[1]);
                check(&bytes, variance, "public, compact");
            }
            let mut seeded = Client::generate(&thin, &mut entropy(1)).unwrap();
            for dropped in [0, 3] {
                let reference = {
                    bytes.clear();
                    seeded.encrypt(&numbers[..], Form::Compact([dropped, 0]), &mut bytes).unwrap();
                    bytes.len()
                };
                assert_eq!(reference, thin.form_bytes(Form::Compact([dropped, 0]), true).unwrap());
                check(&bytes, noise::fresh_symmetric() + dropping(dropped), "seeded, compact");
            }
        }
    }
}

#[test]
fn a_few_numbers_take_a_few_hundred_bytes() {
    let (_, thin) = entry(13, SHIFT_ADD_60, 40);
    let thin = with_layout(&thin, Layout::Slots { log_slots: 4, complex: true });
    let mut client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let mut bytes = Vec::new();
    client.encrypt(&[1i64, 2, 3][..], Form::Compact([0, 0]), &mut bytes).unwrap();
    assert_eq!(bytes.len(), 44 + 79 + 8 + 32 * 60 / 8);
}

#[test]
fn compact_bytes_do_not_depend_on_the_arithmetic() {
    for q in [SHIFT_ADD_30, SHIFT_ADD_60] {
        let (_, thin) = entry(12, q, 16);
        let numbers = numbers(1, 100, thin.fixed_point().max());
        let of = |choice| {
            let mut client = Client::generate(&thin, &mut entropy(1)).unwrap().with_engine(choice).unwrap();
            let (mut public_key, mut bytes) = (Vec::new(), Vec::new());
            client.public_key(&mut public_key).unwrap();
            client.encrypt(&numbers[..], Form::Compact([2, 0]), &mut bytes).unwrap();
            let mut sender = Encryptor::with_engine(&thin, &public_key, &mut entropy(2), choice).unwrap();
            sender.encrypt(&numbers[..], Form::Compact([4, 1]), &mut bytes).unwrap();
            bytes
        };
        let expected = of(EngineChoice::Ring);
        assert!(
            of(EngineChoice::ShiftAdd) == expected && of(EngineChoice::Montgomery) == expected,
            "mod {q}"
        );
    }
}
