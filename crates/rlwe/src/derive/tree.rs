use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use keywright_ring::galois_inverse;

use super::batch::Batches;
use crate::{KeyElement, RlweError};

/// Most steps between the key of 1, which needs no key, and a derived key.
pub const MAX_HOPS: usize = 255;

/// The default limit of steps: each step adds to the noise of a key.
pub const DEFAULT_HOPS: usize = 64;

/// One derived key: that of `parent`, rotated with the master key of `master`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DerivationStep {
    /// Its Galois element, `parent * master` modulo `2N`.
    pub element: u64,
    /// The key from which it is derived; 1 for the trivial key.
    pub parent: u64,
    /// The master key.
    pub master: u64,
    /// Steps from the key of 1.
    pub depth: usize,
    /// Whether it was requested; otherwise it is intermediate.
    pub is_target: bool,
}

/// The tree of derivations: it contains every requested key.
///
/// A key with children costs one decomposition more than a key without. Keys that are one step from such a parent are
/// therefore attached to it first, then the children of the parent that serves the most remaining keys. Remaining keys
/// join by a shortest path. Deterministic.
#[derive(Debug, Clone)]
pub struct DerivationTree {
    log_n: u32,
    steps: BTreeMap<u64, DerivationStep>,
    children: BTreeMap<u64, Vec<u64>>,
}

/// A growing tree over the automorphisms modulo `two_n`.
struct Growth<'m> {
    log_n: u32,
    masters: &'m [u64],
    max_hops: usize,
    /// By element.
    steps: BTreeMap<u64, DerivationStep>,
    /// Elements with children.
    parents: BTreeSet<u64>,
    missing: BTreeSet<u64>,
}

impl Growth<'_> {
    fn multiply(&self, a: u64, b: u64) -> u64 {
        (a * b) & ((2 << self.log_n) - 1)
    }

    fn depth(&self, element: u64) -> Option<usize> {
        if element == 1 { Some(0) } else { self.steps.get(&element).map(|step| step.depth) }
    }

    fn add(&mut self, parent: u64, master: u64) {
        let element = self.multiply(parent, master);
        let is_target =
            self.missing.remove(&element) || self.steps.get(&element).is_some_and(|step| step.is_target);
        let depth = self.depth(parent).unwrap_or(0) + 1;
        self.parents.insert(parent);
        self.steps.insert(element, DerivationStep { element, parent, master, depth, is_target });
    }

    /// Attaches the elements that are one step from the tree.
    fn attach(&mut self) {
        let inverses: Vec<u64> = self.masters.iter().map(|&m| galois_inverse(self.log_n, m)).collect();
        loop {
            // Shallow parents first; how many elements each potential parent would serve.
            let mut paths: Vec<(usize, u64, u64)> = Vec::new();
            let mut gains: BTreeMap<u64, usize> = BTreeMap::new();
            for &element in &self.missing {
                let mut best: Option<(usize, u64, u64)> = None;
                for (&master, &inverse) in self.masters.iter().zip(&inverses) {
                    let parent = self.multiply(element, inverse);
                    let Some(depth) = self.depth(parent).filter(|&depth| depth < self.max_hops) else {
                        continue;
                    };
                    if self.parents.contains(&parent) {
                        let candidate = (depth, parent, master);
                        best = Some(best.map_or(candidate, |best| best.min(candidate)));
                    }
                    *gains.entry(parent).or_default() += 1;
                }
                paths.extend(best);
            }
            if !paths.is_empty() {
                for (_, parent, master) in paths {
                    self.add(parent, master);
                }
                continue;
            }
            let most = gains
                .into_iter()
                .max_by_key(|&(parent, gain)| (gain, core::cmp::Reverse((self.depth(parent), parent))));
            match most {
                Some((parent, _)) => self.parents.insert(parent),
                None => return,
            };
        }
    }

    /// The shortest path from one of `sources` to a missing element: the masters along it, and its start.
    fn shortest(&self, sources: impl Iterator<Item = u64>, target: Option<u64>) -> Option<(u64, Vec<u64>)> {
        const UNSEEN: u32 = u32::MAX;
        const SOURCE: u32 = u32::MAX - 1;
        let place = |element: u64| (element >> 1) as usize;
        let mut through = alloc::vec![UNSEEN; 1 << self.log_n];
        let mut queue: VecDeque<u64> = sources.collect();
        for &source in &queue {
            through[place(source)] = SOURCE;
        }
        while let Some(element) = queue.pop_front() {
            for (k, &master) in self.masters.iter().enumerate() {
                let next = self.multiply(element, master);
                if through[place(next)] != UNSEEN {
                    continue;
                }
                through[place(next)] = k as u32;
                if target.map_or_else(|| self.missing.contains(&next), |target| target == next) {
                    let (mut at, mut way) = (next, Vec::new());
                    while through[place(at)] != SOURCE {
                        let master = self.masters[through[place(at)] as usize];
                        way.push(master);
                        at = self.multiply(at, galois_inverse(self.log_n, master));
                    }
                    way.reverse();
                    return Some((at, way));
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// Joins the nearest missing element. An element that would be too deep there is joined from the key of 1.
    fn join(&mut self) -> Result<(), RlweError> {
        let refuse = |element| RlweError::Underivable {
            element: KeyElement::Galois(element),
            reason: "no product of that few automorphisms of master keys gives it",
        };
        let Some(&first) = self.missing.first() else { return Ok(()) };
        // Parents before children, shallow ones before deep ones.
        let mut sources: Vec<_> = core::iter::once(1)
            .chain(self.steps.keys().copied())
            .map(|g| (!self.parents.contains(&g), self.depth(g), g))
            .collect();
        sources.sort_unstable();
        let (start, way) =
            self.shortest(sources.into_iter().map(|(_, _, g)| g), None).ok_or_else(|| refuse(first))?;
        let end = way.iter().fold(start, |at, &master| self.multiply(at, master));
        let (start, way) = if self.depth(start).unwrap_or(0) + way.len() <= self.max_hops {
            (start, way)
        } else {
            let direct = self.shortest(core::iter::once(1), Some(end));
            direct.filter(|(_, way)| way.len() <= self.max_hops).ok_or_else(|| refuse(end))?
        };
        let mut at = start;
        for master in way {
            let next = self.multiply(at, master);
            // A path from the key of 1 may contain keys of longer paths: these move, with all their descendants.
            let depth = self.depth(at).unwrap_or(0) + 1;
            if self.depth(next).is_none_or(|known| known > depth) {
                self.add(at, master);
            }
            at = next;
        }
        Ok(())
    }
}

impl DerivationTree {
    /// The tree for `targets` in the ring of degree `2^log_n`, with at most `max_hops` steps for each.
    ///
    /// # Errors
    /// [`RlweError::Underivable`] for the identity, and for elements that the masters do not reach; [`RlweError::Ring`]
    /// for an element that is even or above `2N`.
    pub fn new(log_n: u32, masters: &[u64], targets: &[u64], max_hops: usize) -> Result<Self, RlweError> {
        let two_n = 2u64 << log_n;
        for &element in masters.iter().chain(targets) {
            if element.is_multiple_of(2) || element >= two_n {
                return Err(keywright_ring::RingError::GaloisElement { element, two_n }.into());
            }
            if element == 1 {
                let reason = "the identity needs no key";
                return Err(RlweError::Underivable { element: KeyElement::Galois(1), reason });
            }
        }
        if !(1..=MAX_HOPS).contains(&max_hops) {
            return Err(RlweError::Count { what: "hops", count: max_hops, min: 1, max: MAX_HOPS });
        }
        let masters: Vec<u64> = BTreeSet::from_iter(masters.iter().copied()).into_iter().collect();
        let mut growth = Growth {
            log_n,
            masters: &masters,
            max_hops,
            steps: BTreeMap::new(),
            parents: BTreeSet::from([1]),
            missing: targets.iter().copied().collect(),
        };
        while !growth.missing.is_empty() {
            growth.attach();
            growth.join()?;
        }
        let mut steps = growth.steps;
        // Moved keys may leave behind intermediate keys without other children.
        loop {
            let parents: BTreeSet<u64> = steps.values().map(|step| step.parent).collect();
            let before = steps.len();
            steps.retain(|element, step| step.is_target || parents.contains(element));
            if steps.len() == before {
                break;
            }
        }
        let mut children: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for step in steps.values() {
            children.entry(step.parent).or_default().push(step.element);
        }
        // Below a moved key the depths are stale.
        let mut left = alloc::vec![(1, 0)];
        while let Some((element, depth)) = left.pop() {
            if let Some(step) = steps.get_mut(&element) {
                step.depth = depth;
            }
            left.extend(children.get(&element).into_iter().flatten().map(|&child| (child, depth + 1)));
        }
        Ok(Self { log_n, steps, children })
    }

    /// All keys that are derived, by element.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &DerivationStep> {
        self.steps.values()
    }

    /// The derivation of a key.
    pub fn step(&self, element: u64) -> Option<&DerivationStep> {
        self.steps.get(&element)
    }

    /// The children of a key; 1 is the trivial key.
    pub fn children(&self, element: u64) -> &[u64] {
        self.children.get(&element).map_or(&[], Vec::as_slice)
    }

    /// Number of keys with children, except that of 1: each is decomposed.
    pub fn parents(&self) -> usize {
        self.children.keys().filter(|&&element| element != 1).count()
    }

    /// Decompositions of each row of a key while all keys of the tree are made, for keys with `rows` rows over `primes`
    /// primes of the chain: one per batch of siblings. Masters of several shapes share none, so with them there may be
    /// more.
    pub fn decompositions(&self, rows: usize, primes: usize) -> usize {
        let (batches, inner) = (self.batches(rows, primes), |child| self.children.contains_key(child));
        self.children.values().map(|children| batches.count(children.iter().map(inner))).sum()
    }

    /// The split of siblings into batches, for keys with `rows` rows over `primes` primes.
    pub(super) fn batches(&self, rows: usize, primes: usize) -> Batches {
        Batches::new(self.log_n, rows, primes)
    }

    /// Most steps of a key.
    pub fn depth(&self) -> usize {
        self.steps.values().map(|step| step.depth).max().unwrap_or(0)
    }
}
