use std::sync::Arc;

use keywright_ckks::Evaluator;
use keywright_ring::backend::UniformRow;
use keywright_ring::{Buffer, Evaluation, Poly, Ring};
use keywright_rlwe::{Decomposed, LoadedKey, StoredKey, for_each_item};

use super::LinearTransform;
use super::rotation::Rotation;
use super::tiers::Input;
use crate::CircuitError;

/// How a baby step is made at a time.
#[derive(Clone, Copy)]
enum Made {
    /// Not now.
    Not,
    /// As `P` times a tier: zero modulo the special primes.
    Lifted,
    /// By a key switch that is not divided.
    Switched,
}

impl Input<'_> {
    /// The baby steps that are tiers, which need no key of their own.
    fn lifted(&self) -> Vec<Made> {
        let mut out = self.none();
        for baby in self.tiers.iter().filter(|_| !self.raised).filter_map(|tier| tier.baby) {
            out[baby] = Made::Lifted;
        }
        out
    }

    fn none(&self) -> Vec<Made> {
        vec![Made::Not; self.transform.plan().babies.len()]
    }
}

/// Baby steps of one tier of one input whose keys share a decomposition.
struct Hoisted<'a> {
    /// Index of the input, and of its tier.
    tier: (usize, usize),
    decomposed: Decomposed<'a>,
    /// Each with its position among the plan's baby steps.
    rotations: Vec<(usize, &'a Rotation)>,
}

/// Rotations of one [`Hoisted`] whose keys are in memory.
struct Loaded<'h, 'a> {
    hoisted: &'h Hoisted<'a>,
    /// For each: position among the plan's baby steps, the rotation, its key, the digit of each key row.
    rotations: Vec<(usize, &'a Rotation, LoadedKey, Vec<usize>)>,
}

/// Decomposes every input once for each kind of key among its baby steps.
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

/// The next rotations, in order, whose keys can be in memory together.
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

/// `w_j` modulo `Q P` for every giant step `j`, first and second half of each. The baby steps are those of as many keys at a time as can
/// be in memory together, each time added to what there is; the first time all that need no key are among them.
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
        products(evaluator, first, inputs, &loaded, giants, done == 0, &mut sums);
        done += loaded.iter().map(|group| group.rotations.len()).sum::<usize>();
        if done == count {
            return Ok(sums);
        }
    }
}

/// Words of a limb that all giant steps visit together: of 16 baby steps 256 KiB.
const BLOCK: usize = 1024;

/// What some baby steps add to `w_j`: the first time it is written, with the baby steps that need no key. A few primes at a time: every
/// baby step is made, used by all giant steps and forgotten.
fn products(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    inputs: &[Input<'_>],
    loaded: &[Loaded<'_, '_>],
    giants: &[usize],
    fresh: bool,
    sums: &mut [[Poly<Evaluation>; 2]],
) {
    let ring = evaluator.parameters().rlwe().ring();
    let (backend, n) = (ring.backend(), ring.n());
    // Where the baby steps of each input begin among all of them.
    let offsets: Vec<usize> = inputs
        .iter()
        .scan(0, |sum, input| Some(std::mem::replace(sum, *sum + input.transform.plan().babies.len())))
        .collect();
    let total: usize = inputs.iter().map(|input| input.transform.plan().babies.len()).sum();
    let mut made: Vec<Vec<Made>> =
        inputs.iter().map(|input| if fresh { input.lifted() } else { input.none() }).collect();
    for group in loaded {
        for (baby, ..) in &group.rotations {
            made[group.hoisted.tier.0][*baby] = Made::Switched;
        }
    }
    let scratch_words =
        loaded.iter().map(|group| group.hoisted.decomposed.scratch_words()).max().unwrap_or(0);

    for_each_item(groups(transpose(sums.as_flattened_mut())), |_, (start, group_limbs)| {
        let positions = start..start + group_limbs.len();
        let mut scratch = Buffer::unspecified(scratch_words * positions.len());
        let mut product = Buffer::unspecified(2 * n);
        let (product_b, product_a) = product.split_at_mut(n);
        // For each position: `P` times the first half of an input, and all baby steps.
        let mut lifted = Buffer::unspecified(n * positions.len());
        let mut work = Buffer::unspecified(2 * n * total * positions.len());
        let tiers = inputs.iter().enumerate().flat_map(|(index, input)| {
            input.tiers.iter().enumerate().map(move |(hop, tier)| (index, input, hop, tier))
        });
        for (index, input, hop, tier) in tiers {
            let unrotated = tier.baby.filter(|_| fresh && !input.raised);
            let groups = || loaded.iter().filter(|group| group.hoisted.tier == (index, hop));
            if unrotated.is_none() && groups().next().is_none() {
                continue;
            }
            let targets = lifted.chunks_exact_mut(n).zip(work.chunks_exact_mut(2 * n * total));
            for (position, (lifted, babies)) in positions.clone().zip(targets) {
                if position > first.level() {
                    // P v is zero modulo the special primes; the terms below leave it out there.
                    continue;
                }
                let m = ring.modulus(first.prime(position));
                lifted.copy_from_slice(tier.halves[0].limb(position));
                backend.mul_scalar_assign(m, lifted, first.lift[position]);
                if let Some(baby) = unrotated {
                    let unrotated = &mut babies[2 * n * (offsets[index] + baby)..][..2 * n];
                    unrotated[..n].copy_from_slice(lifted);
                    unrotated[n..].copy_from_slice(tier.halves[1].limb(position));
                    backend.mul_scalar_assign(m, &mut unrotated[n..], first.lift[position]);
                }
            }
            for group in groups() {
                let decomposed = &group.hoisted.decomposed;
                let raised = decomposed.mod_up(positions.clone(), &mut scratch);
                let targets = lifted.chunks_exact(n).zip(work.chunks_exact_mut(2 * n * total));
                for ((position, raised), (lifted, babies)) in positions.clone().zip(&raised).zip(targets) {
                    let m = ring.modulus(first.prime(position));
                    for (baby, rotation, key, rows) in &group.rotations {
                        decomposed.multiply(raised, key, rows, product_b, product_a);
                        if position <= first.level() {
                            backend.add_assign(m, product_b, lifted);
                        }
                        let (b, a) = babies[2 * n * (offsets[index] + baby)..][..2 * n].split_at_mut(n);
                        backend.permute(&rotation.automorphism, product_b, b);
                        backend.permute(&rotation.automorphism, product_a, a);
                    }
                }
            }
        }
        for ((position, mut limbs), babies) in
            positions.zip(group_limbs).zip(work.chunks_exact(2 * n * total))
        {
            add_products(first, inputs, &offsets, &made, giants, position, babies, ring, fresh, &mut limbs);
        }
    });
}

/// What is made of `w_j` modulo one prime, for every giant step `j`: both halves one after the other. Block by block, so that all giant
/// steps find a block of the baby steps in a near cache.
fn add_products(
    first: &LinearTransform,
    inputs: &[Input<'_>],
    offsets: &[usize],
    made: &[Vec<Made>],
    giants: &[usize],
    position: usize,
    babies: &[u64],
    ring: &Ring,
    fresh: bool,
    limbs: &mut [&mut [u64]],
) {
    let (m, n) = (ring.modulus(first.prime(position)), ring.n());
    let diagonals = inputs.iter().flat_map(|input| &input.transform.giants).map(|giant| giant.terms.len());
    let mut expanded = Buffer::unspecified(diagonals.sum::<usize>() * BLOCK.min(n));
    let mut added = Buffer::unspecified(if fresh { 0 } else { 2 * BLOCK.min(n) });
    for start in (0..n).step_by(BLOCK) {
        let words = start..(start + BLOCK).min(n);
        for (&step, out) in giants.iter().zip(limbs.as_chunks_mut::<2>().0) {
            let mut free = expanded.chunks_exact_mut(words.len());
            let (mut diagonals, mut b, mut a) = (Vec::new(), Vec::new(), Vec::new());
            for ((input, offset), made) in inputs.iter().zip(offsets).zip(made) {
                let giant = input.transform.giants.iter().find(|giant| giant.step == step);
                let terms = giant.into_iter().flat_map(|giant| &giant.terms);
                for ((baby, diagonal), scratch) in terms.zip(&mut free) {
                    match made[*baby] {
                        Made::Not => continue,
                        Made::Lifted if position > first.level() => continue,
                        Made::Lifted | Made::Switched => {}
                    }
                    let (both_b, both_a) = babies[2 * n * (offset + baby)..][..2 * n].split_at(n);
                    diagonals.push(diagonal.words(n, position, words.clone(), scratch));
                    b.push(&both_b[words.clone()]);
                    a.push(UniformRow::Stored(&both_a[words.clone()]));
                }
            }
            let [out_b, out_a] = out;
            let (out_b, out_a) = (&mut out_b[words.clone()], &mut out_a[words.clone()]);
            match (diagonals.is_empty(), fresh) {
                (true, true) => {
                    out_b.fill(0);
                    out_a.fill(0);
                }
                (true, false) => {}
                (false, true) => ring.backend().inner_product(m, &diagonals, &b, &a, out_b, out_a),
                (false, false) => {
                    let (added_b, added_a) = added.split_at_mut(words.len());
                    let added_a = &mut added_a[..words.len()];
                    ring.backend().inner_product(m, &diagonals, &b, &a, added_b, added_a);
                    ring.backend().add_assign(m, out_b, added_b);
                    ring.backend().add_assign(m, out_a, added_a);
                }
            }
        }
    }
}

/// Primes that digits are raised to together: their conversion rows, which come from a far cache, are then read once for all.
const GROUP: usize = 2;

/// Runs of [`GROUP`] items, each with the index of its first.
pub(super) fn groups<T>(items: Vec<T>) -> Vec<(usize, Vec<T>)> {
    let mut items = items.into_iter().peekable();
    let mut out: Vec<(usize, Vec<T>)> = Vec::new();
    while items.peek().is_some() {
        out.push((GROUP * out.len(), items.by_ref().take(GROUP).collect()));
    }
    out
}

/// Limb `i` of every polynomial, for each `i`: what a task that owns one prime writes to.
pub(super) fn transpose(polys: &mut [Poly<Evaluation>]) -> Vec<Vec<&mut [u64]>> {
    let count = polys.first().map_or(0, Poly::limb_count);
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    (0..count).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect()
}
