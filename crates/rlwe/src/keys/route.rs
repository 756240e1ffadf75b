//! How the automorphisms of a program are made from the keys there are.
//!
//! A *group* is a ciphertext at a level with every automorphism that is needed of it. Its *route* is a tree of hops:
//! each is one key switch, from the ciphertext or from what an earlier hop has made. Hops from one place whose keys
//! have one shape share its decomposition. Automorphisms multiply: the key of the hop from `X -> X^g` to `X -> X^h` is
//! that of `h g^-1 mod 2N`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{KeyElement, KeySpec, Parameters, RlweError};

/// One key switch of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Galois element of what is switched: 1 for the ciphertext itself.
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
    /// Galois elements that are needed of it.
    pub targets: BTreeSet<u64>,
    /// Every parent is 1 or a child before it; every target is a child, and every child once.
    pub hops: Vec<Hop>,
}

/// The ring, level and targets of a group.
type Group = (Option<u32>, usize, BTreeSet<u64>);

/// The routes of a program, and the keys of its relinearizations by level, of every ring apart. Immutable, cheap to
/// share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRoutes {
    groups: BTreeMap<Group, Arc<[Hop]>>,
    relinearizations: BTreeMap<(Option<u32>, usize), KeySpec>,
}

impl KeyRoutes {
    /// Checks routes. Groups of one level and the same targets have one route: a program is planned with equal groups
    /// merged.
    ///
    /// # Errors
    /// [`RlweError::Route`] for what is no tree of hops over the group's targets, a key of another element or below the
    /// level, or two routes for one group.
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
                return Err(RlweError::Route {
                    level,
                    child: 1,
                    reason: "its group has another route already",
                });
            }
        }
        for (level, spec) in relinearizations {
            if spec.element != KeyElement::Relinearization || spec.level < level {
                let reason = "its relinearization key is none, or below the level";
                return Err(RlweError::Route { level, child: 1, reason });
            }
            out.relinearizations.insert((spec.subring, level), spec);
        }
        Ok(out)
    }

    /// The hops of a group: its own, or, if it has no route of its own, those of the smallest group of the level that
    /// contains its targets, without those that lead to none of them.
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
    let mut made = BTreeSet::from([1]);
    for Hop { parent, child, spec } in hops {
        let refuse = |reason| Err(RlweError::Route { level, child: *child, reason });
        spec.validate(parameters)?;
        let KeyElement::Galois(g) = spec.element else {
            return refuse("its key is not that of an automorphism");
        };
        if !made.contains(parent) {
            return refuse("it comes from what is not made before");
        }
        if parent.wrapping_mul(g) & mask != *child {
            return refuse("its key does not lead there");
        }
        if spec.level < level {
            return refuse("its key is below the level");
        }
        if !made.insert(*child) {
            return refuse("it is made twice");
        }
    }
    match targets.iter().find(|target| !made.contains(target) || **target == 1) {
        Some(&child) => Err(RlweError::Route { level, child, reason: "no hop makes it" }),
        None => Ok(()),
    }
}
