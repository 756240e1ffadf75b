use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use keywright_ckks::Evaluator;
use keywright_ring::backend::{self, UniformRow};
use keywright_ring::{Automorphism, Buffer, Evaluation, Poly, Ring};
use keywright_rlwe::for_each_item;

use crate::linear_transform::LinearTransform;
use crate::linear_transform::blocks::{BABY_WORDS, BLOCK, GROUP, TRANSFORMED_WORDS, row_words};
use crate::linear_transform::matrix::real::{COEFFICIENT_LIMIT, PairTransform, transform};
use crate::linear_transform::matrix::storage::{Place, Storage, mirrored, repeated};
use crate::linear_transform::rotations::hoisting::{BatchPlace, LoadedRotations};
use crate::linear_transform::rotations::tiers::Input;

/// The least.
const LEAST_BLOCK: usize = 128;

/// How often [`keywright_ring::backend::Diagonals::inner_products`] repeats words of diagonals.
const MOST_REPEATS: usize = 8;

/// Words of baby steps that all giant steps visit together, 512 KiB: they stay in the second-level cache.
const NEAR_WORDS: usize = 1 << 16;

/// The location of a baby step in memory.
#[derive(Clone, Copy)]
enum BabyPlace {
    Absent,
    /// `P` times a tier: zero modulo the special primes.
    Lifted(usize),
    /// Made by a key switch without division.
    Switched(usize),
}

/// The baby steps of all inputs that are in memory together, modulo a few primes.
struct BabySteps {
    /// For each input and each of its baby steps.
    places: Vec<Vec<BabyPlace>>,
    count: usize,
    most: usize,
    /// For each prime, both halves of each baby step, [`row_words`] apart.
    words: Buffer,
}

impl BabySteps {
    /// Words per prime.
    fn stride(&self, n: usize) -> usize {
        2 * row_words(n) * self.most
    }

    fn add(&mut self, input: usize, baby: usize, place: fn(usize) -> BabyPlace) -> usize {
        self.places[input][baby] = place(self.count);
        self.count += 1;
        self.count - 1
    }

    fn clear(&mut self) {
        self.places.iter_mut().flatten().for_each(|place| *place = BabyPlace::Absent);
        self.count = 0;
    }
}

/// Adds the contribution of some baby steps to `w_j`. The first call writes it, with the baby steps that need no key. A
/// few primes at a time, every baby step is made, used by all giant steps and dropped.
///
/// If all diagonals are real, their values are those of their lower half in reverse order in the upper half. So baby
/// steps and sums are folded until the last call: their upper half is in reverse order. Both halves are then multiplied
/// by the same words of each diagonal.
pub(crate) fn products(
    evaluator: &Evaluator<'_>,
    first: &LinearTransform,
    inputs: &[Input<'_>],
    loaded: &[LoadedRotations<'_, '_>],
    giants: &[usize],
    batch: BatchPlace,
    sums: &mut [[Poly<Evaluation>; 2]],
) {
    let ring = evaluator.parameters().rlwe().ring();
    let (backend, n, fresh) = (ring.backend(), ring.n(), batch.first);
    let folded = inputs.iter().all(|input| input.transform.is_real());
    let permutation = |automorphism| {
        if folded { Cow::Owned(Automorphism::folded(automorphism)) } else { Cow::Borrowed(automorphism) }
    };
    let permutations: Vec<Vec<Cow<'_, Automorphism>>> = loaded
        .iter()
        .map(|group| {
            group.rotations.iter().map(|(_, rotation, ..)| permutation(&*rotation.automorphism)).collect()
        })
        .collect();
    let scratch_words =
        loaded.iter().map(|group| group.hoisted.decomposed.scratch_words()).max().unwrap_or(0);
    let most = {
        let lifted = inputs.iter().flat_map(|input| &input.tiers).filter(|tier| tier.baby.is_some()).count();
        let switched: usize = loaded.iter().map(|group| group.rotations.len()).sum();
        (switched + if fresh { lifted } else { 0 }).clamp(1, (BABY_WORDS / (2 * n * GROUP)).max(1))
    };

    for_each_item(groups(transpose(sums.as_flattened_mut())), |_, (start, mut group_limbs)| {
        let positions = start..start + group_limbs.len();
        let mut scratch = Buffer::unspecified(scratch_words * positions.len());
        let mut product = Buffer::unspecified(2 * n);
        let (product_b, product_a) = product.split_at_mut(n);
        // For each position: `P` times the first half of an input.
        let mut lifted = Buffer::unspecified(n * positions.len());
        let mut babies = BabySteps {
            places: inputs
                .iter()
                .map(|input| vec![BabyPlace::Absent; input.transform.plan().babies.len()])
                .collect(),
            count: 0,
            most,
            words: Buffer::unspecified(2 * row_words(n) * most * positions.len()),
        };
        let mut fresh_sums = fresh;
        let mut flush = |babies: &mut BabySteps| {
            for (position, (limbs, words)) in
                positions.clone().zip(group_limbs.iter_mut().zip(babies.words.chunks_exact(babies.stride(n))))
            {
                let places = &babies.places;
                Products { first, inputs, places, position, words, ring, folded }
                    .add(giants, fresh_sums, limbs);
            }
            fresh_sums = false;
            babies.clear();
        };
        let tiers = inputs.iter().enumerate().flat_map(|(index, input)| {
            input.tiers.iter().enumerate().map(move |(hop, tier)| (index, input, hop, tier))
        });
        for (index, input, hop, tier) in tiers {
            let unrotated = tier.baby.filter(|_| fresh && !input.raised);
            let groups = || {
                let all = loaded.iter().zip(&permutations);
                all.filter(|(group, _)| group.hoisted.tier == (index, hop))
            };
            if unrotated.is_none() && groups().next().is_none() {
                continue;
            }
            if unrotated.is_some() && babies.count == most {
                flush(&mut babies);
            }
            let slot = unrotated.map(|baby| babies.add(index, baby, BabyPlace::Lifted));
            let stride = babies.stride(n);
            let targets = lifted.chunks_exact_mut(n).zip(babies.words.chunks_exact_mut(stride));
            for (position, (lifted, words)) in positions.clone().zip(targets) {
                if position > first.level() {
                    // P v is zero modulo the special primes, so the terms below omit it there.
                    continue;
                }
                let m = ring.modulus(first.prime(position));
                lifted.copy_from_slice(tier.halves[0].limb(position));
                backend.mul_scalar_assign(m, lifted, first.lift[position]);
                if let Some(slot) = slot {
                    let (b, a) = halves_mut(&mut words[2 * row_words(n) * slot..], n);
                    b.copy_from_slice(lifted);
                    a.copy_from_slice(tier.halves[1].limb(position));
                    backend.mul_scalar_assign(m, a, first.lift[position]);
                    if folded {
                        [b, a].into_iter().for_each(fold);
                    }
                }
            }
            for (group, permutations) in groups() {
                let decomposed = &group.hoisted.decomposed;
                let raised = decomposed.mod_up(positions.clone(), &mut scratch);
                let (mut left, mut permutations) = (&group.rotations[..], &permutations[..]);
                while !left.is_empty() {
                    if babies.count == most {
                        flush(&mut babies);
                    }
                    let begin = babies.count;
                    let count = left.len().min(most - begin);
                    let (now, later) = left.split_at(count);
                    let (permuted, others) = permutations.split_at(count);
                    now.iter().for_each(|(baby, ..)| {
                        babies.add(index, *baby, BabyPlace::Switched);
                    });
                    (left, permutations) = (later, others);
                    let targets = lifted.chunks_exact(n).zip(babies.words.chunks_exact_mut(stride));
                    for ((position, raised), (lifted, words)) in positions.clone().zip(&raised).zip(targets) {
                        let m = ring.modulus(first.prime(position));
                        let slots = words[2 * row_words(n) * begin..].chunks_exact_mut(2 * row_words(n));
                        for (((_, _, key, rows), permutation), slot) in now.iter().zip(permuted).zip(slots) {
                            decomposed.multiply(raised, key, rows, product_b, product_a);
                            if position <= first.level() {
                                backend.add_assign(m, product_b, lifted);
                            }
                            let (b, a) = halves_mut(slot, n);
                            backend.permute(permutation, product_b, b);
                            backend.permute(permutation, product_a, a);
                        }
                    }
                }
            }
        }
        flush(&mut babies);
        if folded && batch.last {
            group_limbs.iter_mut().flatten().for_each(|limb| fold(limb));
        }
    });
}

/// Both halves of a baby step.
fn halves_mut(words: &mut [u64], n: usize) -> (&mut [u64], &mut [u64]) {
    let (b, a) = words.split_at_mut(row_words(n));
    (&mut b[..n], &mut a[..n])
}

/// Reverses the order of the upper half.
fn fold(limb: &mut [u64]) {
    let half = limb.len() / 2;
    limb[half..].reverse();
}

/// The products of some baby steps with their diagonals modulo one prime.
struct Products<'p> {
    first: &'p LinearTransform,
    inputs: &'p [Input<'p>],
    places: &'p [Vec<BabyPlace>],
    position: usize,
    /// Both halves of each baby step.
    words: &'p [u64],
    ring: &'p Ring,
    /// Whether baby steps and sums are folded.
    folded: bool,
}

/// One product: a diagonal and both halves of a baby step.
struct Term<'p> {
    transform: &'p LinearTransform,
    place: &'p Place,
    /// Both halves of the baby step.
    slot: usize,
    b: &'p [u64],
    a: &'p [u64],
}

impl<'p> Term<'p> {
    /// Those that are kept.
    fn coefficients(&self) -> &'p [i64] {
        self.transform.stored.coefficients(self.place)
    }

    /// Whether one transform serves both diagonals.
    fn pairs_with(&self, other: &Self) -> bool {
        self.transform.is_real()
            && other.transform.is_real()
            && self.coefficients().len() == other.coefficients().len()
            && self.place.largest() + other.place.largest() < COEFFICIENT_LIMIT
    }
}

/// Both halves of a sum, one after the other, and whether they are written already.
struct Sum<'s, 'l> {
    limbs: &'s mut [&'l mut [u64]; 2],
    written: bool,
}

impl<'p> Products<'p> {
    /// Adds them to `w_j` for every giant step `j`, or writes them: both halves one after the other.
    fn add(&self, giants: &[usize], fresh: bool, limbs: &mut [&mut [u64]]) {
        let (encoded, kept): (Vec<_>, Vec<_>) = giants.iter().map(|&step| self.terms(step)).unzip();
        let mut sums: Vec<Sum<'_, '_>> =
            limbs.as_chunks_mut::<2>().0.iter_mut().map(|limbs| Sum { limbs, written: !fresh }).collect();
        let block = BLOCK.min(self.ring.n());
        let most = encoded.iter().chain(&kept).map(Vec::len).max().unwrap_or(0);
        let mut scratch =
            Scratch { expanded: Buffer::unspecified(most * block), added: Buffer::unspecified(2 * block) };
        self.add_encoded(&encoded, &mut sums, &mut scratch);
        self.add_coefficients(&kept, &mut sums, &mut scratch);
        for sum in sums.iter_mut().filter(|sum| !sum.written) {
            sum.limbs.iter_mut().for_each(|limb| limb.fill(0));
        }
    }

    /// The terms of a giant step, with encoded diagonals and with others.
    fn terms(&self, step: usize) -> (Vec<Term<'p>>, Vec<Term<'p>>) {
        let n = self.ring.n();
        let mut out = (Vec::new(), Vec::new());
        for (input, places) in self.inputs.iter().zip(self.places) {
            let transform = input.transform;
            let giant = transform.giants.iter().find(|giant| giant.step == step);
            for (baby, place) in giant.into_iter().flat_map(|giant| &giant.terms) {
                let slot = match places[*baby] {
                    BabyPlace::Absent => continue,
                    BabyPlace::Lifted(_) if self.position > self.first.level() => continue,
                    BabyPlace::Lifted(slot) | BabyPlace::Switched(slot) => slot,
                };
                let (b, a) = self.words[2 * row_words(n) * slot..].split_at(row_words(n));
                let (b, a) = (&b[..n], &a[..n]);
                let list = match transform.storage() {
                    Storage::Encoded => &mut out.0,
                    Storage::Coefficients => &mut out.1,
                };
                list.push(Term { transform, place, slot, b, a });
            }
        }
        out
    }

    fn add_encoded(&self, terms: &[Vec<Term<'p>>], sums: &mut [Sum<'_, '_>], scratch: &mut Scratch) {
        let mut tile: Vec<(Vec<&[u64]>, Vec<&Term<'_>>)> = Vec::with_capacity(terms.len());
        for terms in terms {
            let limb = |term: &Term<'p>| term.transform.stored.limb(term.place, self.position);
            tile.push((terms.iter().map(limb).collect(), terms.iter().collect()));
        }
        self.add_tile(&tile, sums, scratch);
    }

    /// A tile of some giant steps and some baby steps at a time: its diagonals are transformed, used and dropped. A
    /// tile of `t` diagonals reads its baby steps once, and reads and writes its sums. Traffic is least with half as
    /// many giant steps as baby steps.
    fn add_coefficients(&self, terms: &[Vec<Term<'_>>], sums: &mut [Sum<'_, '_>], scratch: &mut Scratch) {
        let words = |term: &Term<'_>| term.place.transformed_words();
        let all: usize = terms.iter().flatten().map(words).sum();
        if all == 0 {
            return;
        }
        let largest = terms.iter().flatten().map(words).max().unwrap_or(1);
        let tile = (TRANSFORMED_WORDS / largest).max(1);
        let giants = (tile / 2).isqrt().clamp(1, terms.len().max(1));
        let babies = tile / giants;
        let mut transformed = Buffer::unspecified(all.min(giants * babies * largest));
        let mut whole = Buffer::unspecified(all.min(largest));
        let (parameters, prime) = (self.first.parameters(), self.first.prime(self.position));
        let pairs = PairTransform::new(parameters, prime);
        let count = terms.iter().flatten().map(|term| term.slot + 1).max().unwrap_or(0);
        for (terms, sums) in terms.chunks(giants).zip(sums.chunks_mut(giants)) {
            for begin in (0..count).step_by(babies) {
                let mut rest = &mut transformed[..];
                let mut tile: Vec<(Vec<&[u64]>, Vec<&Term<'_>>)> = Vec::with_capacity(giants);
                for terms in terms {
                    let now = terms.iter().filter(|term| (begin..begin + babies).contains(&term.slot));
                    let mut now: Vec<&Term<'_>> = now.collect();
                    now.sort_by_key(|term| (term.transform.is_real(), term.coefficients().len()));
                    let mut limbs: Vec<&[u64]> = Vec::with_capacity(now.len());
                    while let Some(&term) = now.get(limbs.len()) {
                        let (out, after) = rest.split_at_mut(words(term));
                        rest = after;
                        let partner = now.get(limbs.len() + 1).filter(|other| term.pairs_with(other));
                        if term.transform.is_real() {
                            let largest =
                                term.place.largest() + partner.map_or(0.0, |other| other.place.largest());
                            let second = partner.map(|other| other.coefficients());
                            pairs.transform(term.coefficients(), second, largest, whole.signed_mut(), out);
                            let halves = out.chunks_exact(out.len() / 2);
                            limbs.extend(halves.take(1 + usize::from(partner.is_some())));
                        } else {
                            transform(parameters, prime, term.coefficients(), term.place.largest(), out);
                            limbs.push(out);
                        }
                    }
                    tile.push((limbs, now));
                }
                self.add_tile(&tile, sums, scratch);
            }
        }
    }

    /// Block by block, so that all giant steps find a block of the baby steps in a near cache. Diagonals of the next
    /// giant step are prefetched meanwhile.
    fn add_tile(
        &self,
        tile: &[(Vec<&[u64]>, Vec<&Term<'_>>)],
        sums: &mut [Sum<'_, '_>],
        scratch: &mut Scratch,
    ) {
        let size = self.diagonal_words();
        let rows: BTreeSet<usize> = tile.iter().flat_map(|(_, terms)| terms).map(|term| term.slot).collect();
        let near = NEAR_WORDS / (2 * self.ring.n() / size * rows.len().max(1));
        let block = (near.max(LEAST_BLOCK).ilog2()).min(BLOCK.ilog2());
        let block = (1 << block).min(size);
        for start in (0..size).step_by(block) {
            let words = start..start + block;
            for (giant, ((limbs, terms), sum)) in tile.iter().zip(&mut *sums).enumerate() {
                let (next, later) = match tile.get(giant + 1) {
                    Some(next) => (next, start),
                    None => (&tile[0], (start + block) % size),
                };
                let upcoming = Upcoming { limbs: &next.0, words: later..later + block };
                self.add_block((limbs, terms), upcoming, words.clone(), scratch, sum);
            }
        }
        sums.iter_mut().zip(tile).for_each(|(sum, (_, terms))| sum.written |= !terms.is_empty());
    }

    /// Words of a limb after which those of the diagonals repeat.
    fn diagonal_words(&self) -> usize {
        if self.folded { self.ring.n() / 2 } else { self.ring.n() }
    }

    /// Adds the products of some words of the diagonals, or writes them if the sum is not written yet.
    fn add_block(
        &self,
        (limbs, terms): (&[&[u64]], &[&Term<'_>]),
        upcoming: Upcoming<'_>,
        words: Range<usize>,
        scratch: &mut Scratch,
        sum: &mut Sum<'_, '_>,
    ) {
        if terms.is_empty() {
            return;
        }
        let (n, size) = (self.ring.n(), self.diagonal_words());
        let (backend, m) = (self.ring.backend(), self.ring.modulus(self.first.prime(self.position)));
        let room = scratch.expanded.chunks_exact_mut(words.len());
        let [out_b, out_a] = &mut *sum.limbs;
        if self.folded {
            let repeat = limbs.first().map_or(1, |limb| size / limb.len());
            let alike = repeat <= MOST_REPEATS && limbs.iter().all(|limb| limb.len() * repeat == size);
            let repeat = if alike { repeat } else { 1 };
            let cut = |words: &Range<usize>| words.start / repeat..words.end / repeat;
            let (low, high) = (words.clone(), words.start + size..words.end + size);
            let terms = limbs.iter().zip(terms).zip(room).enumerate();
            let terms: Vec<backend::Term<'_>> = terms
                .map(|(k, ((limb, term), room))| {
                    let factor =
                        if alike { &limb[cut(&words)] } else { repeated(limb, size, words.clone(), room) };
                    let next = upcoming.limbs.get(k).filter(|next| next.len() * repeat == size);
                    backend::Term {
                        factor,
                        upcoming: next.map_or(factor, |next| &next[cut(&upcoming.words)]),
                        rows: [(term.b, &low), (term.a, &low), (term.b, &high), (term.a, &high)]
                            .map(|(half, words)| &half[words.clone()]),
                    }
                })
                .collect();
            let ((low_b, high_b), (low_a, high_a)) = (out_b.split_at_mut(size), out_a.split_at_mut(size));
            let out = [low_b, low_a, high_b, high_a].map(|out| &mut out[words.clone()]);
            backend.inner_products(m, &terms, repeat, sum.written, out);
            return;
        }
        let diagonals = limbs.iter().zip(terms).zip(room).map(|((limb, term), room)| {
            if term.transform.is_real() {
                mirrored(limb, n, words.clone(), room)
            } else {
                repeated(limb, size, words.clone(), room)
            }
        });
        let diagonals: Vec<&[u64]> = diagonals.collect();
        let b: Vec<&[u64]> = terms.iter().map(|term| &term.b[words.clone()]).collect();
        let a: Vec<UniformRow<'_>> =
            terms.iter().map(|term| UniformRow::Stored(&term.a[words.clone()])).collect();
        let (out_b, out_a) = (&mut out_b[words.clone()], &mut out_a[words.clone()]);
        if sum.written {
            let (added_b, added_a) = scratch.added.split_at_mut(words.len());
            let added_a = &mut added_a[..words.len()];
            backend.inner_product(m, &diagonals, &b, &a, added_b, added_a);
            backend.add_assign(m, out_b, added_b);
            backend.add_assign(m, out_a, added_a);
        } else {
            backend.inner_product(m, &diagonals, &b, &a, out_b, out_a);
        }
    }
}

/// The diagonals that are read next.
struct Upcoming<'u> {
    limbs: &'u [&'u [u64]],
    words: Range<usize>,
}

/// Memory of [`Products::add_block`].
struct Scratch {
    expanded: Buffer,
    added: Buffer,
}

/// Runs of at most [`GROUP`] items, equally many per thread, each with the index of its first.
pub(crate) fn groups<T>(items: Vec<T>) -> Vec<(usize, Vec<T>)> {
    let (count, threads) = (items.len(), keywright_rlwe::threads());
    let runs = count.min(threads * count.div_ceil(threads * GROUP));
    let mut items = items.into_iter();
    let bounds = (0..runs).map(|run| (run * count / runs, (run + 1) * count / runs));
    bounds.map(|(first, end)| (first, items.by_ref().take(end - first).collect())).collect()
}

/// Limb `i` of every polynomial, for each `i`: the output of a task that owns one prime.
pub(crate) fn transpose(polys: &mut [Poly<Evaluation>]) -> Vec<Vec<&mut [u64]>> {
    let count = polys.first().map_or(0, Poly::limb_count);
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    (0..count).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect()
}
