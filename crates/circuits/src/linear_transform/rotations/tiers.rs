use std::borrow::Cow;
use std::sync::Arc;

use keywright_ckks::{Ciphertext, Evaluator};
use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::Parameters;

use super::rotation::Rotation;
use crate::CircuitError;
use crate::linear_transform::LinearTransform;

/// One ciphertext with its transform and the keys of its baby steps.
pub(crate) struct Input<'a> {
    pub(crate) transform: &'a LinearTransform,
    pub(crate) ciphertext: &'a Ciphertext,
    pub(crate) tiers: Vec<Tier<'a>>,
    /// Whether every baby step is a key switch, including 0: see [`crate::linear_transform::evaluation::raised`].
    pub(crate) raised: bool,
}

/// The baby steps that are rotations of one polynomial pair.
pub(crate) struct Tier<'a> {
    /// The earlier tier that it rotates; none for the input itself.
    pub(crate) source: Option<(usize, Rotation)>,
    /// Its own position among the plan's baby steps, if it is one of them.
    pub(crate) baby: Option<usize>,
    /// Both halves at the transform's level.
    pub(crate) halves: [Cow<'a, Poly<Evaluation>>; 2],
    /// Rotations of it, each with its position among the plan's baby steps.
    pub(crate) babies: Vec<(usize, Rotation)>,
}

impl Input<'_> {
    /// Computes the halves of every tier but the first, each with a whole key switch of another tier. Switches of one
    /// tier whose keys have one shape share its decomposition.
    pub(crate) fn hop(&mut self, evaluator: &Evaluator<'_>) -> Result<(), CircuitError> {
        let rlwe = evaluator.parameters().rlwe();
        let mut left: Vec<usize> = (1..self.tiers.len()).collect();
        while let Some(&first) = left.first() {
            let Some((from, rotation)) = &self.tiers[first].source else { break };
            let (from, plan) = (*from, rotation.key_use.plan.clone());
            let together = |&tier: &usize| {
                let source = self.tiers[tier].source.as_ref();
                source.is_some_and(|(of, other)| *of == from && Arc::ptr_eq(&other.key_use.plan, &plan))
            };
            let (group, rest): (Vec<usize>, Vec<usize>) = left.iter().partition(|tier| together(tier));
            left = rest;
            let rotations: Vec<&Rotation> =
                group.iter().filter_map(|&tier| self.tiers[tier].source.as_ref()).map(|(_, r)| r).collect();
            let [first_half, second_half] = &self.tiers[from].halves;
            let switched = Rotation::switch(rlwe, &rotations, [first_half, second_half])?;
            for (tier, halves) in group.into_iter().zip(switched) {
                self.tiers[tier].halves = halves.map(Cow::Owned);
            }
        }
        Ok(())
    }

    /// Deviation that its key switches add to the result, before the giant steps. Each of the `routed` tiers counts
    /// with the rows of all its descendants; the tiers of a plan count as the plan knows them.
    pub(crate) fn switching_deviation(&self, rlwe: &Parameters, routed: bool) -> f64 {
        let (transform, ciphertext) = (self.transform, self.ciphertext);
        let rotations = self.tiers.iter().flat_map(|tier| &tier.babies);
        let switched = rotations.map(|(_, rotation)| rotation.raised_variance(rlwe)).fold(0.0, f64::max);
        let hopped: Vec<f64> = self
            .tiers
            .iter()
            .map(|tier| tier.source.as_ref().map_or(0.0, |(_, hop)| hop.variance(rlwe)))
            .map(|variance| ciphertext.deviation_of(variance))
            .collect();
        // Rotations whose keys do not fit are tiers that the plan does not know.
        if !routed && self.tiers.len() == transform.plan().hops() + 1 {
            let [within, hops] = transform.switch_growth();
            let hop = hopped.last().copied().unwrap_or(0.0);
            return within * ciphertext.deviation_of(switched) + hops * hop;
        }
        let rotated = self.tiers.iter().flat_map(|tier| tier.babies.iter().map(|(baby, _)| *baby));
        let mut sum = transform.growth_of(rotated) * ciphertext.deviation_of(switched);
        let mut below: Vec<Vec<usize>> = self
            .tiers
            .iter()
            .map(|tier| tier.babies.iter().map(|(baby, _)| *baby).chain(tier.baby).collect())
            .collect();
        for index in (1..self.tiers.len()).rev() {
            let babies = std::mem::take(&mut below[index]);
            sum += transform.growth_of(babies.iter().copied()) * hopped[index];
            if let Some((from, _)) = self.tiers[index].source {
                below[from].extend(babies);
            }
        }
        sum
    }
}
