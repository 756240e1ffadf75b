//! What baby steps have in common: decompositions, and rotations whose keys are in memory together.

use std::sync::Arc;

use keywright_ckks::Evaluator;
use keywright_rlwe::{Decomposed, LoadedKey, StoredKey};

use super::rotation::Rotation;
use super::tiers::Input;
use crate::CircuitError;

/// Baby steps of one tier of one input that share a decomposition.
pub(crate) struct Hoisted<'a> {
    /// Index of the input, and of its tier.
    pub(crate) tier: (usize, usize),
    pub(crate) decomposed: Decomposed<'a>,
    /// Each with its position among the plan's baby steps.
    pub(crate) rotations: Vec<(usize, &'a Rotation)>,
}

/// Rotations of one [`Hoisted`] whose keys are in memory.
pub(crate) struct LoadedRotations<'h, 'a> {
    pub(crate) hoisted: &'h Hoisted<'a>,
    /// For each: position among the plan's baby steps, the rotation, its key, the digit of each key row.
    pub(crate) rotations: Vec<(usize, &'a Rotation, LoadedKey, Vec<usize>)>,
}

/// Decomposes every input once for each shape of key among its baby steps.
pub(crate) fn hoist<'a>(
    evaluator: &Evaluator<'_>,
    inputs: &'a [Input<'_>],
) -> Result<Vec<Hoisted<'a>>, CircuitError> {
    let rlwe = evaluator.parameters().rlwe();
    let mut out: Vec<Hoisted<'a>> = Vec::new();
    let tiers = inputs
        .iter()
        .enumerate()
        .flat_map(|(index, input)| input.tiers.iter().enumerate().map(move |(hop, tier)| (index, hop, tier)));
    for (index, hop, tier) in tiers {
        let begin = out.len();
        for (baby, rotation) in &tier.babies {
            let plan = &rotation.key_use.plan;
            let group = match out[begin..].iter().position(|group| Arc::ptr_eq(group.decomposed.plan(), plan))
            {
                Some(position) => begin + position,
                None => {
                    let decomposed = Decomposed::new(rlwe, plan.clone(), &tier.halves[1])?;
                    out.push(Hoisted { tier: (index, hop), decomposed, rotations: Vec::new() });
                    out.len() - 1
                }
            };
            out[group].rotations.push((*baby, rotation));
        }
    }
    Ok(out)
}

/// The next rotations, in order, whose keys fit memory together.
pub(crate) fn load<'h, 'a>(
    hoisted: &'h [Hoisted<'a>],
    done: usize,
) -> Result<Vec<LoadedRotations<'h, 'a>>, CircuitError> {
    let all =
        || hoisted.iter().flat_map(|group| group.rotations.iter().map(move |rotation| (group, rotation)));
    let keys = StoredKey::load_some(all().skip(done).map(|(_, (_, rotation))| &rotation.key_use.key))?;
    let mut out: Vec<LoadedRotations<'h, 'a>> = Vec::new();
    for ((group, &(baby, rotation)), key) in all().skip(done).zip(keys) {
        let rows = group.decomposed.rows_of(&key, rotation.key_use.coalesce)?;
        if out.last().is_none_or(|last| !core::ptr::eq(last.hoisted, group)) {
            out.push(LoadedRotations { hoisted: group, rotations: Vec::new() });
        }
        if let Some(last) = out.last_mut() {
            last.rotations.push((baby, rotation, key, rows));
        }
    }
    Ok(out)
}

/// The place of a batch of rotations among all batches.
#[derive(Clone, Copy)]
pub(crate) struct BatchPlace {
    pub(crate) first: bool,
    pub(crate) last: bool,
}
