//! A thin client that encrypts in hardware: numbers into coefficients modulo `q_0`, the server's bootstrapping, numbers
//! back.

use std::path::Path;

use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, KeyBudget, Values,
};
use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, ErrorEstimate, Evaluator, Packing};
use keywright_client::{Client, ClientError, ClientParameters};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeySpec, Parameters, PublicKey, SecretKey, Security, SwitchingKey,
};
use keywright_thin_server as server;
use keywright_wire::{Wire, WireSecret};

use crate::client::{Q0, read_ciphertext, write_encryption};
use crate::{Outcome, say};

const FRACTION_BITS: u32 = 30;

/// `q_0` of the core, two levels of `slots_to_coeffs`, three for computation, fourteen for the other stages. A ring of
/// N = 2^12 with so many primes is insecure; it is used for speed.
fn parameters(log_n: u32) -> Result<(CkksParameters, BootstrapperPlan), String> {
    let mut q = vec![60, 50, 50, 55, 55, 55];
    q.extend([61; 14]);
    let mut literal = CkksLiteral::from_bits(log_n, &q, &[61, 61, 61], 55.0).map_err(say)?;
    literal.rlwe.q[0] = Q0;
    literal.rlwe.security = Security::InsecureForExperiments;
    let parameters = CkksParameters::new(literal).map_err(say)?;
    let literal = BootstrapperLiteral {
        log_slots: log_n - 1,
        values: Values::Real,
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
    let plan = BootstrapperPlan::new(&parameters, &literal).map_err(say)?;
    Ok((parameters, plan))
}

/// A server's parameters and its client, the same in every run.
struct Case {
    parameters: CkksParameters,
    plan: BootstrapperPlan,
    thin: ClientParameters,
    client: Client,
    secret: SecretKey,
    numbers: Vec<i64>,
}

impl Case {
    fn new(log_n: u32) -> Result<Self, String> {
        let (parameters, plan) = parameters(log_n)?;
        let thin = server::client_parameters(&parameters, &plan, FRACTION_BITS).map_err(say)?;
        let mut next = 0u8;
        let mut entropy = |out: &mut [u8]| -> Result<(), ClientError> {
            for byte in out {
                (*byte, next) = (next, next.wrapping_add(1));
            }
            Ok(())
        };
        let client = Client::generate(&thin, &mut entropy).map_err(say)?;
        let bytes = client.secret_bytes().map_err(say)?;
        let secret = SecretKey::from_secret_bytes(&bytes, parameters.rlwe()).map_err(say)?;
        // Numbers of both signs and all sizes up to 1/2, the extremes in front.
        let half = 1i64 << (FRACTION_BITS - 1);
        let mut numbers: Vec<i64> =
            (0..thin.capacity() as i64).map(|i| (i * 982_451_653 % (2 * half + 1)) - half).collect();
        numbers[..3].copy_from_slice(&[half, -half, 1]);
        Ok(Self { parameters, plan, thin, client, secret, numbers })
    }

    /// The coefficients that carry the numbers.
    fn message(&self) -> Vec<i64> {
        let (layout, format) = (self.thin.layout(), self.thin.fixed_point());
        let mut message = vec![0; self.thin.n()];
        for (index, &number) in self.numbers.iter().enumerate() {
            message[layout.position(self.thin.log_n(), index)] = format.coefficient(number);
        }
        message
    }
}

/// The files of `client::write`, for a message in the client's format.
pub(crate) fn write(log_n: u32, folder: &Path) -> Outcome {
    let mut case = Case::new(log_n)?;
    let entry = Parameters::new(server::entry_literal(case.parameters.rlwe())).map_err(say)?;
    let mut bytes = Vec::new();
    case.client.public_key(&mut bytes).map_err(say)?;
    let public = PublicKey::from_bytes(&bytes, &entry).map_err(say)?;
    write_encryption(&entry, &case.secret, &public, &case.message(), folder)
}

/// Reads the simulated core's ciphertext of these numbers as an upload, bootstraps it and squares it in slots. The
/// client decrypts the answer to the squares, within the bound that the engine derives.
pub(crate) fn check(log_n: u32, folder: &Path) -> Outcome {
    let mut case = Case::new(log_n)?;
    let (parameters, rlwe) = (&case.parameters, case.parameters.rlwe());
    let upload = Ciphertext {
        parameters: parameters.clone(),
        rlwe: read_ciphertext(rlwe.n(), folder)?,
        scale: case.thin.literal().scale as f64,
        packing: Packing::Coefficients,
        // The server's replacement for the claims of an upload.
        estimate: ErrorEstimate { deviation: 0.0, magnitude: 1.0, real: true },
    };
    let bytes = upload.to_bytes(parameters).map_err(say)?;

    let mut specs = case.plan.required_keys();
    specs.push(KeySpec::new(rlwe, KeyElement::Relinearization, case.plan.slots_level(), 2, true));
    let session = case.client.session().map_err(say)?;
    let mut stream = case.client.keys(rlwe, &specs, &session).map_err(say)?;
    let mut keys = EvaluationKeys::new(rlwe);
    let mut key = Vec::new();
    while stream.write_next(&mut key, &mut |_| ()).map_err(say)? {
        keys.insert(SwitchingKey::from_bytes(&key, rlwe).map_err(say)?).map_err(say)?;
        key.clear();
    }
    drop(stream);

    let evaluator = Evaluator::new(parameters, &keys).map_err(say)?;
    let bootstrapper = Bootstrapper::new(parameters, &case.plan).map_err(say)?;
    let input = server::read_upload(&bytes, parameters, &case.thin).map_err(say)?;
    let slots = bootstrapper.bootstrap_coefficients(&evaluator, &input).map_err(say)?;
    let squared = evaluator.square(&slots).map_err(say)?;
    let low = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &squared).map_err(say)?;
    let mut answer = Vec::new();
    let estimate = server::write_answer(&low, case.thin.layout(), [0, 0], &mut answer).map_err(say)?;
    let mut seen = vec![0; case.numbers.len()];
    case.client.decrypt(&answer, &mut seen).map_err(say)?;

    let one = f64::from(1 << FRACTION_BITS);
    // Half a unit of the last place for reading, and as much for squaring a rounded number.
    let bound = estimate.bound() + 2.0 / one;
    let mut worst = 0f64;
    for (slot, (&number, &square)) in case.numbers.iter().zip(&seen).enumerate() {
        let error = (square as f64 / one - (number as f64 / one).powi(2)).abs();
        if error > bound {
            return Err(format!("slot {slot} decrypts with an error of {error:e}, the bound is {bound:e}"));
        }
        worst = worst.max(error);
    }
    println!("bootstraps and decrypts to the squares: the largest error is {worst:e}, the bound {bound:e}");
    Ok(())
}
