use keywright_ckks::Evaluator;
use keywright_ring::{Evaluation, Poly};

use super::products::products;
use crate::CircuitError;
use crate::linear_transform::LinearTransform;
use crate::linear_transform::rotations::hoisting::{BatchPlace, hoist, load};
use crate::linear_transform::rotations::tiers::Input;

/// `w_j` modulo `Q P` for every giant step `j`, first and second half of each. The baby steps are computed in batches
/// whose keys fit memory together, and each batch is added to the sums. The first batch includes all steps that need no
/// key.
///
/// # Errors
/// As [`StoredKey::load_some`].
pub(crate) fn baby_steps(
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
        let place = BatchPlace { first: begin == 0, last: done == count };
        products(evaluator, first, inputs, &loaded, giants, place, &mut sums);
        if place.last {
            return Ok(sums);
        }
    }
}
