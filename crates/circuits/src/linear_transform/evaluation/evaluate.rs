use std::borrow::Cow;
use std::collections::BTreeSet;

use keywright_ckks::{Ciphertext, CkksError, ErrorEstimate, Evaluator, Packing, SCALE_TOLERANCE};
use keywright_rlwe::{KeyIdentity, RlweCiphertext, noise, prefix};

use super::giant_steps::giant_steps;
use crate::CircuitError;
use crate::linear_transform::rotations::keys::{Giant, KeyFinder};
use crate::linear_transform::rotations::tiers::Input;
use crate::linear_transform::{GiantSteps, LinearTransform};

/// `sum_t M_t v_t`: each ciphertext with its transform. All transforms share giant steps and the final division. The
/// result is one level below the transforms', at the scale of the inputs.
///
/// A rotation whose keys have other special primes than the transforms runs as a whole key switch: correct, but slower.
///
/// Ciphertexts above the level of the transforms are lowered to it. One input is a plain matrix-vector product; several
/// are a block row.
///
/// # Errors
/// Before anything is computed: [`CircuitError::Empty`], [`CircuitError::Mismatch`], and, as [`CircuitError::Ckks`], a
/// missing key, [`CkksError::PackingMismatch`], [`CkksError::ScaleMismatch`], [`CkksError::Degree`], mixed parameters
/// or keys, and a ciphertext below the transforms' level.
pub fn evaluate(
    evaluator: &Evaluator<'_>,
    inputs: &[(&LinearTransform, &Ciphertext)],
) -> Result<Ciphertext, CircuitError> {
    let Some(&(first, _)) = inputs.first() else { return Err(CircuitError::Empty("the list of inputs")) };
    let finder = KeyFinder { evaluator, level: first.level(), special: first.special() };
    let (mut prepared, mut key) = (Vec::with_capacity(inputs.len()), KeyIdentity::UNKNOWN);
    for &(transform, ciphertext) in inputs {
        check(evaluator, inputs[0], (transform, ciphertext))?;
        key = key.join(ciphertext.key(), "one ciphertext", "another")?;
        let half = |i: usize| {
            let poly = &ciphertext.rlwe.polys[i];
            if ciphertext.level() == first.level() {
                Cow::Borrowed(poly)
            } else {
                Cow::Owned(prefix(poly, first.level() + 1))
            }
        };
        let tiers = finder.tiers(transform.plan(), &[half(0), half(1)])?;
        prepared.push(Input { transform, ciphertext, tiers, raised: false });
    }
    let giants: BTreeSet<usize> =
        inputs.iter().flat_map(|(transform, _)| &transform.plan().giants).copied().collect();
    let giants: Vec<usize> = giants.into_iter().collect();
    let steps = match first.plan().giant_steps {
        GiantSteps::Separate => giants.clone(),
        GiantSteps::Chain { step } => vec![step],
    };
    let rotations = finder.giants(&steps)?;

    for input in &mut prepared {
        input.hop(evaluator)?;
    }
    let total = giant_steps(evaluator, first, &prepared, &giants, &rotations)?;
    let polys = first.division.divide(evaluator.parameters().rlwe(), &[&total[0], &total[1]]);
    let switches = match first.plan().giant_steps {
        GiantSteps::Separate => 1,
        GiantSteps::Chain { step } => giants.last().map_or(0, |last| last / step),
    };
    let estimate = estimate(evaluator, &prepared, &rotations, switches as f64);
    let model = inputs[0].1;
    Ok(Ciphertext {
        parameters: evaluator.parameters().clone(),
        rlwe: RlweCiphertext { polys, key },
        scale: model.scale,
        packing: model.packing,
        estimate,
    })
}

fn check(
    evaluator: &Evaluator<'_>,
    (first, model): (&LinearTransform, &Ciphertext),
    (transform, ciphertext): (&LinearTransform, &Ciphertext),
) -> Result<(), CircuitError> {
    let parameters = evaluator.parameters();
    parameters.require_same(transform.parameters(), "the evaluator", "the transform")?;
    evaluator.require(ciphertext)?;
    let mismatch = |what, left: String, right: String| Err(CircuitError::Mismatch { what, left, right });
    if transform.level() != first.level() {
        return mismatch("level", first.level().to_string(), transform.level().to_string());
    }
    if transform.special() != first.special() {
        return mismatch(
            "special primes",
            format!("{:?}", first.special()),
            format!("{:?}", transform.special()),
        );
    }
    if transform.plan().giant_steps != first.plan().giant_steps {
        let [left, right] = [first, transform].map(|t| format!("{:?}", t.plan().giant_steps));
        return mismatch("giant steps", left, right);
    }
    let packing = Packing::Slots { log_slots: transform.log_slots() };
    if ciphertext.packing != packing {
        return Err(CkksError::PackingMismatch { left: ciphertext.packing, right: packing }.into());
    }
    if transform.log_slots() != first.log_slots() {
        return mismatch(
            "number of slots",
            format!("2^{}", first.log_slots()),
            format!("2^{}", transform.log_slots()),
        );
    }
    if ciphertext.degree() != 1 {
        return Err(CkksError::Degree { operation: "a linear transform", degree: ciphertext.degree() }.into());
    }
    if (ciphertext.scale / model.scale - 1.0).abs() > SCALE_TOLERANCE {
        let (left, right) = (model.scale.log2(), ciphertext.scale.log2());
        return Err(CkksError::ScaleMismatch { left, right }.into());
    }
    if ciphertext.level() < transform.level() {
        let (level, max) = (transform.level(), ciphertext.level());
        return Err(keywright_rlwe::RlweError::Level { level, max, object: "the ciphertext" }.into());
    }
    Ok(())
}

/// The module's documentation has the derivation. Every giant step is used `switches` times.
fn estimate(
    evaluator: &Evaluator<'_>,
    inputs: &[Input<'_>],
    giants: &[Giant],
    switches: f64,
) -> ErrorEstimate {
    let rlwe = evaluator.parameters().rlwe();
    let (model, transform) = (inputs[0].ciphertext, inputs[0].transform);
    let mut sum = ErrorEstimate { deviation: 0.0, magnitude: 0.0, real: true };
    for Input { transform, ciphertext, .. } in inputs {
        let estimate = ciphertext.estimate;
        let all = transform.growth();
        sum.deviation +=
            all * estimate.deviation + transform.deviation * (estimate.magnitude + estimate.deviation);
        sum.magnitude += all * estimate.magnitude;
        sum.real &= estimate.real && transform.is_real();
    }
    let routed = evaluator.keys().routes().is_some();
    sum.deviation += inputs.iter().map(|input| input.switching_deviation(rlwe, routed)).sum::<f64>();
    let q = rlwe.modulus(transform.level()).value() as f64;
    let rounding = rlwe.secret().expected_norm2(rlwe.n()) / 12.0;
    let deviation = |variance| model.deviation_of(variance);
    for Giant { hops, last } in giants {
        let divided = match last {
            Some(last) if hops.is_empty() => deviation(last.raised_variance(rlwe) + rounding),
            _ => {
                let last = last.as_ref().map_or(0.0, |last| deviation(last.raised_variance(rlwe)));
                let hops = hops.iter().map(|hop| deviation(hop.variance(rlwe))).sum::<f64>();
                deviation(noise::division(rlwe)) + hops + last
            }
        };
        sum.deviation += switches * divided / q;
    }
    sum.with_noise(model.deviation_of(noise::division(rlwe)))
}
