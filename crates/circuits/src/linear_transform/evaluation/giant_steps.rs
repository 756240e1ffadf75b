use std::borrow::Cow;

use keywright_ckks::Evaluator;
use keywright_ring::{Buffer, Evaluation, Poly};
use keywright_rlwe::{Decomposed, LoadedKey, StoredKey, for_each_item};

use super::baby_steps::baby_steps;
use super::products::{groups, transpose};
use crate::CircuitError;
use crate::linear_transform::blocks::{GIANTS, sums_together};
use crate::linear_transform::rotations::keys::Giant;
use crate::linear_transform::rotations::rotation::Rotation;
use crate::linear_transform::rotations::tiers::Input;
use crate::linear_transform::{GiantSteps, LinearTransform};

/// `sum_j rot(w_j, j)` modulo `Q P`. The rotations are those of the giant steps other than 0 in order, or that of the
/// chain: `w_0 + rot(w_1 + rot(w_2 + .., step), step)`.
pub(crate) fn giant_steps(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    inputs: &[Input<'_>],
    giants: &[usize],
    steps: &[Giant],
) -> Result<[Poly<Evaluation>; 2], CircuitError> {
    let n = evaluator.parameters().rlwe().n();
    let zero = || [Poly::zero(n, first.limb_count()), Poly::zero(n, first.limb_count())];
    let (GiantSteps::Chain { step }, [giant]) = (first.plan().giant_steps, steps) else {
        let mut sums = baby_steps(evaluator, first, inputs, giants)?;
        let mut total = if giants[0] == 0 { sums.remove(0) } else { zero() };
        for steps in steps.chunks(GIANTS) {
            let now: Vec<_> = sums.drain(..steps.len()).collect();
            add_rotated(evaluator, first, steps, &now, &mut total)?;
        }
        return Ok(total);
    };
    let mut tiers = inputs.iter().flat_map(|input| &input.tiers);
    let switched = tiers.any(|tier| !tier.babies.is_empty());
    let mut left = giants;
    let mut held: Vec<(usize, [Poly<Evaluation>; 2])> = Vec::new();
    let mut next = |position: usize| {
        if held.is_empty() && !left.is_empty() {
            let (later, now) = left.split_at(left.len() - sums_together(true, switched, left.len()));
            left = later;
            held.extend(now.iter().copied().zip(baby_steps(evaluator, first, inputs, now)?));
        }
        Ok::<_, CircuitError>(held.pop_if(|(at, _)| *at == position).map_or_else(zero, |(_, sum)| sum))
    };
    let mut position = giants.last().copied().unwrap_or(0);
    let mut total = next(position)?;
    while position > 0 {
        position -= step;
        let mut sum = next(position)?;
        add_rotated(evaluator, first, std::slice::from_ref(giant), &[total], &mut sum)?;
        total = sum;
    }
    Ok(total)
}

/// Adds each sum, rotated, to the total. Divides every second half by `P` and decomposes it; then, prime by prime,
/// switches, rotates and adds all of them while the total is in cache. Sums that take several hops are divided as a
/// whole, and multiplied by `P` before the last hop.
fn add_rotated(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    steps: &[Giant],
    sums: &[[Poly<Evaluation>; 2]],
    total: &mut [Poly<Evaluation>; 2],
) -> Result<(), CircuitError> {
    let rlwe = evaluator.parameters().rlwe();
    let direct = steps.iter().zip(sums).filter(|(giant, _)| giant.hops.is_empty() && giant.last.is_some());
    let direct: Vec<&Poly<Evaluation>> = direct.map(|(_, [_, second])| second).collect();
    let mut divided = first.lowering.divide(rlwe, &direct).into_iter();
    let mut switches: Vec<Switch<'_>> = Vec::with_capacity(steps.len());
    for (Giant { hops, last }, [first_half, second]) in steps.iter().zip(sums) {
        let (halves, lifted) = if hops.is_empty() && last.is_some() {
            (divided.by_ref().take(1).collect::<Vec<_>>(), Cow::Borrowed(first_half))
        } else {
            let mut halves = first.lowering.divide(rlwe, &[first_half, second]);
            for hop in hops {
                if let [first_half, second] = &halves[..] {
                    let switched = Rotation::switch(rlwe, &[hop], [first_half, second])?;
                    halves = switched.into_iter().flatten().collect();
                }
            }
            let lifted = first.lifted(&halves[0]);
            halves.remove(0);
            (halves, Cow::Owned(lifted))
        };
        match last {
            Some(rotation) => switches.push((rotation, halves, lifted)),
            None => add(first, total, [&lifted, &first.lifted(&halves[0])]),
        }
    }
    let mut left = &switches[..];
    while !left.is_empty() {
        let loaded = StoredKey::load_some(left.iter().map(|(rotation, ..)| &rotation.key_use.key))?;
        let (now, later) = left.split_at(loaded.len());
        add_switched(evaluator, first, now, &loaded, total)?;
        left = later;
    }
    Ok(())
}

/// The input of the last rotation: the rotation, the divided second half, and the first half over the special primes.
type Switch<'s> = (&'s Rotation, Vec<Poly<Evaluation>>, Cow<'s, Poly<Evaluation>>);

/// Adds the results of switches with some keys.
fn add_switched(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    switches: &[Switch<'_>],
    keys: &[LoadedKey],
    total: &mut [Poly<Evaluation>; 2],
) -> Result<(), CircuitError> {
    let rlwe = evaluator.parameters().rlwe();
    let ring = rlwe.ring();
    let (backend, n) = (ring.backend(), ring.n());
    let mut steps = Vec::with_capacity(switches.len());
    for ((rotation, second, first_half), key) in switches.iter().zip(keys) {
        let decomposed = Decomposed::new(rlwe, rotation.key_use.plan.clone(), &second[0])?;
        let rows = decomposed.rows_of(key, rotation.key_use.coalesce)?;
        steps.push((rotation, decomposed, key, rows, first_half));
    }
    let scratch_words = steps.iter().map(|(_, decomposed, ..)| decomposed.scratch_words()).max().unwrap_or(0);

    for_each_item(groups(transpose(total)), |_, (start, mut group_limbs)| {
        let positions = start..start + group_limbs.len();
        let mut scratch = Buffer::unspecified(scratch_words * positions.len());
        let mut work = Buffer::unspecified(3 * n);
        let (product, permuted) = work.split_at_mut(2 * n);
        let (product_b, product_a) = product.split_at_mut(n);
        for (rotation, decomposed, key, rows, first_half) in &steps {
            let raised = decomposed.mod_up(positions.clone(), &mut scratch);
            for ((position, raised), limbs) in positions.clone().zip(&raised).zip(&mut group_limbs) {
                let m = ring.modulus(first.prime(position));
                decomposed.multiply(raised, key, rows, product_b, product_a);
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

fn add(first: &LinearTransform, total: &mut [Poly<Evaluation>; 2], addend: [&Poly<Evaluation>; 2]) {
    let rlwe = first.parameters().rlwe();
    for (sum, addend) in total.iter_mut().zip(addend) {
        // A lifted polynomial is zero modulo the special primes, whose limbs are the last ones.
        let limbs = sum.limbs_mut().zip(addend.limbs()).enumerate().take(first.level() + 1);
        for (i, (sum, addend)) in limbs {
            rlwe.ring().backend().add_assign(rlwe.modulus(i), sum, addend);
        }
    }
}
