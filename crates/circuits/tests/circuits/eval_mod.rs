//! Reduction modulo 1 of encrypted values near integers.

use crate::fixture::{Owner, Values, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::eval_mod::{EvalModPlan, eval_mod, inspect_input};
use keywright_circuits::bootstrapping::sine::SineApproximation;
use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Complex64, Decryptor, Evaluator, PRODUCT_TAIL,
    Packing,
};
use keywright_rlwe::{EvaluationKeys, RlweError};

const K: usize = 12;

/// Fifteen levels, at a scale within `2^-10` of that of the primes.
fn small() -> Owner {
    Owner::small(&[50; 16], &[50, 50], 49.999)
}

fn keys(owner: &Owner, plan: &EvalModPlan, level: usize) -> EvaluationKeys {
    owner.keys([plan.key_spec(owner.parameters.rlwe(), level).unwrap()])
}

/// Integer parts of every value in range, and messages up to the largest, including the ends.
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
        // Bounds are 21 deviations, and some of 2^10 values exceed three. Both include the error of the approximation.
        let noise = out.estimate.bound() - ratio * plan.approximation.error;
        assert!(seen > ratio * plan.approximation.error / 2.0 || seen > noise / 21.0, "{seen:e} {noise:e}");
    }
}

/// One line of the table of `docs/reproduction/bootstrap-measurements.md`.
struct BudgetLine {
    /// `K`, `log2(q_0 / m)`, degree of the cosine, double angles, degree of the arcsine.
    approximation: (usize, i32, usize, u32, usize),
    /// Widths of the first primes, in the order of removal; all others have 50 bits.
    first: &'static [u32],
}

/// Prints the line, and checks the measured error against the bound.
fn budget_line(line: &BudgetLine) {
    let BudgetLine { approximation: (k, log_ratio, degree, angles, arcsine), first } = *line;
    let ratio = 2f64.powi(log_ratio);
    let plan = EvalModPlan::new(SineApproximation::new(k, 1.0 / ratio, degree, angles, arcsine).unwrap());
    let top = plan.depth() + 1;
    let mut q_bits = vec![50; top + 2];
    first.iter().enumerate().for_each(|(i, &bits)| q_bits[top - i] = bits);
    let literal = CkksLiteral::from_bits(16, &q_bits, &[50; 5], 49.9999).unwrap();
    let owner = Owner::new(CkksParameters::new(literal).unwrap());
    let rlwe = owner.parameters.rlwe();
    let keys = owner.keys([plan.key_spec(rlwe, top).unwrap()]);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let (y, message) = inputs(&plan, 1 << 15);
    // Symmetric encryption and one rescaling, to the scale from which repeated squaring ends at that of the later
    // primes.
    let decryptor = Decryptor::new(&owner.parameters, &owner.secret).unwrap();
    let packing = Packing::Slots { log_slots: 15 };
    let fresh = decryptor.encrypt_real(&y, packing, top + 1, &mut rng(9)).unwrap().expand();
    let input = evaluator.set_scale(&fresh, plan.input_scale(rlwe, top).unwrap()).unwrap();
    let start = std::time::Instant::now();
    let out = eval_mod(&evaluator, &plan, &input, ratio, f64::exp2(45.0)).unwrap();
    let time = start.elapsed().as_secs_f64();
    let seen = check(&owner, &out, &message, ratio, "budget");
    let error = ratio * plan.approximation.error;
    let deviation = (out.estimate.bound() - error) / PRODUCT_TAIL;
    let bits =
        [error, 5.0 * deviation + error, seen, out.estimate.bound()].map(|e| format!("{:.1}", -e.log2()));
    println!(
        "| {k} | 2^{log_ratio} | {degree}, {angles}, {arcsine} | {first:?} | {} | {} | {} | {time:.2} s |",
        plan.depth(),
        plan.relinearizations().len(),
        bits.join(" | "),
    );
}

/// `cargo test --release -p keywright-circuits -- --ignored --nocapture budget`.
#[test]
#[ignore = "N = 2^16: the table of docs/reproduction/bootstrap-measurements.md"]
fn budget() {
    println!(
        "| K | q_0/m | choice | first primes | levels | relin. | approximation | predicted | seen | bound | time |"
    );
    const LADDER: &[u32] = &[50, 60, 59];
    for line in [
        BudgetLine { approximation: (12, 5, 62, 1, 7), first: &[50] },
        BudgetLine { approximation: (12, 5, 62, 1, 7), first: &[50, 60] },
        BudgetLine { approximation: (12, 5, 62, 1, 7), first: LADDER },
        BudgetLine { approximation: (12, 5, 40, 2, 7), first: LADDER },
        BudgetLine { approximation: (12, 5, 40, 2, 7), first: &[50, 59, 59, 50, 50, 59] },
        BudgetLine { approximation: (12, 5, 106, 0, 7), first: &[50, 59, 59, 50, 60, 50, 60] },
        BudgetLine { approximation: (12, 6, 62, 1, 5), first: LADDER },
        BudgetLine { approximation: (12, 7, 60, 1, 3), first: LADDER },
        BudgetLine { approximation: (12, 10, 60, 1, 1), first: LADDER },
        BudgetLine { approximation: (15, 5, 46, 2, 7), first: LADDER },
        BudgetLine { approximation: (16, 8, 30, 3, 3), first: LADDER },
        BudgetLine { approximation: (12, 6, 42, 2, 7), first: &[60; 12] },
    ] {
        budget_line(&line);
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
    let imaginary = owner.encrypt(&[Complex64::new(1.0, 0.5) / plan.approximation.half_width(); 2], 3);
    assert!(matches!(
        inspect_input(&decryptor, &plan, &imaginary),
        Err(CircuitError::OutOfRange { slot: 0, .. })
    ));
}

#[test]
fn misuse_is_refused() {
    let owner = small();
    let plan = EvalModPlan::new(SineApproximation::new(K, 1.0 / 64.0, 30, 3, 1).unwrap());
    assert_eq!(plan.depth(), 8);
    // With equal primes, the input's scale is theirs.
    let scale = plan.input_scale(owner.parameters.rlwe(), 8).unwrap();
    assert!((scale.log2() - 50.0).abs() < 1e-3, "{scale}");
    let error = plan.input_scale(owner.parameters.rlwe(), 7).unwrap_err();
    assert!(matches!(error, CircuitError::Ckks(CkksError::LevelsExhausted { needed: 8, available: 7, .. })));
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
