use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_ckks::{Ciphertext, CkksError, ErrorEstimate, Evaluator, Packing, SCALE_TOLERANCE};
use keywright_ring::backend::UniformRow;
use keywright_ring::{Buffer, Evaluation, Poly};
use keywright_rlwe::{Decomposed, RlweCiphertext, for_each_item, noise};

use super::LinearTransform;
use super::keys::{KeyFinder, Rotation};
use crate::CircuitError;

/// One ciphertext with its transform and the keys of its baby steps.
struct Input<'a> {
    transform: &'a LinearTransform,
    ciphertext: &'a Ciphertext,
    /// Both halves at the transform's level.
    halves: [Cow<'a, Poly<Evaluation>>; 2],
    babies: Vec<Rotation>,
}

/// Baby steps of one input whose keys share a decomposition.
struct Hoisted<'a> {
    /// Index of the input.
    input: usize,
    decomposed: Decomposed<'a>,
    /// For each: position among the plan's baby steps, the rotation, the digit of each key row.
    rotations: Vec<(usize, &'a Rotation, Vec<usize>)>,
}

/// `sum_t M_t v_t`: each ciphertext with its transform. The giant steps and the division at the end are those of one
/// transform. The result is one level below the transforms', at the scale of the inputs.
///
/// Ciphertexts above the level of the transforms are taken at that level. One input is a plain matrix-vector product;
/// several are a block row.
///
/// # Errors
/// Before anything is computed: [`CircuitError::Empty`], [`CircuitError::Mismatch`], [`CircuitError::SpecialPrimes`], and,
/// as [`CircuitError::Ckks`], a missing key, [`CkksError::PackingMismatch`], [`CkksError::ScaleMismatch`],
/// [`CkksError::Degree`], mixed parameters, and a ciphertext below the transforms' level.
pub fn evaluate(
    evaluator: &Evaluator<'_>,
    inputs: &[(&LinearTransform, &Ciphertext)],
) -> Result<Ciphertext, CircuitError> {
    let Some(&(first, _)) = inputs.first() else { return Err(CircuitError::Empty("the list of inputs")) };
    let mut finder = KeyFinder::new(evaluator, first.level(), first.special());
    let mut prepared = Vec::with_capacity(inputs.len());
    for &(transform, ciphertext) in inputs {
        check(evaluator, inputs[0], (transform, ciphertext))?;
        let babies = finder.rotations(&transform.plan().babies)?;
        let half = |i: usize| {
            let poly = &ciphertext.rlwe.polys[i];
            if ciphertext.level() == first.level() {
                Cow::Borrowed(poly)
            } else {
                Cow::Owned(poly.prefix(first.level() + 1))
            }
        };
        prepared.push(Input { transform, ciphertext, halves: [half(0), half(1)], babies });
    }
    let giants: BTreeSet<usize> =
        inputs.iter().flat_map(|(transform, _)| &transform.plan().giants).copied().collect();
    let giants: Vec<usize> = giants.into_iter().collect();
    let rotations = finder.rotations(&giants)?;
    finder.finish()?;

    let hoisted = hoist(evaluator, &prepared)?;
    let sums = products(evaluator, first, &prepared, &hoisted, &giants);
    drop(hoisted);
    let total = giant_steps(evaluator, first, &giants, &rotations, sums)?;
    let polys = first.division.divide(evaluator.parameters().rlwe(), &[&total[0], &total[1]]);
    let estimate = estimate(evaluator, &prepared, &rotations);
    let model = inputs[0].1;
    Ok(Ciphertext {
        parameters: evaluator.parameters().clone(),
        rlwe: RlweCiphertext { polys },
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
    parameters.require_same(&ciphertext.parameters, "the evaluator", "the ciphertext")?;
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

/// Decomposes every input once for each kind of key among its baby steps.
fn hoist<'a>(evaluator: &Evaluator<'_>, inputs: &'a [Input<'_>]) -> Result<Vec<Hoisted<'a>>, CircuitError> {
    let rlwe = evaluator.parameters().rlwe();
    let mut out: Vec<Hoisted<'a>> = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let begin = out.len();
        for rotation in &input.babies {
            let plan = &rotation.found.plan;
            let group = match out[begin..].iter().position(|group| Arc::ptr_eq(group.decomposed.plan(), plan))
            {
                Some(position) => begin + position,
                None => {
                    let decomposed = Decomposed::new(rlwe, plan.clone(), &input.halves[1])?;
                    out.push(Hoisted { input: index, decomposed, rotations: Vec::new() });
                    out.len() - 1
                }
            };
            let rows = out[group].decomposed.rows_of(&rotation.found.key, rotation.found.coalesce)?;
            let baby = input.transform.plan().babies.partition_point(|&step| step < rotation.steps);
            out[group].rotations.push((baby, rotation, rows));
        }
    }
    Ok(out)
}

/// `w_j` modulo `Q P` for every giant step `j`, first and second half of each. Prime by prime: every baby step is made,
/// used by all giant steps and forgotten.
fn products(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    inputs: &[Input<'_>],
    hoisted: &[Hoisted<'_>],
    giants: &[usize],
) -> Vec<[Poly<Evaluation>; 2]> {
    let ring = evaluator.parameters().rlwe().ring();
    let (backend, n) = (ring.backend(), ring.n());
    // Where the baby steps of each input begin among all of them.
    let offsets: Vec<usize> = inputs
        .iter()
        .scan(0, |sum, input| Some(std::mem::replace(sum, *sum + input.transform.plan().babies.len())))
        .collect();
    let total: usize = inputs.iter().map(|input| input.transform.plan().babies.len()).sum();
    let scratch_words = hoisted.iter().map(|group| group.decomposed.scratch_words()).max().unwrap_or(0);
    let unspecified = || Poly::unspecified(n, first.limb_count());
    let mut sums: Vec<[Poly<Evaluation>; 2]> =
        giants.iter().map(|_| [unspecified(), unspecified()]).collect();

    for_each_item(transpose(sums.as_flattened_mut()), |position, mut limbs| {
        let m = ring.modulus(first.prime(position));
        let of_ciphertext = position <= first.level();
        let mut scratch = Buffer::unspecified(scratch_words);
        let mut work = Buffer::unspecified(2 * n * (total + 1));
        let (product, babies) = work.split_at_mut(2 * n);
        let (product_b, product_a) = product.split_at_mut(n);
        let mut lifted = Buffer::unspecified(n);
        for (index, input) in inputs.iter().enumerate() {
            if of_ciphertext {
                lifted.copy_from_slice(input.halves[0].limb(position));
                backend.mul_scalar_assign(m, &mut lifted, first.lift[position]);
                if input.transform.plan().babies[0] == 0 {
                    // P v is zero modulo the special primes; the terms below leave it out there.
                    let unrotated = &mut babies[2 * n * offsets[index]..][..2 * n];
                    unrotated[..n].copy_from_slice(&lifted);
                    unrotated[n..].copy_from_slice(input.halves[1].limb(position));
                    backend.mul_scalar_assign(m, &mut unrotated[n..], first.lift[position]);
                }
            }
            for group in hoisted.iter().filter(|group| group.input == index) {
                let raised = group.decomposed.raise(position..position + 1, &mut scratch).remove(0);
                for (baby, rotation, rows) in &group.rotations {
                    group.decomposed.multiply(&raised, &rotation.found.key, rows, product_b, product_a);
                    if of_ciphertext {
                        backend.add_assign(m, product_b, &lifted);
                    }
                    let (b, a) = babies[2 * n * (offsets[index] + baby)..][..2 * n].split_at_mut(n);
                    backend.permute(&rotation.automorphism, product_b, b);
                    backend.permute(&rotation.automorphism, product_a, a);
                }
            }
        }
        for (&step, out) in giants.iter().zip(limbs.as_chunks_mut::<2>().0) {
            let (mut diagonals, mut b, mut a) = (Vec::new(), Vec::new(), Vec::new());
            for (input, offset) in inputs.iter().zip(&offsets) {
                let Some(giant) = input.transform.giants.iter().find(|giant| giant.step == step) else {
                    continue;
                };
                for (baby, diagonal) in &giant.terms {
                    if input.transform.plan().babies[*baby] == 0 && !of_ciphertext {
                        continue;
                    }
                    let both = &babies[2 * n * (offset + baby)..][..2 * n];
                    diagonals.push(diagonal.limb(position));
                    b.push(&both[..n]);
                    a.push(UniformRow::Stored(&both[n..]));
                }
            }
            let [out_b, out_a] = out;
            if diagonals.is_empty() {
                out_b.fill(0);
                out_a.fill(0);
            } else {
                backend.inner_product(m, &diagonals, &b, &a, out_b, out_a);
            }
        }
    });
    sums
}

/// `sum_j rot(w_j, j)` modulo `Q P`. Every second half is divided by `P` and decomposed; then, prime by prime, all giant
/// steps are switched, rotated and summed while the sum is in cache.
fn giant_steps(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    giants: &[usize],
    rotations: &[Rotation],
    mut sums: Vec<[Poly<Evaluation>; 2]>,
) -> Result<[Poly<Evaluation>; 2], CircuitError> {
    let rlwe = evaluator.parameters().rlwe();
    let ring = rlwe.ring();
    let (backend, n) = (ring.backend(), ring.n());
    let zero = || Poly::zero(n, first.limb_count());
    let mut total = if giants[0] == 0 { sums.remove(0) } else { [zero(), zero()] };
    let Some(any) = rotations.first() else { return Ok(total) };
    let seconds: Vec<&Poly<Evaluation>> = sums.iter().map(|[_, second]| second).collect();
    let divided = any.found.plan.division.divide(rlwe, &seconds);
    let mut steps = Vec::with_capacity(rotations.len());
    for ((rotation, second), [first_half, _]) in rotations.iter().zip(&divided).zip(&sums) {
        let decomposed = Decomposed::new(rlwe, rotation.found.plan.clone(), second)?;
        let rows = decomposed.rows_of(&rotation.found.key, rotation.found.coalesce)?;
        steps.push((rotation, decomposed, rows, first_half));
    }
    let scratch_words = steps.iter().map(|(_, decomposed, ..)| decomposed.scratch_words()).max().unwrap_or(0);

    for_each_item(transpose(&mut total), |position, mut limbs| {
        let m = ring.modulus(first.prime(position));
        let mut scratch = Buffer::unspecified(scratch_words);
        let mut work = Buffer::unspecified(3 * n);
        let (product, permuted) = work.split_at_mut(2 * n);
        let (product_b, product_a) = product.split_at_mut(n);
        for (rotation, decomposed, rows, first_half) in &steps {
            let raised = decomposed.raise(position..position + 1, &mut scratch).remove(0);
            decomposed.multiply(&raised, &rotation.found.key, rows, product_b, product_a);
            backend.add_assign(m, product_b, first_half.limb(position));
            for (product, sum) in [&*product_b, &*product_a].into_iter().zip(&mut limbs) {
                backend.permute(&rotation.automorphism, product, permuted);
                backend.add_assign(m, sum, permuted);
            }
        }
    });
    Ok(total)
}

/// The derivation is in the documentation of the module.
fn estimate(evaluator: &Evaluator<'_>, inputs: &[Input<'_>], giants: &[Rotation]) -> ErrorEstimate {
    let rlwe = evaluator.parameters().rlwe();
    let key_noise = |r: &Rotation| noise::key_switch_raised(rlwe, &r.found.plan, &r.found.key);
    let (model, transform) = (inputs[0].ciphertext, inputs[0].transform);
    let mut sum = ErrorEstimate { deviation: 0.0, magnitude: 0.0 };
    for Input { transform, ciphertext, babies, .. } in inputs {
        let estimate = ciphertext.estimate;
        let switched = babies.iter().map(key_noise).fold(0.0, f64::max);
        sum.deviation += transform.row_sum() * estimate.deviation
            + transform.deviation * (estimate.magnitude + estimate.deviation)
            + transform.rotated_row_sum() * ciphertext.deviation_of(switched);
        sum.magnitude += transform.row_sum() * estimate.magnitude;
    }
    let q = rlwe.modulus(transform.level()).value() as f64;
    let rounding = rlwe.secret().expected_norm2(rlwe.n()) / 12.0;
    sum.deviation += giants.iter().map(|r| model.deviation_of(key_noise(r) + rounding)).sum::<f64>() / q;
    sum.with_noise(model.deviation_of(noise::division(rlwe)))
}

/// Limb `i` of every polynomial, for each `i`: what a task that owns one prime writes to.
fn transpose(polys: &mut [Poly<Evaluation>]) -> Vec<Vec<&mut [u64]>> {
    let count = polys.first().map_or(0, Poly::limb_count);
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    (0..count).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect()
}
