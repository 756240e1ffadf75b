use std::borrow::Cow;
use std::collections::BTreeSet;

use keywright_ckks::Evaluator;
use keywright_ring::Poly;
use keywright_rlwe::noise::{self, Variance};

use super::rotations::keys::KeyFinder;
use super::rotations::tiers::Tier;
use super::{BsgsPlan, GiantSteps};
use crate::CircuitError;

/// The errors that one evaluation of a sum of transforms adds, as variances of coefficients of the input at its scale.
/// They are known before any key is made and any diagonal is encoded, from [`keywright_rlwe::EvaluationKeys::outline`].
/// For the encoding of diagonals see [`super::diagonal_variance`].
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchErrors {
    /// For each input and each of its baby steps, in the order of its plan, the error of the rotated input before it is
    /// multiplied by diagonals.
    pub babies: Vec<Vec<Variance>>,
    /// The error added to the result: by all giant steps, and by the final division.
    pub end: Variance,
}

impl SwitchErrors {
    /// Predicts for transforms with these plans, at a level and over these special primes, with an evaluator's keys.
    ///
    /// # Errors
    /// [`CircuitError::Empty`] without plans, and as [`super::evaluate`] for keys that are missing.
    pub fn new(
        evaluator: &Evaluator<'_>,
        plans: &[BsgsPlan],
        level: usize,
        special: &[usize],
    ) -> Result<Self, CircuitError> {
        let Some(first) = plans.first() else { return Err(CircuitError::Empty("the list of inputs")) };
        let rlwe = evaluator.parameters().rlwe();
        rlwe.require_level(level)?;
        let finder = KeyFinder { evaluator, level, special };
        let nothing = || Cow::Owned(Poly::unspecified(rlwe.n(), 0));
        let mut inputs = Vec::with_capacity(plans.len());
        for plan in plans {
            inputs.push(finder.tiers(plan, &[nothing(), nothing()])?);
        }
        let giants: BTreeSet<usize> = plans.iter().flat_map(|plan| &plan.giants).copied().collect();
        let (steps, switches) = match first.giant_steps {
            GiantSteps::Separate => (giants.into_iter().collect(), 1),
            GiantSteps::Chain { step } => (vec![step], giants.last().map_or(0, |last| last / step)),
        };
        let rotations = finder.giants(&steps)?;

        let babies =
            inputs.iter().zip(plans).map(|(tiers, plan)| of_babies(evaluator, tiers, plan)).collect();
        let division = noise::division_parts(rlwe);
        let switched = |rotation: &super::rotations::rotation::Rotation| {
            noise::key_switch_parts(rlwe, &rotation.key_use.plan, &rotation.key_use.key)
        };
        let mut before = Variance::default();
        for giant in &rotations {
            let raised = giant.last.as_ref().map_or(0.0, |last| last.raised_variance(rlwe));
            before += Variance { plain: raised, secret: 0.0 };
            // Only the second half is divided if the last hop is the only one.
            before += if giant.hops.is_empty() && giant.last.is_some() {
                Variance { plain: 0.0, secret: division.secret }
            } else {
                division
            };
            giant.hops.iter().for_each(|hop| before += switched(hop));
        }
        let q = rlwe.log2_prime(level).exp2();
        Ok(Self { babies, end: before * (switches as f64 / (q * q)) + division })
    }
}

/// The errors of every baby step of a plan: that of its tier and that of its own switch.
fn of_babies(evaluator: &Evaluator<'_>, tiers: &[Tier<'_>], plan: &BsgsPlan) -> Vec<Variance> {
    let rlwe = evaluator.parameters().rlwe();
    let mut babies = vec![Variance::default(); plan.babies.len()];
    let mut of_tier: Vec<Variance> = Vec::with_capacity(tiers.len());
    for tier in tiers {
        // A tier comes after the one that it rotates.
        let variance = tier.source.as_ref().map_or(Variance::default(), |(from, hop)| {
            of_tier[*from] + noise::key_switch_parts(rlwe, &hop.key_use.plan, &hop.key_use.key)
        });
        of_tier.push(variance);
        if let Some(baby) = tier.baby {
            babies[baby] = variance;
        }
        for (baby, rotation) in &tier.babies {
            babies[*baby] = variance + Variance { plain: rotation.raised_variance(rlwe), secret: 0.0 };
        }
    }
    babies
}
