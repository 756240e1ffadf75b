use keywright_circuits::bootstrapping::{BootstrapperLiteral, BootstrapperPlan, KeyBudget, Values as Kind};
use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_client::{Client, ClientParameters};
use keywright_ring::sampling::SecretRng;
use keywright_ring_testing::samples::SplitMix64;
use keywright_rlwe::SecretKey;
use keywright_wire::WireSecret;
use zeroize::Zeroizing;

/// The starting point of the client's own tests.
#[path = "../../../client/tests/client/fixture.rs"]
mod client;
pub(crate) use client::{SHIFT_ADD_30, SHIFT_ADD_60, entropy, generic_primes};

/// The generator that a client of [`entropy`] has.
pub(crate) fn rng(byte: u8) -> SecretRng {
    let mut bytes = Zeroizing::new([0; 32]);
    entropy(byte)(&mut *bytes).unwrap();
    SecretRng::from_entropy(&bytes)
}

/// Numbers in `-max..=max`, including the ends.
pub(crate) fn numbers(seed: u64, count: usize, max: i64) -> Vec<i64> {
    let residues = SplitMix64(seed).residues(2 * max as u64 + 1, count);
    let mut numbers: Vec<i64> = residues.into_iter().map(|residue| residue as i64 - max).collect();
    for (number, end) in numbers.iter_mut().zip([max, -max]) {
        *number = end;
    }
    numbers
}

/// A small insecure ring with a bootstrapping: `q_0` of 50 bits, two levels of `slots_to_coeffs`, three for
/// computation, fourteen for the other stages.
pub(crate) fn toy(log_n: u32, log_slots: u32, values: Kind) -> (CkksParameters, BootstrapperPlan) {
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 14]);
    let literal = CkksLiteral::from_bits(log_n, &q, &[50, 50, 50], 45.0).unwrap().insecure();
    let parameters = CkksParameters::new(literal).unwrap();
    let literal = BootstrapperLiteral {
        log_slots,
        values,
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        budget: KeyBudget::Fastest,
        log2_failure: -40.0,
        log_ratio: 6.0,
        cosine_degree: 30,
        double_angles: 3,
        arcsine_degree: 5,
        output_level: Some(5),
        ..BootstrapperLiteral::default()
    };
    let plan = BootstrapperPlan::new(&parameters, &literal).unwrap();
    (parameters, plan)
}

/// A ring of 128-bit security with one prime, and a client's parameters for it.
pub(crate) fn entry(log_n: u32, q0: u64, fraction_bits: u32) -> (CkksParameters, ClientParameters) {
    let mut literal = CkksLiteral::from_bits(log_n, &[30], &[], 1.0).unwrap();
    literal.rlwe.q = vec![q0];
    literal.log_scale = f64::from(64 - q0.leading_zeros() - 7);
    let parameters = CkksParameters::new(literal).unwrap();
    (parameters.clone(), entry_of(&parameters, fraction_bits))
}

/// A client of parameters without a bootstrapping.
pub(crate) fn entry_of(parameters: &CkksParameters, fraction_bits: u32) -> ClientParameters {
    let (toy, plan) = toy(10, 9, Kind::Complex);
    let mut literal = *keywright_thin_server::client_parameters(&toy, &plan, 1).unwrap().literal();
    let rlwe = parameters.rlwe();
    let header = keywright_wire::Wire::to_bytes(
        &keywright_rlwe::RlweCiphertext {
            polys: vec![keywright_ring::Poly::zero(rlwe.n(), 1); 2],
            key: keywright_client::KeyIdentity::UNKNOWN,
        },
        rlwe,
    )
    .unwrap();
    literal.identity.copy_from_slice(&header[12..32]);
    literal.entry_identity = literal.identity;
    literal.log_n = rlwe.log_n();
    literal.modulus = rlwe.modulus(0).value();
    literal.scale = parameters.scale() as u64;
    literal.fraction_bits = fraction_bits;
    literal.max = 1 << fraction_bits;
    literal.layout = keywright_client::Layout::Slots { log_slots: rlwe.log_n() - 1, complex: true };
    ClientParameters::new(literal).unwrap()
}

/// The client's secret in the form of the full library.
pub(crate) fn full_secret(client: &Client, parameters: &CkksParameters) -> SecretKey {
    SecretKey::from_secret_bytes(&client.secret_bytes().unwrap(), parameters.rlwe()).unwrap()
}
