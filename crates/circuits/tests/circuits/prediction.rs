//! Measured errors agree with a plan's predictions.

use crate::bootstrapper::{keys, literal};
use crate::fixture::{Owner, Values as Random};
use keywright_circuits::bootstrapping::{Bootstrapper, BootstrapperLiteral, BootstrapperPlan, Values};
use keywright_ckks::{Complex64, Evaluator};

const VECTORS: usize = 4;

/// Wide and narrow primes, with an arcsine; narrow transforms, so that the rounding of diagonals counts; without an
/// arcsine.
fn owners() -> [(Owner, BootstrapperLiteral); 3] {
    let chain = |widths: &[(u32, usize)]| -> Vec<u32> {
        widths.iter().flat_map(|&(bits, count)| std::iter::repeat_n(bits, count)).collect()
    };
    let literal = BootstrapperLiteral {
        log_ratio: 5.0,
        cosine_degree: 62,
        double_angles: 1,
        arcsine_degree: 7,
        ..literal(10, Values::Complex)
    };
    let usual = chain(&[(50, 1), (40, 2), (45, 3), (50, 8), (59, 1), (60, 1), (50, 3)]);
    let narrow = chain(&[(50, 1), (26, 2), (45, 3), (50, 8), (59, 1), (60, 1), (50, 1), (34, 2)]);
    let without = chain(&[(50, 1), (31, 2), (40, 3), (50, 1), (57, 4), (60, 4), (46, 2)]);
    let plain = BootstrapperLiteral {
        log_ratio: 11.5,
        log2_failure: -139.0,
        cosine_degree: 50,
        double_angles: 2,
        arcsine_degree: 1,
        ..literal.clone()
    };
    [
        (Owner::small(&usual, &[50; 3], 45.0), literal.clone()),
        (Owner::small(&narrow, &[50; 3], 45.0), literal),
        (Owner::small(&without, &[50; 3], 40.0), plain),
    ]
}

/// Mean and largest error of a part, in bits, that bootstrapping adds.
fn seen(owner: &Owner, plan: &BootstrapperPlan, literal: &BootstrapperLiteral) -> (f64, f64) {
    let p = &owner.parameters;
    let keys = keys(owner, plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(p, plan).unwrap();
    let mut random = Random(11);
    let (mut sum, mut count, mut largest) = (0.0, 0.0, 0.0f64);
    for _ in 0..VECTORS {
        let complex = literal.values == Values::Complex;
        let values: Vec<_> = (0..1 << literal.log_slots)
            .map(|_| Complex64::new(random.real(), if complex { random.real() } else { 0.0 }))
            .collect();
        let input = owner.encrypt(&values, plan.input_level());
        let output = bootstrapper.bootstrap(&evaluator, &input).unwrap();
        for (value, expected) in owner.decrypt(&output).iter().zip(owner.decrypt(&input)) {
            let error = value - expected;
            for part in [Some(error.re), complex.then_some(error.im)].into_iter().flatten().map(f64::abs) {
                (sum, count, largest) = (sum + part, count + 1.0, largest.max(part));
            }
        }
    }
    (-f64::log2(sum / count), -largest.log2())
}

#[test]
fn mean_and_worst_are_within_a_bit_of_the_prediction() {
    for (owner, literal) in owners() {
        for (log_slots, values) in
            [(10, Values::Complex), (10, Values::Real), (9, Values::Complex), (7, Values::Real)]
        {
            let literal = BootstrapperLiteral { log_slots, values, ..literal.clone() };
            let plan = BootstrapperPlan::new(&owner.parameters, &literal).unwrap();
            let prediction = plan.prediction(&owner.parameters).unwrap().unwrap();
            let (mean, worst) = seen(&owner, &plan, &literal);
            let what = format!("2^{log_slots} {values:?}, ratio 2^{}", literal.log_ratio);
            let (predicted_mean, predicted_worst) = (prediction.mean_bits(), prediction.worst_bits(VECTORS));
            assert!((mean - predicted_mean).abs() < 1.0, "{what}: mean {mean}, predicted {predicted_mean}");
            assert!(
                (worst - predicted_worst).abs() < 1.0,
                "{what}: worst {worst}, predicted {predicted_worst}"
            );
        }
    }
}
