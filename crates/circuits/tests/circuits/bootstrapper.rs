//! The composition of the stages: what comes out is what went in, within the derived estimate, at the level of the plan.

use crate::fixture::{Owner, Values as Random, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::{Bootstrapper, BootstrapperLiteral, BootstrapperPlan, Stage, Values};
use keywright_ckks::{CkksError, Complex64, Encryptor, Evaluator, Packing};
use keywright_rlwe::{EvaluationKeys, KeyGenerator, RlweError};

/// Error of encoding, decoding and the grid of the approximation in `f64`, relative to values of 1.
const FLOAT: f64 = 1.0 / (1u64 << 40) as f64;

/// `q_0`, two levels of `slots_to_coeffs`, three to compute on, thirteen of 50 bits for the other stages.
fn owner() -> Owner {
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 13]);
    Owner::small(&q, &[50, 50, 50], 45.0)
}

fn literal(log_slots: u32, values: Values) -> BootstrapperLiteral {
    BootstrapperLiteral {
        log_slots,
        values,
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        ephemeral_weight: Some(32),
        log2_failure: -40.0,
        log_ratio: 6.0,
        cosine_degree: 30,
        double_angles: 3,
        arcsine_degree: 5,
        output_level: Some(5),
    }
}

fn keys(owner: &Owner, plan: &BootstrapperPlan) -> EvaluationKeys {
    let mut keys = EvaluationKeys::new(owner.parameters.rlwe());
    plan.generate_keys(&mut KeyGenerator::new(&owner.secret, rng(3)), &mut keys).unwrap();
    keys
}

/// Values whose parts are at most 1.
fn values(kind: Values, log_slots: u32, seed: u64) -> Vec<Complex64> {
    let mut random = Random(seed);
    let imaginary = if kind == Values::Complex { 1.0 } else { 0.0 };
    (0..1 << log_slots).map(|_| Complex64::new(random.real(), imaginary * random.real())).collect()
}

#[test]
fn every_packing_comes_back() {
    let owner = owner();
    let p = &owner.parameters;
    for (log_slots, kind) in [
        (10, Values::Complex),
        (10, Values::Real),
        (9, Values::Complex),
        (6, Values::Real),
        (3, Values::Complex),
        (0, Values::Real),
        (0, Values::Complex),
    ] {
        let what = format!("2^{log_slots} slots, {kind:?}");
        let plan = BootstrapperPlan::new(p, &literal(log_slots, kind)).unwrap();
        let keys = keys(&owner, &plan);
        assert_eq!(keys.len(), plan.required_keys().len(), "{what}");
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let z = values(kind, log_slots, 7);
        let out = bootstrapper.bootstrap(&evaluator, &owner.encrypt(&z, 3)).unwrap();
        assert_eq!(
            (out.level(), out.scale, out.packing),
            (5, p.scale(), Packing::Slots { log_slots }),
            "{what}"
        );
        assert_eq!((plan.input_level(), plan.output_level(), plan.levels_left()), (2, 5, 3), "{what}");
        let seen = owner.check(&out, &z, FLOAT, &what);
        println!(
            "{what}: {:.1} bits, bound {:.1}, depth {}",
            -seen.log2(),
            out.estimate.precision_bits(),
            plan.eval_mod.depth()
        );
    }
}
