//! Decides which keys are in memory: the one needed furthest in the future is evicted first.
//!
//! A program is a cycle of *steps*. The keys of a step are in use together, in any order; a step whose keys do not fit
//! together is split into several ([`share`]). For keys of one size, evicting the key whose next use is last makes the
//! fewest possible loads (Belady, *A study of replacement algorithms*, 1966). Loads ahead of time follow Cao, Felten,
//! Karlin and Li (*A study of integrated prefetching and caching strategies*, 1995): always the first missing key, and
//! never by evicting a key that is needed before it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How many of the first keys of an operation are in memory together: all if they fit, otherwise those of half the
/// budget, so that the next ones can be loaded while these are in use; at least one.
pub(super) fn share(sizes: impl Iterator<Item = usize> + Clone, budget: usize) -> usize {
    let most = if sizes.clone().sum::<usize>() <= budget { budget } else { budget / 2 };
    let mut used = 0;
    let fitting = sizes.take_while(|size| {
        used += size;
        used <= most
    });
    fitting.count().max(1)
}

/// The times at which keys are needed, and the keys in memory.
#[derive(Debug)]
pub(super) struct Residency {
    /// Keys of each step, each once; no two neighbours are equal.
    steps: Vec<Vec<usize>>,
    /// Steps that need a key, ascending.
    needed: BTreeMap<usize, Vec<usize>>,
    /// The current step of the program.
    position: usize,
    /// Bytes of every key.
    sizes: Vec<usize>,
    resident: BTreeSet<usize>,
    /// Bytes of the resident keys.
    used: usize,
    budget: usize,
}

/// The reason why a key does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// Keys in use, together with this key, take this many bytes.
    InUse(usize),
    /// Only keys that are needed earlier could be evicted.
    Sooner,
}

impl Residency {
    /// Args: `sizes` of the keys; the keys of each step of the program; `held` bytes that always count as used.
    pub(super) fn new(sizes: Vec<usize>, program: &[Vec<usize>], held: usize, budget: usize) -> Self {
        let mut steps: Vec<Vec<usize>> = Vec::with_capacity(program.len());
        for step in program {
            let mut seen = BTreeSet::new();
            let keys: Vec<usize> =
                step.iter().copied().filter(|&key| key < sizes.len() && seen.insert(key)).collect();
            let mut left = &keys[..];
            while !left.is_empty() {
                let (now, later) =
                    left.split_at(share(left.iter().map(|&key| sizes[key]), budget - held.min(budget)));
                if steps.last().is_none_or(|last| last != now) {
                    steps.push(now.to_vec());
                }
                left = later;
            }
        }
        let mut needed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, step) in steps.iter().enumerate() {
            step.iter().for_each(|&key| needed.entry(key).or_default().push(index));
        }
        Self { steps, needed, position: 0, sizes, resident: BTreeSet::new(), used: held, budget }
    }

    pub(super) fn size(&self, key: usize) -> usize {
        self.sizes[key]
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn is_resident(&self, key: usize) -> bool {
        self.resident.contains(&key)
    }

    /// Steps until a key is needed, counted from the current one: the program starts again at its end. Keys in no step
    /// are needed last.
    pub(super) fn distance(&self, key: usize) -> usize {
        let Some(steps) = self.needed.get(&key) else { return usize::MAX };
        match steps.get(steps.partition_point(|&step| step < self.position)) {
            Some(next) => next - self.position,
            None => self.steps.len() - self.position + steps[0],
        }
    }

    /// Records the use of a key: the program is at the next step that needs it.
    pub(super) fn advance(&mut self, key: usize) {
        let distance = self.distance(key);
        if distance < usize::MAX {
            self.position = (self.position + distance) % self.steps.len();
        }
    }

    /// Makes room for a key and counts it as resident; returns the keys to evict. With `ahead`, a key is evicted only
    /// for one that is needed earlier. Changes nothing if there is no room.
    pub(super) fn admit(
        &mut self,
        key: usize,
        in_use: impl Fn(usize) -> bool,
        ahead: bool,
    ) -> Result<Vec<usize>, NoRoom> {
        let mut candidates: Vec<usize> = self.resident.iter().copied().filter(|&key| !in_use(key)).collect();
        candidates.sort_by_key(|&key| (self.distance(key), key));
        let (mut leaving, mut used) = (Vec::new(), self.used + self.sizes[key]);
        while used > self.budget {
            let Some(last) = candidates.pop() else { return Err(NoRoom::InUse(used)) };
            if ahead && self.distance(last) <= self.distance(key) {
                return Err(NoRoom::Sooner);
            }
            used -= self.sizes[last];
            leaving.push(last);
        }
        leaving.iter().for_each(|key| {
            self.resident.remove(key);
        });
        self.resident.insert(key);
        self.used = used;
        Ok(leaving)
    }

    /// Removes a key that could not be read.
    pub(super) fn withdraw(&mut self, key: usize) {
        if self.resident.remove(&key) {
            self.used -= self.sizes[key];
        }
    }

    /// The first missing key from the current step on, of those that are not `hopeless`.
    pub(super) fn missing(&self, hopeless: impl Fn(usize) -> bool) -> Option<usize> {
        let (before, from) = self.steps.split_at(self.position.min(self.steps.len()));
        let mut keys = from.iter().chain(before).flatten().copied();
        keys.find(|&key| !self.is_resident(key) && !hopeless(key))
    }

    /// Bytes in memory if all keys that are not held were evicted.
    pub(super) fn held_bytes(&self, held: impl Fn(usize) -> bool) -> usize {
        let leaving: usize =
            self.resident.iter().copied().filter(|&key| !held(key)).map(|key| self.sizes[key]).sum();
        self.used - leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// Loads of one pass over a program, in which each step holds its keys together.
    fn loads(program: &[Vec<usize>], keys: usize, budget: usize) -> usize {
        let mut residency = Residency::new(vec![1; keys], program, 0, budget);
        let mut count = 0;
        for step in program {
            for &key in step {
                residency.advance(key);
                if !residency.is_resident(key) {
                    residency.admit(key, |other| step.contains(&other), false).unwrap();
                    count += 1;
                }
            }
        }
        assert!(residency.used() <= budget);
        count
    }

    /// The fewest loads over all choices of evictions.
    fn fewest(program: &[Vec<usize>], resident: &BTreeSet<usize>, budget: usize) -> usize {
        let Some((step, rest)) = program.split_first() else { return 0 };
        let needed: BTreeSet<usize> = step.iter().copied().collect();
        let missing = needed.difference(resident).count();
        let others: Vec<usize> = resident.difference(&needed).copied().collect();
        let room = budget - needed.len();
        (0..1usize << others.len())
            .filter(|kept| kept.count_ones() as usize <= room)
            .map(|kept| {
                let kept = others.iter().enumerate().filter(|(i, _)| kept >> i & 1 == 1).map(|(_, &key)| key);
                fewest(rest, &needed.iter().copied().chain(kept).collect(), budget)
            })
            .min()
            .unwrap_or(0)
            + missing
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn no_order_of_eviction_makes_fewer_loads(
            program in proptest::collection::vec(proptest::collection::btree_set(0usize..5, 1..=2), 1..9),
            budget in 2usize..=4,
        ) {
            let program: Vec<Vec<usize>> = program.into_iter().map(|step| step.into_iter().collect()).collect();
            prop_assert_eq!(loads(&program, 5, budget), fewest(&program, &BTreeSet::new(), budget));
        }
    }

    #[test]
    fn a_step_that_does_not_fit_is_cut() {
        let sizes = [4, 4, 4, 4, 20];
        assert_eq!(share(sizes[..4].iter().copied(), 16), 4);
        assert_eq!(share(sizes[..4].iter().copied(), 15), 1);
        assert_eq!(share(sizes[..4].iter().copied(), 8), 1);
        assert_eq!(share(sizes.iter().copied(), 30), 3);
        assert_eq!(share(sizes[4..].iter().copied(), 20), 1);
        // All fit, or two at a time in half the budget.
        let cut = Residency::new(vec![4; 6], &[vec![3, 1, 3, 2, 0, 5], vec![1]], 0, 16);
        assert_eq!(cut.steps, [vec![3, 1], vec![2, 0, 5], vec![1]]);
    }

    #[test]
    fn the_program_starts_again_at_its_end() {
        let mut residency = Residency::new(vec![10, 20, 30, 5], &[vec![0], vec![1, 2], vec![0]], 0, 60);
        assert_eq!([0, 1, 2, 3].map(|key| residency.distance(key)), [0, 1, 1, usize::MAX]);
        residency.advance(2);
        assert_eq!([0, 1, 2].map(|key| residency.distance(key)), [1, 0, 0]);
        residency.advance(0);
        assert_eq!([0, 1, 2].map(|key| residency.distance(key)), [0, 2, 2]);
        assert_eq!(residency.missing(|_| false), Some(0));
        // A key in no step moves nothing.
        residency.advance(3);
        assert_eq!(residency.distance(0), 0);
    }

    #[test]
    fn what_is_needed_sooner_stays() {
        let mut residency = Residency::new(vec![10, 20, 30, 5], &[vec![0], vec![1], vec![2]], 0, 40);
        assert_eq!(residency.admit(0, |_| false, false), Ok(vec![]));
        assert_eq!(residency.admit(1, |_| false, true), Ok(vec![]));
        assert_eq!(residency.admit(2, |_| false, true), Err(NoRoom::Sooner));
        assert_eq!(residency.admit(2, |_| true, false), Err(NoRoom::InUse(60)));
        residency.advance(1);
        // Of the first two keys, the one whose use is over is evicted.
        assert_eq!(residency.admit(2, |key| key == 1, true), Err(NoRoom::InUse(50)));
        assert_eq!(residency.admit(2, |_| false, false), Ok(vec![0, 1]));
        assert_eq!(residency.used(), 30);
        residency.withdraw(2);
        assert_eq!((residency.used(), residency.missing(|_| false)), (0, Some(1)));
    }
}
