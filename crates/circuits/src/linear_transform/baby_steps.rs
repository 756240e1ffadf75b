use std::sync::Arc;

use keywright_ckks::Evaluator;
use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::{Decomposed, LoadedKey, StoredKey};

use super::LinearTransform;
use super::products::{Turn, products};
use super::rotation::Rotation;
use super::tiers::Input;
use crate::CircuitError;

/// Baby steps of one tier of one input that share a decomposition.
pub(super) struct Hoisted<'a> {
    /// Index of the input, and of its tier.
    pub(super) tier: (usize, usize),
    pub(super) decomposed: Decomposed<'a>,
    /// Each with its position among the plan's baby steps.
    rotations: Vec<(usize, &'a Rotation)>,
}

/// Rotations of one [`Hoisted`] whose keys are in memory.
pub(super) struct Loaded<'h, 'a> {
    pub(super) hoisted: &'h Hoisted<'a>,
    /// For each: position among the plan's baby steps, the rotation, its key, the digit of each key row.
    pub(super) rotations: Vec<(usize, &'a Rotation, LoadedKey, Vec<usize>)>,
}

/// Decomposes every input once for each shape of key among its baby steps.
fn hoist<'a>(evaluator: &Evaluator<'_>, inputs: &'a [Input<'_>]) -> Result<Vec<Hoisted<'a>>, CircuitError> {
    let rlwe = evaluator.parameters().rlwe();
    let mut out: Vec<Hoisted<'a>> = Vec::new();
    let tiers = inputs
        .iter()
        .enumerate()
        .flat_map(|(index, input)| input.tiers.iter().enumerate().map(move |(hop, tier)| (index, hop, tier)));
    for (index, hop, tier) in tiers {
        let begin = out.len();
        for (baby, rotation) in &tier.babies {
            let plan = &rotation.found.plan;
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
fn load<'h, 'a>(hoisted: &'h [Hoisted<'a>], done: usize) -> Result<Vec<Loaded<'h, 'a>>, CircuitError> {
    let all =
        || hoisted.iter().flat_map(|group| group.rotations.iter().map(move |rotation| (group, rotation)));
    let keys = StoredKey::load_some(all().skip(done).map(|(_, (_, rotation))| &rotation.found.key))?;
    let mut out: Vec<Loaded<'h, 'a>> = Vec::new();
    for ((group, &(baby, rotation)), key) in all().skip(done).zip(keys) {
        let rows = group.decomposed.rows_of(&key, rotation.found.coalesce)?;
        if out.last().is_none_or(|last| !core::ptr::eq(last.hoisted, group)) {
            out.push(Loaded { hoisted: group, rotations: Vec::new() });
        }
        if let Some(last) = out.last_mut() {
            last.rotations.push((baby, rotation, key, rows));
        }
    }
    Ok(out)
}

/// `w_j` modulo `Q P` for every giant step `j`, first and second half of each. The baby steps are computed in batches
/// whose keys fit memory together, and each batch is added to the sums. The first batch includes all steps that need no
/// key.
///
/// # Errors
/// As [`StoredKey::load_some`].
pub(super) fn baby_steps(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    inputs: &[Input<'_>],
    giants: &[usize],
) -> Result<Vec<[Poly<Evaluation>; 2]>, CircuitError> {
    let n = evaluator.parameters().rlwe().n();
    let unspecified = || Poly::unspecified(n, first.limb_count());
    let mut sums: Vec<[Poly<Evaluation>; 2]> =
        giants.iter().map(|_| [unspecified(), unspecified()]).collect();
    let hoisted = hoist(evaluator, inputs)?;
    let count: usize = hoisted.iter().map(|group| group.rotations.len()).sum();
    let mut done = 0;
    loop {
        let loaded = load(&hoisted, done)?;
        let begin = done;
        done += loaded.iter().map(|group| group.rotations.len()).sum::<usize>();
        let turn = Turn { first: begin == 0, last: done == count };
        products(evaluator, first, inputs, &loaded, giants, turn, &mut sums);
        if turn.last {
            return Ok(sums);
        }
    }
}
