//! A transform fused with ModRaise.
//!
//! ModRaise reads a ciphertext `(c_0, c_1)` modulo `q_0` under an ephemeral secret `s'` as integers, and then switches
//! it to the main secret `s`. The next operations are the rotations of a transform. Both are fused: for the
//! automorphism `g`, a key from `s'(X^g)` to `s` ([`keywright_rlwe::KeyElement::SparseToDenseGalois`]) gives the
//! rotated ciphertext at once. The switched polynomial is below `q_0 / 2`, so each of these keys has one digit and one
//! special modulus `P >= q_0` at any level, a fifth of the bytes and of the work of a rotation there.
//!
//! * *Baby steps* are such switches, of one decomposition with one digit. `0` is the switch back itself. They stay
//!   modulo `Q P`.
//! * *Giant steps*, if there are any, need keys with more special primes than `P`. Every `w_j` is divided by `P`, and
//!   whole rotations at scale `S q_level`, before the rescaling, form the chain `w_0 + rot(w_1 + rot(w_2 + ..))`.
//!
//! # Error
//! As in [`super`], with every diagonal's baby step switched: `V_b = N sigma^2 (q_0 / P)^2 / 12`. A giant step adds the
//! errors of a key switch and of a division, at scale `D q_level`.

use std::borrow::Cow;

use keywright_ckks::{Ciphertext, Evaluator};
use keywright_ring::{Evaluation, Poly, rotation_element};
use keywright_rlwe::{Parameters, RlweCiphertext, for_each_item, noise, raise_modulus};

use super::baby_steps::baby_steps;
use crate::CircuitError;
use crate::linear_transform::rotations::keys::{KeyFinder, path};
use crate::linear_transform::rotations::rotation::Rotation;
use crate::linear_transform::rotations::tiers::{Input, Tier};
use crate::linear_transform::{GiantSteps, LinearTransform};

/// Applies a transform to a ciphertext at level 0 under the ephemeral secret of that weight. The transform's special
/// primes are those of the keys back from that secret. The result is one level below the transform's, at the input's
/// scale.
///
/// # Errors
/// Before anything is computed: a missing key; [`CircuitError::SpecialPrimes`] for keys over other special primes than
/// the transform's.
pub(crate) fn evaluate_raised(
    evaluator: &Evaluator<'_>,
    transform: &LinearTransform,
    weight: usize,
    ciphertext: &Ciphertext,
) -> Result<Ciphertext, CircuitError> {
    let (rlwe, level, plan) = (evaluator.parameters().rlwe(), transform.level(), transform.plan());
    let babies = KeyFinder { evaluator, level, special: transform.special() }.raised(&plan.babies, weight)?;
    let (step, giant) = match plan.giant_steps {
        GiantSteps::Chain { step } => {
            let g = rotation_element(rlwe.log_n(), step as i64);
            (step, path(evaluator.keys().serve(&[g], level, &[])?, g))
        }
        GiantSteps::Separate => (0, Vec::new()),
    };

    let [first, second] = [0, 1].map(|i| &ciphertext.rlwe.polys[i]);
    let halves = [Cow::Owned(raise_modulus(rlwe, first, level)?), Cow::Borrowed(second)];
    let tiers =
        vec![Tier { source: None, baby: None, halves, babies: babies.into_iter().enumerate().collect() }];
    let inputs = [Input { transform, ciphertext, tiers, raised: true }];
    let sums = baby_steps(evaluator, transform, &inputs, &plan.giants)?;
    let polys = match (&giant[..], &sums[..]) {
        ([], [[first, second]]) => transform.division.divide(rlwe, &[first, second]),
        _ => chain(rlwe, transform, step, &giant, sums)?,
    };

    let estimate = ciphertext.estimate;
    let babies = inputs[0].tiers[0].babies.iter();
    let switched = babies.map(|(_, baby)| baby.raised_variance(rlwe)).fold(0.0, f64::max);
    let q = rlwe.modulus(level).value() as f64;
    let chained: f64 = giant
        .iter()
        .map(|hop| hop.variance(rlwe) + noise::division(rlwe))
        .map(|variance| plan.giants.len() as f64 * ciphertext.deviation_of(variance) / q)
        .sum();
    let mut out = estimate;
    out.deviation = transform.growth() * (estimate.deviation + ciphertext.deviation_of(switched))
        + transform.deviation * (estimate.magnitude + estimate.deviation)
        + chained;
    out.magnitude = transform.growth() * estimate.magnitude;
    out.real &= transform.is_real();
    Ok(Ciphertext {
        parameters: evaluator.parameters().clone(),
        rlwe: RlweCiphertext { polys, key: ciphertext.key() },
        scale: ciphertext.scale,
        packing: ciphertext.packing,
        estimate: out.with_noise(ciphertext.deviation_of(noise::division(rlwe))),
    })
}

/// The giant steps without special primes, and the rescaling.
fn chain(
    rlwe: &Parameters,
    transform: &LinearTransform,
    step: usize,
    giant: &[Rotation],
    sums: Vec<[Poly<Evaluation>; 2]>,
) -> Result<Vec<Poly<Evaluation>>, CircuitError> {
    let level = transform.level();
    let mut sums: Vec<_> = transform.plan().giants.iter().copied().zip(sums).collect();
    let mut divided = |position: Option<usize>| {
        let (at, [first, second]) = sums.pop_if(|(at, _)| position.is_none_or(|position| *at == position))?;
        Some((at, transform.lowering.divide(rlwe, &[&first, &second])))
    };
    let zero = || vec![Poly::zero(rlwe.n(), level + 1), Poly::zero(rlwe.n(), level + 1)];
    let (mut position, mut total) = divided(None).unwrap_or_else(|| (0, zero()));
    while position > 0 && step > 0 {
        position -= step;
        let mut next = total;
        for hop in giant {
            if let [first, second] = &next[..] {
                next = Rotation::switch(rlwe, &[hop], [first, second])?.into_iter().flatten().collect();
            }
        }
        if let Some((_, sum)) = divided(Some(position)) {
            let limbs = next.iter_mut().zip(&sum).flat_map(|(out, sum)| {
                out.limbs_mut().zip(sum.limbs()).enumerate().map(|(i, (out, sum))| (i, out, sum))
            });
            for_each_item(limbs.collect(), |_, (i, out, sum): (usize, &mut [u64], &[u64])| {
                rlwe.ring().backend().add_assign(rlwe.modulus(i), out, sum);
            });
        }
        total = next;
    }
    Ok(rlwe.rescaling(level)?.divide(rlwe, &total.iter().collect::<Vec<_>>()))
}
