use std::collections::BTreeMap;

use keywright_ckks::Evaluator;
use keywright_ring::{Buffer, Evaluation, Poly};
use keywright_rlwe::{Decomposed, for_each_item};

use super::baby_steps::{groups, transpose};
use super::keys::Rotation;
use super::{GiantSteps, LinearTransform};
use crate::CircuitError;

/// `sum_j rot(w_j, j)` modulo `Q P`, the rotations being those of the giant steps other than 0 in order, or the one of the
/// chain: `w_0 + rot(w_1 + rot(w_2 + .., step), step)`.
pub(super) fn giant_steps(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    giants: &[usize],
    rotations: &[Rotation],
    mut sums: Vec<[Poly<Evaluation>; 2]>,
) -> Result<[Poly<Evaluation>; 2], CircuitError> {
    let n = evaluator.parameters().rlwe().n();
    let zero = || [Poly::zero(n, first.limb_count()), Poly::zero(n, first.limb_count())];
    let (GiantSteps::Chain { step }, [rotation]) = (first.plan().giant_steps, rotations) else {
        let mut total = if giants[0] == 0 { sums.remove(0) } else { zero() };
        add_rotated(evaluator, first, rotations, &sums, &mut total)?;
        return Ok(total);
    };
    let mut sums: BTreeMap<usize, _> = giants.iter().copied().zip(sums).collect();
    let Some((mut position, mut total)) = sums.pop_last() else { return Ok(zero()) };
    while position > 0 {
        position -= step;
        let mut next = sums.remove(&position).unwrap_or_else(zero);
        add_rotated(evaluator, first, std::slice::from_ref(rotation), &[total], &mut next)?;
        total = next;
    }
    Ok(total)
}

/// Adds each sum, rotated, to the total. Every second half is divided by `P` and decomposed; then, prime by prime, all are
/// switched, rotated and added while the total is in cache.
fn add_rotated(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    rotations: &[Rotation],
    sums: &[[Poly<Evaluation>; 2]],
    total: &mut [Poly<Evaluation>; 2],
) -> Result<(), CircuitError> {
    let Some(any) = rotations.first() else { return Ok(()) };
    let rlwe = evaluator.parameters().rlwe();
    let ring = rlwe.ring();
    let (backend, n) = (ring.backend(), ring.n());
    let seconds: Vec<&Poly<Evaluation>> = sums.iter().map(|[_, second]| second).collect();
    let divided = any.found.plan.division.divide(rlwe, &seconds);
    let mut steps = Vec::with_capacity(rotations.len());
    for ((rotation, second), [first_half, _]) in rotations.iter().zip(&divided).zip(sums) {
        let decomposed = Decomposed::new(rlwe, rotation.found.plan.clone(), second)?;
        let rows = decomposed.rows_of(&rotation.found.key, rotation.found.coalesce)?;
        steps.push((rotation, decomposed, rows, first_half));
    }
    let scratch_words = steps.iter().map(|(_, decomposed, ..)| decomposed.scratch_words()).max().unwrap_or(0);

    for_each_item(groups(transpose(total)), |_, (start, mut group_limbs)| {
        let positions = start..start + group_limbs.len();
        let mut scratch = Buffer::unspecified(scratch_words * positions.len());
        let mut work = Buffer::unspecified(3 * n);
        let (product, permuted) = work.split_at_mut(2 * n);
        let (product_b, product_a) = product.split_at_mut(n);
        for (rotation, decomposed, rows, first_half) in &steps {
            let raised = decomposed.raise(positions.clone(), &mut scratch);
            for ((position, raised), limbs) in positions.clone().zip(&raised).zip(&mut group_limbs) {
                let m = ring.modulus(first.prime(position));
                decomposed.multiply(raised, &rotation.found.key, rows, product_b, product_a);
                backend.add_assign(m, product_b, first_half.limb(position));
                for (product, sum) in [&*product_b, &*product_a].into_iter().zip(limbs) {
                    backend.permute(&rotation.automorphism, product, permuted);
                    backend.add_assign(m, sum, permuted);
                }
            }
        }
    });
    Ok(())
}
