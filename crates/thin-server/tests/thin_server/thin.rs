//! From integers to integers, through a server that computes on slots.

use keywright_circuits::bootstrapping::{Bootstrapper, BootstrapperPlan, Values as Kind, bootstrap_preset};
use keywright_ckks::{CkksParameters, Evaluator, Packing};
use keywright_client::{Client, Encryptor, Form, Layout};
use keywright_rlwe::{EvaluationKeys, KeyElement, KeySpec, SwitchingKey};
use keywright_thin_server as server;
use keywright_wire::Wire;

use crate::fixture::{entropy, numbers, toy};

const FRACTION_BITS: u32 = 30;

/// The client encrypts in every form. The server raises the modulus, squares in slots and moves back to coefficients.
/// The client decrypts the squares.
#[test]
fn squares_come_back_from_every_form() {
    for (log_slots, values) in [(9, Kind::Complex), (9, Kind::Real), (4, Kind::Complex), (3, Kind::Real)] {
        let (parameters, plan) = toy(10, log_slots, values);
        squares_come_back(&parameters, &plan, 4);
    }
}

/// The same at N = 2^16 and 128-bit security, with a public key and without; `q_0` of 50 bits, and those of 30 and 60
/// that clients have an arithmetic for.
#[test]
#[ignore = "gigabytes of keys and minutes: run by hand, optimised"]
fn squares_come_back_at_full_size() {
    for name in ["N16_QP1732_L9_S45", "N16_QP1737_L15_S35_q30", "N16_QP1702_L9_S45_q60"] {
        let preset = bootstrap_preset(name).unwrap();
        let parameters = preset.parameters().unwrap();
        let plan = BootstrapperPlan::new(&parameters, &preset.bootstrapper).unwrap();
        squares_come_back(&parameters, &plan, 4);
    }
}

fn squares_come_back(parameters: &CkksParameters, plan: &BootstrapperPlan, forms: usize) {
    let log_slots = plan.slots_to_coeffs.dft.log_slots();
    let complex = plan.coeffs_to_slots.values == Kind::Complex;
    // No more bits than a coefficient has.
    let fraction_bits = FRACTION_BITS.min(plan.coefficients_scale.log2() as u32);
    let thin = server::client_parameters(parameters, plan, fraction_bits).unwrap();
    assert_eq!(thin.layout(), Layout::Slots { log_slots, complex });
    let mut client = Client::generate(&thin, &mut entropy(1)).unwrap();

    let rlwe = parameters.rlwe();
    let mut specs = plan.required_keys();
    specs.push(KeySpec::new(rlwe, KeyElement::Relinearization, plan.slots_level(), 2, true));
    let session = client.session().unwrap();
    let mut stream = client.keys(rlwe, &specs, &session).unwrap();
    let mut keys = EvaluationKeys::new(rlwe);
    let mut bytes = Vec::new();
    while stream.write_next(&mut bytes, &mut |_| ()).unwrap() {
        keys.insert(SwitchingKey::from_bytes(&bytes, rlwe).unwrap()).unwrap();
        bytes.clear();
    }
    assert_eq!(keys.len(), specs.len());
    let evaluator = Evaluator::new(parameters, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(parameters, plan).unwrap();

    let one = 1i64 << fraction_bits;
    let numbers = numbers(log_slots.into(), thin.capacity(), one / 2);
    let mut public_key = Vec::new();
    client.public_key(&mut public_key).unwrap();
    let mut sender = Encryptor::new(&thin, &public_key, &mut entropy(2)).unwrap();
    let mut uploads = [const { Vec::new() }; 4];
    client.encrypt(&numbers[..], Form::Evaluations, &mut uploads[0]).unwrap();
    client.encrypt(&numbers[..], Form::Compact([1, 0]), &mut uploads[1]).unwrap();
    sender.encrypt(&numbers[..], Form::Evaluations, &mut uploads[2]).unwrap();
    sender.encrypt(&numbers[..], Form::Compact([5, 2]), &mut uploads[3]).unwrap();

    for upload in uploads.iter().rev().take(forms) {
        let what = format!("2^{log_slots} slots, complex: {complex}, {} bytes", upload.len());
        let input = server::read_upload(upload, parameters, &thin).unwrap();
        let slots = bootstrapper.bootstrap_coefficients(&evaluator, &input).unwrap();
        assert_eq!(slots.packing, Packing::Slots { log_slots }, "{what}");
        let squared = evaluator.square(&slots).unwrap();
        let low = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &squared).unwrap();
        let dropped = server::droppable(&low, 1.5).unwrap();
        let mut answer = Vec::new();
        let estimate = server::write_answer(&low, thin.layout(), dropped, &mut answer).unwrap();
        assert!(estimate.bound() <= low.estimate.bound() * 1.5 + 1e-30, "{what}");
        assert_eq!(answer.len(), thin.form_bytes(Form::Compact(dropped), false).unwrap(), "{what}");

        let mut seen = vec![0; numbers.len()];
        client.decrypt(&answer, &mut seen).unwrap();
        let real = |x: i64| x as f64 / one as f64;
        let n = 1usize << log_slots;
        // Half a unit of the last place for reading, and as much for squaring a rounded number.
        let bound = estimate.bound() + 2.0 / one as f64;
        for j in 0..n {
            let (re, im) = (real(numbers[j]), numbers.get(n + j).map_or(0.0, |&x| real(x)));
            let square = [re * re - im * im, 2.0 * re * im];
            for (part, expected) in square.iter().enumerate().take(numbers.len() / n) {
                let error = (real(seen[part * n + j]) - expected).abs();
                assert!(error <= bound, "{what}: slot {j}, part {part} is off by {error:e}, bound {bound:e}");
            }
        }
    }
}
