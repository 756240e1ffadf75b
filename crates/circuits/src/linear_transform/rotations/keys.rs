use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use keywright_ckks::Evaluator;
use keywright_ring::{Evaluation, Poly, rotation_element};
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyUse, ServedHop};

use super::rotation::{Rotation, raised_element};
use super::tiers::Tier;
use crate::CircuitError;
use crate::linear_transform::BsgsPlan;

/// The switches that rotate a sum by one giant step.
pub(crate) struct Giant {
    /// Whole key switches, in order.
    pub(crate) hops: Vec<Rotation>,
    /// The last switch, if its key divides by the transform's special primes: its result stays over them.
    pub(crate) last: Option<Rotation>,
}

/// The hops to an element, in order.
pub(crate) fn path(mut hops: Vec<ServedHop>, element: u64) -> Vec<Rotation> {
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

/// Finds keys for the rotations of a transform at one level. A key fits if its switch removes the transform's special
/// primes: the result then stays over them. A rotation whose keys do not fit is a whole key switch.
pub(crate) struct KeyFinder<'e, 'k> {
    pub(crate) evaluator: &'e Evaluator<'k>,
    pub(crate) level: usize,
    pub(crate) special: &'e [usize],
}

impl KeyFinder<'_, '_> {
    /// The tiers of baby steps: those of the transform's plan, plus one for each rotation whose keys do not fit; or
    /// those of the keys' routes. All have the given halves until [`super::tiers::Input::hop`].
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError::MissingKey`] for the first rotation without any key,
    /// [`keywright_rlwe::RlweError::NotPlanned`].
    pub(crate) fn tiers<'a>(
        &self,
        plan: &BsgsPlan,
        halves: &[Cow<'a, Poly<Evaluation>>; 2],
    ) -> Result<Vec<Tier<'a>>, CircuitError> {
        if self.evaluator.keys().routes().is_some() {
            return self.routed(plan, halves);
        }
        let tier = |source, baby, babies| Tier { source, baby, halves: halves.clone(), babies };
        let (mut tiers, mut unfit) = (Vec::with_capacity(plan.hops() + 1), Vec::new());
        for hop in 0..=plan.hops() {
            let base = hop * plan.tier;
            let source = match hop {
                0 => None,
                _ => Some((hop - 1, self.rotation(plan.tier)?)),
            };
            let mut babies = Vec::new();
            for step in plan.babies_of(hop).map(|step| step % plan.tier).filter(|&step| step != 0) {
                let place = plan.babies.partition_point(|&other| other < base + step);
                let rotation = self.rotation(step)?;
                if self.fits(&rotation) {
                    babies.push((place, rotation));
                } else {
                    unfit.push(tier(Some((hop, rotation)), Some(place), Vec::new()));
                }
            }
            tiers.push(tier(source, plan.babies.binary_search(&base).ok(), babies));
        }
        tiers.append(&mut unfit);
        Ok(tiers)
    }

    /// Tiers by the routes: each intermediate ciphertext that is rotated again, and each result of a key that does not
    /// fit.
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
        let tier = |source, g: u64| Tier {
            source,
            baby: places.get(&g).copied(),
            halves: halves.clone(),
            babies: Vec::new(),
        };
        let (mut tiers, mut of) = (vec![tier(None, 1)], BTreeMap::from([(1, 0)]));
        for hop in hops {
            let (child, from) = (hop.child, of.get(&hop.parent).copied().unwrap_or(0));
            let fits = removes(&hop.key_use, self.special);
            if parents.contains(&child) || !fits {
                of.insert(child, tiers.len());
                tiers.push(tier(Some((from, hop.into())), child));
            } else if let Some(&place) = places.get(&child) {
                tiers[from].babies.push((place, hop.into()));
            }
        }
        Ok(tiers)
    }

    /// The switches of each giant step but 0, in order. As [`Self::tiers`].
    ///
    /// # Errors
    /// As [`Self::tiers`].
    pub(crate) fn giants(&self, steps: &[usize]) -> Result<Vec<Giant>, CircuitError> {
        let log_n = self.evaluator.parameters().rlwe().log_n();
        let routed = self.evaluator.keys().routes().is_some();
        let steps = steps.iter().filter(|&&step| step != 0);
        steps
            .map(|&step| match routed {
                true => self.giant(rotation_element(log_n, step as i64)),
                false => Ok(self.split(vec![self.rotation(step)?])),
            })
            .collect()
    }

    fn giant(&self, element: u64) -> Result<Giant, CircuitError> {
        let hops = self.evaluator.keys().serve(&[element], self.level, self.special)?;
        Ok(self.split(path(hops, element)))
    }

    fn split(&self, mut hops: Vec<Rotation>) -> Giant {
        let last = hops.pop_if(|last| self.fits(last));
        Giant { hops, last }
    }

    fn fits(&self, rotation: &Rotation) -> bool {
        removes(&rotation.key_use, self.special)
    }

    /// The cheapest way to rotate by nonzero steps, among those that fit if there are any.
    fn rotation(&self, steps: usize) -> Result<Rotation, CircuitError> {
        let (rlwe, keys) = (self.evaluator.parameters().rlwe(), self.evaluator.keys());
        let g = rotation_element(rlwe.log_n(), steps as i64);
        let element = KeyElement::Galois(g);
        let fit = cheapest(keys, element, self.level, self.special);
        // Reports a rotation without any key, with its neighbours.
        let key_use = fit.map_or_else(|| keys.best(element, self.level, false), Ok)?;
        Ok(Rotation { key_use, automorphism: rlwe.automorphism(g)? })
    }

    /// The rotations by steps, including 0, with fitting keys from an ephemeral secret of that weight.
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError::MissingKey`] for the first rotation without any key;
    /// [`CircuitError::SpecialPrimes`] with every rotation whose keys do not fit.
    pub(crate) fn raised(&self, steps: &[usize], weight: usize) -> Result<Vec<Rotation>, CircuitError> {
        let (rlwe, keys) = (self.evaluator.parameters().rlwe(), self.evaluator.keys());
        let (mut out, mut unfit) = (Vec::with_capacity(steps.len()), Vec::new());
        for &steps in steps {
            let g = rotation_element(rlwe.log_n(), steps as i64);
            let element = raised_element(steps, g, weight);
            keys.best(element, self.level, false)?;
            if let Some(key_use) = cheapest(keys, element, self.level, self.special) {
                out.push(Rotation { key_use, automorphism: rlwe.automorphism(g)? });
            } else {
                let uses = keys.uses(element, self.level, false);
                let lists: Vec<String> =
                    uses.map(|key_use| format!("{:?}", key_use.plan.mod_down.removed)).collect();
                unfit.push(format!("rotation by {steps} over {}", lists.join(" or ")));
            }
        }
        if unfit.is_empty() {
            return Ok(out);
        }
        let (encoded, found) = (self.special.to_vec(), unfit.join(", "));
        Err(CircuitError::SpecialPrimes { encoded, level: self.level, found })
    }
}

fn removes(key_use: &KeyUse, special: &[usize]) -> bool {
    key_use.plan.mod_down.removed == special
}

/// The use of lowest rank of those that remove the special primes.
fn cheapest(keys: &EvaluationKeys, element: KeyElement, level: usize, special: &[usize]) -> Option<KeyUse> {
    keys.uses(element, level, false)
        .filter(|key_use| removes(key_use, special))
        .min_by_key(|key_use| key_use.rank)
}
