use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use keywright_ckks::Evaluator;
use keywright_ring::{Evaluation, Poly, rotation_element};
use keywright_rlwe::{KeyElement, ServedHop};

use super::BsgsPlan;
use super::rotation::{Rotation, raised_element};
use super::tiers::Tier;
use crate::CircuitError;

/// How a sum is rotated by one giant step.
pub(super) struct Giant {
    /// Whole key switches, in order.
    pub(super) hops: Vec<Rotation>,
    /// The last one, if its key divides by the transform's special primes: its result stays over them.
    pub(super) last: Option<Rotation>,
}

/// The hops that lead to an element, in order.
pub(super) fn path(mut hops: Vec<ServedHop>, element: u64) -> Vec<Rotation> {
    let (mut out, mut place) = (Vec::new(), element);
    // Parents come before their children.
    while let Some(hop) = hops.pop() {
        if hop.child == place {
            place = hop.parent;
            out.push(hop.into());
        }
    }
    out.reverse();
    out
}

/// Finds keys for rotations at one level that all remove the same primes.
pub(super) struct KeyFinder<'e, 'k> {
    pub(super) evaluator: &'e Evaluator<'k>,
    pub(super) level: usize,
    pub(super) special: &'e [usize],
    /// Rotations whose keys have other special primes.
    unfit: Vec<String>,
}

impl<'e, 'k> KeyFinder<'e, 'k> {
    pub(super) fn new(evaluator: &'e Evaluator<'k>, level: usize, special: &'e [usize]) -> Self {
        Self { evaluator, level, special, unfit: Vec::new() }
    }

    /// The tiers of baby steps: those of the transform's plan, each rotation with the cheapest fitting key, or what
    /// the routes of the keys make of them. The halves of all are those given, until [`super::tiers::Input::hop`].
    /// Rotations whose keys do not fit are noted for [`Self::finish`].
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError::MissingKey`] for the first rotation without any key,
    /// [`keywright_rlwe::RlweError::NotPlanned`].
    pub(super) fn tiers<'a>(
        &mut self,
        plan: &BsgsPlan,
        halves: &[Cow<'a, Poly<Evaluation>>; 2],
    ) -> Result<Vec<Tier<'a>>, CircuitError> {
        if self.evaluator.keys().routes().is_some() {
            return self.routed(plan, halves);
        }
        let mut tiers = Vec::with_capacity(plan.hops() + 1);
        for hop in 0..=plan.hops() {
            let base = hop * plan.tier;
            let made = match hop {
                0 => None,
                _ => self.rotations(&[plan.tier])?.pop().map(|(_, rotation)| (hop - 1, rotation)),
            };
            let steps: Vec<usize> = plan.babies_of(hop).map(|step| step % plan.tier).collect();
            let place = |step: usize| plan.babies.partition_point(|&other| other < base + step);
            let babies = self.rotations(&steps)?.into_iter().map(|(step, found)| (place(step), found));
            let baby = plan.babies.binary_search(&base).ok();
            tiers.push(Tier { made, baby, halves: halves.clone(), babies: babies.collect() });
        }
        Ok(tiers)
    }

    /// Tiers by the routes: whatever is rotated again is one, and so is what a key that does not fit makes.
    fn routed<'a>(
        &self,
        plan: &BsgsPlan,
        halves: &[Cow<'a, Poly<Evaluation>>; 2],
    ) -> Result<Vec<Tier<'a>>, CircuitError> {
        let element = |step: usize| rotation_element(self.evaluator.parameters().rlwe().log_n(), step as i64);
        let places: BTreeMap<u64, usize> =
            plan.babies.iter().enumerate().map(|(place, &step)| (element(step), place)).collect();
        let elements: Vec<u64> = places.keys().copied().collect();
        let hops = self.evaluator.keys().serve(&elements, self.level, self.special)?;
        let parents: BTreeSet<u64> = hops.iter().map(|hop| hop.parent).collect();
        let tier = |made, g: u64| Tier {
            made,
            baby: places.get(&g).copied(),
            halves: halves.clone(),
            babies: Vec::new(),
        };
        let (mut tiers, mut of) = (vec![tier(None, 1)], BTreeMap::from([(1, 0)]));
        for hop in hops {
            let (child, from) = (hop.child, of.get(&hop.parent).copied().unwrap_or(0));
            let fits = hop.found.plan.mod_down.removed == self.special;
            if parents.contains(&child) || !fits {
                of.insert(child, tiers.len());
                tiers.push(tier(Some((from, hop.into())), child));
            } else if let Some(&place) = places.get(&child) {
                tiers[from].babies.push((place, hop.into()));
            }
        }
        Ok(tiers)
    }

    /// How each giant step but 0 is made, in order. As [`Self::tiers`].
    ///
    /// # Errors
    /// As [`Self::tiers`].
    pub(super) fn giants(&mut self, steps: &[usize]) -> Result<Vec<Giant>, CircuitError> {
        if self.evaluator.keys().routes().is_none() {
            let found = self.rotations(steps)?.into_iter();
            return Ok(found.map(|(_, last)| Giant { hops: Vec::new(), last: Some(last) }).collect());
        }
        let log_n = self.evaluator.parameters().rlwe().log_n();
        let steps = steps.iter().filter(|&&step| step != 0);
        steps.map(|&step| self.giant(rotation_element(log_n, step as i64))).collect()
    }

    fn giant(&self, element: u64) -> Result<Giant, CircuitError> {
        let hops = self.evaluator.keys().serve(&[element], self.level, self.special)?;
        let mut hops: Vec<Rotation> = path(hops, element);
        let last = hops.pop_if(|last| last.found.plan.mod_down.removed == self.special);
        Ok(Giant { hops, last })
    }

    /// The cheapest fitting key of each rotation but 0, with its steps. Rotations whose keys do not fit are noted
    /// for [`Self::finish`].
    fn rotations(&mut self, steps: &[usize]) -> Result<Vec<(usize, Rotation)>, CircuitError> {
        let steps: Vec<usize> = steps.iter().copied().filter(|&steps| steps != 0).collect();
        self.find(&steps, |_, g| KeyElement::Galois(g))
    }

    /// The same for keys from an ephemeral secret of that weight; rotation 0 has a key as well.
    ///
    /// # Errors
    /// As [`Self::tiers`].
    pub(super) fn raised(
        &mut self,
        steps: &[usize],
        weight: usize,
    ) -> Result<Vec<(usize, Rotation)>, CircuitError> {
        self.find(steps, |steps, g| raised_element(steps, g, weight))
    }

    fn find(
        &mut self,
        steps: &[usize],
        element: impl Fn(usize, u64) -> KeyElement,
    ) -> Result<Vec<(usize, Rotation)>, CircuitError> {
        let (rlwe, keys) = (self.evaluator.parameters().rlwe(), self.evaluator.keys());
        let mut out = Vec::with_capacity(steps.len());
        for &steps in steps {
            let g = rotation_element(rlwe.log_n(), steps as i64);
            let element = element(steps, g);
            // Reports a rotation without any key, with its neighbours.
            keys.best(element, self.level, false)?;
            let (fit, unfit): (Vec<_>, Vec<_>) = keys
                .uses(element, self.level, false)
                .partition(|found| found.plan.mod_down.removed == self.special);
            match fit.into_iter().min_by_key(|found| found.rank) {
                Some(found) => out.push((steps, Rotation { found, automorphism: rlwe.automorphism(g)? })),
                None => {
                    let lists: Vec<String> =
                        unfit.iter().map(|found| format!("{:?}", found.plan.mod_down.removed)).collect();
                    self.unfit.push(format!("rotation by {steps} over {}", lists.join(" or ")));
                }
            }
        }
        Ok(out)
    }

    /// Refuses to go on if a rotation has keys, but none that fits.
    ///
    /// # Errors
    /// [`CircuitError::SpecialPrimes`] naming every such rotation.
    pub(super) fn finish(self) -> Result<(), CircuitError> {
        if self.unfit.is_empty() {
            return Ok(());
        }
        Err(CircuitError::SpecialPrimes {
            encoded: self.special.to_vec(),
            level: self.level,
            found: self.unfit.join(", "),
        })
    }
}
