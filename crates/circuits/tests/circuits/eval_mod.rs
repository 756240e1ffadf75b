//! Reduction modulo 1 of encrypted values near integers.

use crate::fixture::{Owner, Values, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::eval_mod::{EvalModPlan, eval_mod, inspect_input};
use keywright_circuits::bootstrapping::sine::SineApproximation;
use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Complex64, Decryptor, Evaluator, Packing,
};
use keywright_rlwe::{EvaluationKeys, KeyElement, RlweError};

const K: usize = 12;

/// Fifteen levels, at a scale that is that of the primes but for `2^-10` of it.
fn small() -> Owner {
    Owner::small(&[50; 16], &[50, 50], 49.999)
}

fn keys(owner: &Owner, plan: &EvalModPlan, level: usize) -> EvaluationKeys {
    owner.keys([plan.key_spec(owner.parameters.rlwe(), level).unwrap()])
}

/// Integer parts of every value in range, and messages up to the largest, the ends included.
fn inputs(plan: &EvalModPlan, count: usize) -> (Vec<f64>, Vec<f64>) {
    let k = plan.approximation.k;
    let mut random = Values(count as u64);
    let message: Vec<f64> = (0..count)
        .map(|i| {
            plan.approximation.message * if i < 2 * k { 1.0 - 2.0 * (i % 2) as f64 } else { random.real() }
        })
        .collect();
    let y = message
        .iter()
        .enumerate()
        .map(|(i, mu)| ((i % (2 * k + 1)) as f64 - k as f64 + mu) / plan.approximation.half_width())
        .collect();
    (y, message)
}

fn check(owner: &Owner, out: &Ciphertext, message: &[f64], ratio: f64, what: &str) -> f64 {
    let expected: Vec<_> = message.iter().map(|mu| Complex64::new(ratio * mu, 0.0)).collect();
    owner.check(out, &expected, 1e-12, what)
}

#[test]
fn messages_are_recovered_at_the_scale_asked_for() {
    let owner = small();
    for (ratio, degree, angles, arcsine, level, log_scale) in [
        (256.0, 30, 3, 1, 8, 42.0),
        (64.0, 62, 1, 3, 15, 44.0),
        (32.0, 30, 3, 7, 12, 45.0),
        (32.0, 126, 0, 5, 11, 50.0),
    ] {
        let plan = EvalModPlan::new(SineApproximation::new(K, 1.0 / ratio, degree, angles, arcsine).unwrap());
        let keys = keys(&owner, &plan, level);
        let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
        let (y, message) = inputs(&plan, 1024);
        let scale = f64::exp2(log_scale);
        let out = eval_mod(&evaluator, &plan, &owner.encrypt_real(&y, level), ratio, scale).unwrap();
        assert_eq!((out.level(), out.scale, out.degree()), (level - plan.depth(), scale, 1));
        let seen = check(&owner, &out, &message, ratio, &format!("ratio {ratio}"));
        // Bounds are 21 deviations, and of 2^10 values some are beyond three; the error of the approximation is in both.
        let noise = out.estimate.bound() - ratio * plan.approximation.error;
        assert!(seen > ratio * plan.approximation.error / 2.0 || seen > noise / 21.0, "{seen:e} {noise:e}");
    }
}

/// The error budget of `docs/bootstrapping.md`: run by hand, `cargo test -p keywright-circuits -- --ignored --nocapture budget`.
#[test]
#[ignore = "N = 2^16: minutes"]
fn budget() {
    println!(
        "| K | q_0/m | cosine, angles, arcsine | first primes | levels | relin. | approximation | predicted | seen | bound |"
    );
    // Widths of the primes in the order in which they are removed, all others 50; log2 of the input's scale.
    let ladders: [(&[u32], f64); 4] =
        [(&[50], 50.0), (&[50], 53.6), (&[50, 60, 59], 53.6), (&[50, 58, 60, 56], 53.6)];
    for (first, log_scale) in ladders {
        let mut q_bits = vec![50; 15];
        // One more, removed by the rescaling that makes the input.
        first.iter().enumerate().for_each(|(i, &bits)| q_bits[13 - i] = bits);
        let literal = CkksLiteral::from_bits(16, &q_bits, &[60, 60, 60, 60], 49.9999).unwrap();
        let owner = Owner::new(CkksParameters::new(literal).unwrap());
        let all = owner.keys([owner.spec(KeyElement::Relinearization, 13, 4)]);
        let evaluator = Evaluator::new(&owner.parameters, &all).unwrap();
        for (k, log_ratio, degree, angles, arcsine) in [
            (12, 5, 62, 1, 7),
            (12, 5, 40, 2, 7),
            (12, 6, 62, 1, 5),
            (12, 7, 62, 1, 3),
            (12, 5, 63, 1, 7),
            (15, 5, 46, 2, 7),
            (16, 8, 30, 3, 3),
        ] {
            let ratio = f64::exp2(f64::from(log_ratio));
            let plan =
                EvalModPlan::new(SineApproximation::new(k, 1.0 / ratio, degree, angles, arcsine).unwrap());
            let (y, message) = inputs(&plan, 1 << 15);
            // Symmetric encryption and one rescaling: the error of an input is that of a division.
            let decryptor = Decryptor::new(&owner.parameters, &owner.secret).unwrap();
            let packing = Packing::Slots { log_slots: 15 };
            let fresh = decryptor.encrypt_real(&y, packing, 14, &mut rng(9)).unwrap().expand();
            let input = evaluator.set_scale(&fresh, f64::exp2(log_scale)).unwrap();
            let start = std::time::Instant::now();
            let out = match eval_mod(&evaluator, &plan, &input, ratio, f64::exp2(45.0)) {
                Ok(out) => out,
                Err(error) => {
                    println!(
                        "| {k} | 2^{log_ratio} | {degree}, {angles}, {arcsine} | {first:?} {log_scale} | {error}"
                    );
                    continue;
                }
            };
            let time = start.elapsed();
            let seen = check(&owner, &out, &message, ratio, "budget");
            let approximation = ratio * plan.approximation.error;
            let deviation = (out.estimate.bound() - approximation) / 21.0;
            // Five deviations: one value in two million is beyond.
            println!(
                "| {k} | 2^{log_ratio} | {degree}, {angles}, {arcsine} | {first:?} {log_scale} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {time:.2?}",
                plan.depth(),
                plan.relinearizations().len(),
                -approximation.log2(),
                -(5.0 * deviation + approximation).log2(),
                -seen.log2(),
                -out.estimate.bound().log2(),
            );
        }
    }
}

#[test]
fn values_outside_the_range_are_found_out() {
    let owner = small();
    let plan = EvalModPlan::new(SineApproximation::new(K, 1.0 / 64.0, 30, 3, 1).unwrap());
    let decryptor = Decryptor::new(&owner.parameters, &owner.secret).unwrap();
    let inspect = |x: &[f64]| {
        let y: Vec<f64> = x.iter().map(|x| x / plan.approximation.half_width()).collect();
        inspect_input(&decryptor, &plan, &owner.encrypt_real(&y, 3))
    };
    let range = inspect(&[0.0, -7.01, 3.005, 0.01]).unwrap();
    assert_eq!(range.integer, 7);
    assert!((range.message - 0.01).abs() < 1e-9, "{range:?}");
    assert!(matches!(inspect(&[0.0, 13.0, 0.5, 0.0]), Err(CircuitError::OutOfRange { slot: 1, k: K, .. })));
    assert!(matches!(inspect(&[0.0, 12.0, -3.02, 0.0]), Err(CircuitError::OutOfRange { slot: 2, .. })));
}

#[test]
fn misuse_is_refused() {
    let owner = small();
    let plan = EvalModPlan::new(SineApproximation::new(K, 1.0 / 64.0, 30, 3, 1).unwrap());
    assert_eq!(plan.depth(), 8);
    let keys = keys(&owner, &plan, 8);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let good = owner.encrypt_real(&inputs(&plan, 32).0, 8);
    let run =
        |input: &Ciphertext, ratio, scale| eval_mod(&evaluator, &plan, input, ratio, scale).unwrap_err();
    let low = owner.encrypt_real(&[0.0; 4], 7);
    assert!(matches!(
        run(&low, 64.0, 1e12),
        CircuitError::Ckks(CkksError::LevelsExhausted { operation: "eval_mod", needed: 8, available: 7 })
    ));
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(run(&good, ratio, 1e12), CircuitError::Ckks(CkksError::NotFinite(_))), "{ratio}");
    }
    for scale in [0.0, -1.0, f64::NAN, 1e300] {
        assert!(matches!(run(&good, 64.0, scale), CircuitError::Ckks(CkksError::Scale { .. })), "{scale}");
    }
    let mut coefficients = good.clone();
    coefficients.packing = Packing::Coefficients;
    assert!(matches!(run(&coefficients, 64.0, 1e12), CircuitError::Ckks(CkksError::PackingMismatch { .. })));
    let none = EvaluationKeys::new(owner.parameters.rlwe());
    let error =
        eval_mod(&Evaluator::new(&owner.parameters, &none).unwrap(), &plan, &good, 64.0, 1e12).unwrap_err();
    assert!(
        matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey { level: 8, .. }))),
        "{error}"
    );
}
