//! Polynomials against their values in `f64`.

use crate::fixture::{Owner, Values};
use keywright_circuits::CircuitError;
use keywright_circuits::approximate::chebyshev_interpolate;
use keywright_circuits::polynomial::{Basis, Polynomial, PolynomialPlan, evaluate};
use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Complex64, Evaluator};
use keywright_rlwe::{EvaluationKeys, KeyElement, RlweError};
use proptest::prelude::*;

/// Bound on the error of the reference, per unit of the sum of the coefficients' absolute values: Horner's and
/// Clenshaw's schemes at degree 63 lose at most `63^2` units of `2^-53`.
const FLOAT: f64 = 1.0 / (1u64 << 41) as f64;

const UNIT: Basis = Basis::Chebyshev { a: -1.0, b: 1.0 };

fn small() -> Owner {
    Owner::small(&[50, 45, 45, 45, 45, 45, 45, 45, 45], &[50, 50], 45.0)
}

fn relinearization(owner: &Owner, level: usize) -> EvaluationKeys {
    owner.keys([owner.spec(KeyElement::Relinearization, level, 2)])
}

fn check(owner: &Owner, polynomial: &Polynomial, x: &[f64], out: &Ciphertext, what: &str) -> f64 {
    let expected: Vec<_> = x.iter().map(|&x| Complex64::new(polynomial.value(x), 0.0)).collect();
    let total: f64 = polynomial.coefficients().iter().map(|c| c.abs()).sum();
    owner.check(out, &expected, FLOAT * (total + 1.0), what)
}

#[test]
fn every_degree_in_both_bases() {
    let owner = small();
    let keys = relinearization(&owner, 8);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let x = Values(1).reals(64);
    for degree in 0..=63usize {
        let levels = (degree + 1).next_power_of_two().trailing_zeros() as usize;
        // Alternate between just enough levels and some to spare.
        let level = if degree.is_multiple_of(2) { levels } else { (levels + 2).min(8) };
        let input = owner.encrypt_real(&x, level);
        for basis in [Basis::Monomial, UNIT] {
            let polynomial = Polynomial::new(basis, Values(degree as u64).reals(degree + 1)).unwrap();
            let plan = PolynomialPlan::new(&polynomial);
            let out = evaluate(&evaluator, &plan, &input, None).unwrap();
            assert_eq!((plan.depth(), out.level(), out.degree()), (levels, level - levels, 1));
            assert_eq!((out.scale, out.packing), (input.scale, input.packing));
            let seen = check(&owner, &polynomial, &x, &out, &format!("{basis:?} degree {degree}"));
            assert!(
                degree == 0 || seen > out.estimate.bound() / 2e4,
                "{basis:?} {degree}: {seen:e} {:?}",
                out.estimate
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn sparse_coefficients_intervals_and_scales(
        exponents in proptest::collection::btree_set(0usize..64, 1..8),
        a in -20.0f64..20.0,
        width in 0.1f64..40.0,
        log_scale in 35.0f64..46.0,
        seed in any::<u64>(),
    ) {
        let owner = small();
        let keys = relinearization(&owner, 8);
        let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
        let basis = Basis::chebyshev(a, a + width).unwrap();
        let mut values = Values(seed);
        let mut coefficients = vec![0.0; 64];
        exponents.iter().for_each(|&k| coefficients[k] = 3.0 * values.real());
        let polynomial = Polynomial::new(basis, coefficients).unwrap();
        let x: Vec<f64> = values.reals(16).iter().map(|y| a + width * (0.5 + 0.5 * y)).collect();
        let plan = PolynomialPlan::new(&polynomial);
        let scale = log_scale.exp2();
        let out = evaluate(&evaluator, &plan, &owner.encrypt_real(&x, 8), Some(scale)).unwrap();
        prop_assert_eq!((out.level(), out.scale), (8 - plan.depth(), scale));
        // The reference changes the variable in f64: an error of some 2^-53 (|a| + width) / width, times the
        // derivative.
        let total: f64 = polynomial.coefficients().iter().map(|c| c.abs()).sum();
        let change = 63.0 * 63.0 * total * 4.0 * (a.abs() + width) / width / (1u64 << 53) as f64;
        let expected: Vec<_> = x.iter().map(|&x| Complex64::new(polynomial.value(x), 0.0)).collect();
        owner.check(&out, &expected, FLOAT * (total + 1.0) + change, "sparse");
    }
}

#[test]
fn an_odd_function_on_an_interval() {
    let owner = small();
    let keys = relinearization(&owner, 8);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let approximation = chebyshev_interpolate(f64::tanh, -3.0, 3.0, 31).unwrap();
    let plan = PolynomialPlan::new(&approximation.polynomial);
    assert_eq!((plan.depth(), plan.change_depth()), (6, 1));
    let x: Vec<f64> = Values(3).reals(1024).iter().map(|y| 3.0 * y).collect();
    let out = evaluate(&evaluator, &plan, &owner.encrypt_real(&x, 6), None).unwrap();
    check(&owner, &approximation.polynomial, &x, &out, "tanh");
    let tanh: Vec<_> = x.iter().map(|x| Complex64::new(x.tanh(), 0.0)).collect();
    owner.check(&out, &tanh, 1.01 * approximation.max_error, "tanh itself");
}

#[test]
fn values_outside_the_interval_are_within_the_bound() {
    let owner = small();
    let keys = relinearization(&owner, 8);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    for degree in [1usize, 3, 7, 15, 31, 63] {
        let polynomial = Polynomial::new(UNIT, Values(degree as u64).reals(degree + 1)).unwrap();
        let plan = PolynomialPlan::new(&polynomial);
        let run = |input: &Ciphertext| evaluate(&evaluator, &plan, input, None).unwrap();
        let inside = run(&owner.encrypt_real(&Values(1).reals(64), 8)).estimate;
        for largest in [1.05, 1.2] {
            let x: Vec<f64> = Values(1).reals(64).iter().map(|v| largest * v).chain([largest; 64]).collect();
            let out = run(&owner.encrypt_real(&x, 8));
            let growth = (degree as f64 * largest.acosh()).cosh();
            // The reference loses units of its own size.
            let total: f64 = polynomial.coefficients().iter().map(|c| c.abs()).sum();
            let expected: Vec<_> = x.iter().map(|&x| Complex64::new(polynomial.value(x), 0.0)).collect();
            let what = format!("degree {degree}, up to {largest}");
            let seen = owner.check(&out, &expected, FLOAT * (total + 1.0) * growth, &what);
            assert!(out.estimate.bound() >= inside.bound() && out.estimate.bound() < 1e5 * seen, "{what}");
            assert!(out.estimate.magnitude <= 1.03 * total * growth, "{what}");
        }
        // On the unit circle T_k is up to (rho^k + rho^-k) / 2, rho = 1 + sqrt 2.
        let z: Vec<_> = (0..128).map(|k| Complex64::from_polar(1.0, 0.05 * f64::from(k))).collect();
        let growth = (degree as f64 * 1f64.asinh()).cosh();
        let value = |z: Complex64| {
            let (mut a, mut b) = (Complex64::ZERO, Complex64::ZERO);
            for &c in polynomial.coefficients().iter().skip(1).rev() {
                (a, b) = (2.0 * z * a - b + c, a);
            }
            z * a - b + polynomial.coefficients()[0]
        };
        let expected: Vec<_> = z.iter().map(|&z| value(z)).collect();
        let total: f64 = polynomial.coefficients().iter().map(|c| c.abs()).sum();
        let input = owner.encrypt(&z, 8);
        assert!(!input.estimate.real);
        // Values above the modulus are impossible.
        if total * growth * input.scale < 2f64.powi(90) {
            let float = FLOAT * (total + 1.0) * growth;
            let out = run(&input);
            assert!(!out.estimate.real);
            owner.check(&out, &expected, float, &format!("complex, degree {degree}"));
        }
    }
}

#[test]
fn bounds_of_what_nobody_can_bound_are_numbers() {
    let owner = small();
    let keys = relinearization(&owner, 8);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    for basis in [UNIT, Basis::Monomial] {
        let plan = PolynomialPlan::new(&Polynomial::new(basis, Values(2).reals(64)).unwrap());
        for real in [true, false] {
            let mut input = owner.encrypt_real(&Values(1).reals(64), 8);
            (input.estimate.magnitude, input.estimate.real) = (1e200, real);
            let estimate = evaluate(&evaluator, &plan, &input, None).unwrap().estimate;
            assert!(estimate.deviation.is_finite() && estimate.magnitude.is_finite(), "{estimate:?}");
            assert!(estimate.bound() > 1e200 && estimate.magnitude > 1e200, "{basis:?} {real} {estimate:?}");
        }
    }
}

#[test]
fn keys_are_needed_where_the_plan_says() {
    let owner = small();
    let x = Values(4).reals(8);
    for basis in [Basis::Monomial, UNIT, Basis::Chebyshev { a: -2.0, b: 2.0 }] {
        for degree in [1, 2, 3, 5, 12, 31] {
            let polynomial = Polynomial::new(basis, Values(5).reals(degree + 1)).unwrap();
            let plan = PolynomialPlan::new(&polynomial);
            let input = owner.encrypt_real(&x, 7);
            let run = |keys: &EvaluationKeys| {
                evaluate(&Evaluator::new(&owner.parameters, keys).unwrap(), &plan, &input, None)
            };
            let offsets = plan.relinearizations();
            let Some(first) = offsets.first() else {
                // No relinearization, no key.
                assert_eq!(degree, 1);
                run(&owner.keys([])).unwrap();
                continue;
            };
            // A key of the highest listed level serves all of them; one lower does not.
            run(&relinearization(&owner, 7 - first)).unwrap();
            let error = run(&relinearization(&owner, 6 - first)).unwrap_err();
            assert!(
                matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey {
                    element: KeyElement::Relinearization, level, .. })) if *level == 7 - first),
                "{error}"
            );
        }
    }
}

#[test]
fn misuse_is_refused() {
    let owner = small();
    let keys = relinearization(&owner, 8);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let plan = PolynomialPlan::new(&Polynomial::new(UNIT, vec![1.0; 8]).unwrap());
    let x = Values(6).reals(4);
    let refuse = |input: &Ciphertext, scale| evaluate(&evaluator, &plan, input, scale).unwrap_err();
    assert!(matches!(
        refuse(&owner.encrypt_real(&x, 2), None),
        CircuitError::Ckks(CkksError::LevelsExhausted { needed: 3, available: 2, .. })
    ));
    let good = owner.encrypt_real(&x, 3);
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        assert!(matches!(refuse(&good, Some(scale)), CircuitError::Ckks(CkksError::Scale { .. })), "{scale}");
    }
    let square = evaluator.multiply_lazy(&good, &good).unwrap();
    assert!(matches!(refuse(&square, None), CircuitError::Ckks(CkksError::Degree { degree: 2, .. })));
    let mut coefficients = good.clone();
    coefficients.packing = keywright_ckks::Packing::Coefficients;
    assert!(matches!(refuse(&coefficients, None), CircuitError::Ckks(CkksError::PackingMismatch { .. })));
    // Scales of powers that drift out of the modulus, or to nothing.
    for log_scale in [20.0, 60.0] {
        let mut drifting = good.clone();
        drifting.scale = f64::exp2(log_scale);
        assert!(
            matches!(refuse(&drifting, None), CircuitError::Ckks(CkksError::Scale { .. })),
            "{log_scale}"
        );
    }
    // A constant that no scale requires.
    let huge = PolynomialPlan::new(&Polynomial::new(Basis::Monomial, vec![0.0, 1e30]).unwrap());
    let error = evaluate(&evaluator, &huge, &good, None).unwrap_err();
    assert!(matches!(error, CircuitError::Ckks(CkksError::Scale { .. })), "{error}");
    assert!(matches!(
        Polynomial::new(UNIT, vec![0.0, f64::INFINITY]),
        Err(CircuitError::NotFinite { index: 1, .. })
    ));
    assert!(matches!(Basis::chebyshev(1.0, -1.0), Err(CircuitError::Interval { .. })));
}

#[test]
fn a_secure_ring() {
    let owner = Owner::new(CkksParameters::preset("N14_QP415_S45").unwrap());
    let keys = owner.keys([owner.spec(KeyElement::Relinearization, 7, 1)]);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let approximation = chebyshev_interpolate(|x: f64| 1.0 / (1.0 + (-x).exp()), -8.0, 8.0, 27).unwrap();
    let x: Vec<f64> = Values(7).reals(1 << 13).iter().map(|y| 8.0 * y).collect();
    let out = evaluate(
        &evaluator,
        &PolynomialPlan::new(&approximation.polynomial),
        &owner.encrypt_real(&x, 7),
        None,
    )
    .unwrap();
    check(&owner, &approximation.polynomial, &x, &out, "sigmoid");
}
