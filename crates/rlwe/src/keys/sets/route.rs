//! Routes: how the available keys make the automorphisms of a program.
//!
//! A *group* is a ciphertext at a level with all automorphisms of it that are needed. Its *route* is a tree of hops.
//! Each hop is one key switch, from the ciphertext or from the result of an earlier hop. Hops from one parent whose
//! keys have one shape share its decomposition. Automorphisms multiply: the key of the hop from `X -> X^g` to
//! `X -> X^h` is that of `h g^-1 mod 2N`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{KeyElement, KeySpec, Parameters, RlweError};

/// One key switch of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Galois element of the input: 1 for the ciphertext itself.
    pub parent: u64,
    /// Galois element of the result.
    pub child: u64,
    /// The key of `child / parent`.
    pub spec: KeySpec,
}

/// The route of one group, in the ring of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Level of the ciphertext.
    pub level: usize,
    /// The required Galois elements.
    pub targets: BTreeSet<u64>,
    /// The hops: every parent is 1 or an earlier child; every target is a child, and every child occurs once.
    pub hops: Vec<Hop>,
}

/// The ring, level and targets of a group.
type Group = (Option<u32>, usize, BTreeSet<u64>);

/// The routes of a program, and the keys of its relinearizations by level, separately for every ring. Immutable, cheap
/// to share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRoutes {
    groups: BTreeMap<Group, Arc<[Hop]>>,
    relinearizations: BTreeMap<(Option<u32>, usize), KeySpec>,
}

impl KeyRoutes {
    /// Checks routes. Groups of one level with the same targets have one route: programs are planned with equal groups
    /// merged.
    ///
    /// # Errors
    /// [`RlweError::Route`] for hops that do not form a tree over the group's targets, a key of the wrong element or
    /// below the level, or two routes for one group.
    pub fn new(
        parameters: &Parameters,
        routes: impl IntoIterator<Item = Route>,
        relinearizations: impl IntoIterator<Item = (usize, KeySpec)>,
    ) -> Result<Self, RlweError> {
        let mut out = Self::default();
        for Route { level, targets, hops } in routes {
            let subring = hops.first().map_or(parameters.as_subring(), |hop| hop.spec.subring);
            check(parameters.ring_named(subring)?, level, &targets, &hops)?;
            let hops: Arc<[Hop]> = hops.into();
            let known = out.groups.entry((subring, level, targets)).or_insert_with(|| hops.clone());
            if *known != hops {
                return Err(RlweError::Route { level, child: 1, reason: "its group already has a route" });
            }
        }
        for (level, spec) in relinearizations {
            if spec.element != KeyElement::Relinearization || spec.level < level {
                let reason = "its relinearization key has another element, or is below the level";
                return Err(RlweError::Route { level, child: 1, reason });
            }
            out.relinearizations.insert((spec.subring, level), spec);
        }
        Ok(out)
    }

    /// The hops of a group: its own or, if it has no route of its own, those of the smallest group of the level that
    /// contains its targets, without the hops that lead to none of them.
    pub(crate) fn hops(
        &self,
        subring: Option<u32>,
        level: usize,
        targets: &BTreeSet<u64>,
    ) -> Option<Vec<Hop>> {
        if let Some(hops) = self.groups.get(&(subring, level, targets.clone())) {
            return Some(hops.to_vec());
        }
        let (_, hops) = self
            .groups
            .range((subring, level, BTreeSet::new())..)
            .take_while(|((ring, of, _), _)| (*ring, *of) == (subring, level))
            .filter(|((_, _, of), _)| targets.is_subset(of))
            .min_by_key(|((_, _, of), _)| of.len())?;
        let mut needed = targets.clone();
        for hop in hops.iter().rev() {
            if needed.contains(&hop.child) {
                needed.insert(hop.parent);
            }
        }
        Some(hops.iter().filter(|hop| needed.contains(&hop.child)).cloned().collect())
    }

    /// The key of the relinearizations at a level.
    pub(crate) fn relinearization(&self, subring: Option<u32>, level: usize) -> Option<&KeySpec> {
        self.relinearizations.get(&(subring, level))
    }

    /// Every key that something uses.
    pub fn keys(&self) -> impl Iterator<Item = &KeySpec> {
        let hops = self.groups.values().flat_map(|hops| hops.iter().map(|hop| &hop.spec));
        self.relinearizations.values().chain(hops)
    }
}

fn check(
    parameters: &Parameters,
    level: usize,
    targets: &BTreeSet<u64>,
    hops: &[Hop],
) -> Result<(), RlweError> {
    let mask = (2u64 << parameters.log_n()) - 1;
    let mut reached = BTreeSet::from([1]);
    for Hop { parent, child, spec } in hops {
        let refuse = |reason| Err(RlweError::Route { level, child: *child, reason });
        spec.validate(parameters)?;
        let KeyElement::Galois(g) = spec.element else {
            return refuse("its key is not a Galois key");
        };
        if !reached.contains(parent) {
            return refuse("its parent is not made before it");
        }
        if parent.wrapping_mul(g) & mask != *child {
            return refuse("its key has another Galois element");
        }
        if spec.level < level {
            return refuse("its key is below the level");
        }
        if !reached.insert(*child) {
            return refuse("it is made twice");
        }
    }
    match targets.iter().find(|target| !reached.contains(target) || **target == 1) {
        Some(&child) => Err(RlweError::Route { level, child, reason: "no hop makes it" }),
        None => Ok(()),
    }
}
