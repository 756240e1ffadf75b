use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use keywright_ring::Automorphism;

use crate::planning::coalescing::used_rows;
use crate::{Hop, KeyElement, KeyIdentity, KeyRoutes, KeySpec, Parameters, RlweError, StoredKey, SwitchPlan};

/// One use of a key at one level.
#[derive(Debug, Clone)]
pub struct KeyUse {
    /// The key.
    pub key: StoredKey,
    /// Key rows per digit; 1 is the key's own digits.
    pub coalesce: usize,
    /// The digits and primes of the switch.
    pub plan: Arc<SwitchPlan>,
    /// The rank by which uses are ordered: [`crate::SwitchLayout::rank`].
    pub rank: usize,
}

/// One key switch of the automorphisms of a ciphertext, as listed by [`EvaluationKeys::serve`].
#[derive(Debug, Clone)]
pub struct ServedHop {
    /// Galois element of the input: 1 for the ciphertext itself, or the child of an earlier hop.
    pub parent: u64,
    /// Galois element of the result.
    pub child: u64,
    /// The automorphism after the switch, from `parent` to `child`.
    pub automorphism: Arc<Automorphism>,
    /// The key.
    pub key_use: KeyUse,
}

/// The switching keys of a server: any number per element, optionally with routes that prescribe their use in a
/// program. Keys of subrings form sets of their own within it.
#[derive(Debug, Clone)]
pub struct EvaluationKeys {
    parameters: Parameters,
    /// The identity of the keys of all its rings.
    identity: KeyIdentity,
    keys: BTreeMap<KeyElement, Vec<StoredKey>>,
    /// In the order of the parameters' subrings.
    subrings: Vec<Self>,
    coalescing: bool,
    routes: Option<Arc<KeyRoutes>>,
}

/// How many nearest keys an error lists.
const NEAREST: usize = 4;

impl EvaluationKeys {
    /// An empty set.
    pub fn new(parameters: &Parameters) -> Self {
        let (parameters, subrings) =
            (parameters.clone(), parameters.subrings().iter().map(Self::new).collect());
        Self {
            parameters,
            identity: KeyIdentity::UNKNOWN,
            keys: BTreeMap::new(),
            subrings,
            coalescing: true,
            routes: None,
        }
    }

    /// The same keys, each used with its own digits at every level, for measuring the effect of coalescing.
    #[must_use]
    pub fn without_coalescing(self) -> Self {
        let subrings = self.subrings.into_iter().map(Self::without_coalescing).collect();
        Self { coalescing: false, subrings, ..self }
    }

    /// The same keys, used as planned: the route makes every automorphism, and the key of the level every
    /// relinearization. Keys to and from ephemeral secrets are used as without routes.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`] for a key of the routes that the set lacks.
    pub fn with_routes(self, routes: Arc<KeyRoutes>) -> Result<Self, RlweError> {
        for spec in routes.keys() {
            self.ring_named(spec.subring)?.exact(spec)?;
        }
        Ok(self.routed(&routes))
    }

    fn routed(self, routes: &Arc<KeyRoutes>) -> Self {
        let subrings = self.subrings.into_iter().map(|keys| keys.routed(routes)).collect();
        Self { routes: Some(routes.clone()), subrings, ..self }
    }

    /// The keys of one of its rings, identified by its parameters.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] if it has no such ring.
    pub fn ring_like(&self, parameters: &Parameters) -> Result<&Self, RlweError> {
        core::iter::once(self)
            .chain(&self.subrings)
            .find(|keys| keys.parameters.same(parameters))
            .ok_or(RlweError::MixedParameters { left: "the key set", right: "the object" })
    }

    /// The keys of the ring that a spec names.
    pub fn ring_named(&self, subring: Option<u32>) -> Result<&Self, RlweError> {
        self.ring_like(self.parameters.ring_named(subring)?)
    }

    /// The routes that it follows.
    pub fn routes(&self) -> Option<&Arc<KeyRoutes>> {
        self.routes.as_ref()
    }

    /// The parameters of its keys.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The identity of the secret of its keys, as far as known.
    pub fn identity(&self) -> KeyIdentity {
        self.identity
    }

    /// Adds a key to those of its ring.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`]; [`RlweError::KeyMismatch`] for a key of another secret; [`RlweError::NoRing`];
    /// [`RlweError::EphemeralRepeated`] for a second key to or from an ephemeral secret of one weight.
    pub fn insert(&mut self, key: impl Into<StoredKey>) -> Result<(), RlweError> {
        let key = key.into();
        let identity = key.identity();
        self.insert_into_ring(key)?;
        self.identity = self.identity.or(identity);
        self.subrings.iter_mut().for_each(|keys| keys.identity = self.identity);
        Ok(())
    }

    fn insert_into_ring(&mut self, key: StoredKey) -> Result<(), RlweError> {
        let ring = self.parameters.ring_named(key.spec().subring)?.as_subring();
        if ring != self.parameters.as_subring()
            && let Some(keys) = self.subrings.iter_mut().find(|keys| keys.parameters.as_subring() == ring)
        {
            return keys.insert(key);
        }
        if let Some(key) = key.in_memory() {
            self.parameters.require_same(key.parameters(), "the key set", "the key")?;
        }
        self.identity.join(key.identity(), "the key set", "the key")?;
        let element = key.spec().element;
        let keys = self.keys.entry(element).or_default();
        if element.ephemeral_weight().is_some() && !keys.is_empty() {
            return Err(RlweError::EphemeralRepeated(element));
        }
        keys.push(key);
        Ok(())
    }

    /// All keys, by ring and element.
    pub fn iter(&self) -> impl Iterator<Item = &StoredKey> {
        let sets = core::iter::once(self).chain(&self.subrings);
        sets.flat_map(|keys| keys.keys.values().flatten())
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether all keys are in memory, none in a [`crate::KeySource`].
    pub fn all_in_memory(&self) -> bool {
        self.iter().all(|key| key.in_memory().is_some())
    }

    /// Bytes of all keys, in memory or not.
    pub fn bytes(&self) -> usize {
        self.iter().map(|key| key.bytes()).sum()
    }

    /// Every way to switch `element` at `level`: all keys of the element that reach the level, with all legal numbers
    /// of rows per digit.
    pub fn uses(
        &self,
        element: KeyElement,
        level: usize,
        rescale: bool,
    ) -> impl Iterator<Item = KeyUse> + '_ {
        let keys = self.keys.get(&element).into_iter().flatten();
        keys.flat_map(move |key| self.uses_of(key, level, rescale))
    }

    /// Every way to use a key at `level`; empty above the key's level.
    fn uses_of(&self, key: &StoredKey, level: usize, rescale: bool) -> impl Iterator<Item = KeyUse> {
        let rows = used_rows(key.digits(), level);
        let most = match (key.spec().level >= level, self.coalescing) {
            (false, _) => 0,
            (true, true) => rows,
            (true, false) => rows.min(1),
        };
        (1..=most).filter_map(move |coalesce| {
            let plan = self.parameters.switch_plan(key.spec(), level, coalesce, rescale).ok()?;
            let rank = plan.layout.rank(self.parameters.widths(), rows, rescale);
            Some(KeyUse { key: key.clone(), coalesce, plan, rank })
        })
    }

    /// The key of exactly this spec.
    fn exact(&self, spec: &KeySpec) -> Result<&StoredKey, RlweError> {
        let mut keys = self.keys.get(&spec.element).into_iter().flatten();
        keys.find(|key| key.spec() == spec).ok_or_else(|| self.missing(spec.element, spec.level))
    }

    /// The cheapest way to switch `element` at `level`: the one of [`Self::uses`] with the least
    /// [`crate::SwitchLayout::rank`]. With routes, a relinearization uses the key of its level.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`] with element, rotation and level, and the nearest keys; [`RlweError::NotPlanned`] for
    /// a relinearization that the routes lack.
    pub fn best(&self, element: KeyElement, level: usize, rescale: bool) -> Result<KeyUse, RlweError> {
        if let (Some(routes), KeyElement::Relinearization) = (&self.routes, element) {
            let Some(spec) = routes.relinearization(self.parameters.as_subring(), level) else {
                return Err(RlweError::NotPlanned { what: "the relinearization".into(), level });
            };
            let uses = self.uses_of(self.exact(spec)?, level, rescale);
            return uses.min_by_key(|key_use| key_use.rank).ok_or_else(|| self.missing(element, level));
        }
        self.uses(element, level, rescale)
            .min_by_key(|key_use| key_use.rank)
            .ok_or_else(|| self.missing(element, level))
    }

    /// The key switches that make the images of a ciphertext at `level` under `X -> X^g` for each element `g`: those of
    /// its route, or one each without routes. 1 needs none and is left out. Every parent is 1 or an earlier child.
    ///
    /// Each key is used in the way of least [`crate::SwitchLayout::rank`], among those that divide by the primes
    /// `removed` if any key does.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`]; [`RlweError::NotPlanned`] if the routes lack these elements as a group;
    /// [`RlweError::Ring`] for an element that is even or above `2N`.
    pub fn serve(
        &self,
        elements: &[u64],
        level: usize,
        removed: &[usize],
    ) -> Result<Vec<ServedHop>, RlweError> {
        let targets: BTreeSet<u64> = elements.iter().copied().filter(|&g| g != 1).collect();
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let hop = |parent, child, g, uses: &mut dyn Iterator<Item = KeyUse>| {
            let key_use = uses.min_by_key(|key_use| (key_use.plan.mod_down.removed != removed, key_use.rank));
            let key_use = key_use.ok_or_else(|| self.missing(KeyElement::Galois(g), level))?;
            Ok(ServedHop { parent, child, automorphism: self.parameters.automorphism(g)?, key_use })
        };
        let Some(routes) = &self.routes else {
            let direct = |&g: &u64| hop(1, g, g, &mut self.uses(KeyElement::Galois(g), level, false));
            return targets.iter().map(direct).collect();
        };
        let Some(hops) = routes.hops(self.parameters.as_subring(), level, &targets) else {
            let names: Vec<String> = targets.iter().map(|&g| self.describe(KeyElement::Galois(g))).collect();
            return Err(RlweError::NotPlanned { what: names.join(", "), level });
        };
        hops.iter()
            .map(|Hop { parent, child, spec }| {
                let KeyElement::Galois(g) = spec.element else {
                    return Err(self.missing(spec.element, level));
                };
                hop(*parent, *child, g, &mut self.uses_of(self.exact(spec)?, level, false))
            })
            .collect()
    }

    /// The uses of the keys that bring ciphertexts of the larger ring of degree `2^from` into this set's, part by part:
    /// the cheapest of all ways that have one decomposition for every part.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`] for a part without a key at the level, or without one of the others' shape;
    /// [`RlweError::NoRing`] if the other ring is not larger.
    pub fn ring_down(&self, from: u32, level: usize) -> Result<Vec<KeyUse>, RlweError> {
        let elements = || KeyElement::ring_down(from, self.parameters.log_n());
        let Some(first) = elements().next() else { return Err(self.parameters.no_ring(from)) };
        let mut ways: Vec<KeyUse> = self.uses(first, level, false).collect();
        ways.sort_by_key(|way| way.rank);
        let all = |way: &KeyUse| {
            let alike = |key_use: &KeyUse| key_use.plan.layout == way.plan.layout;
            elements().map(|element| self.uses(element, level, false).find(alike).ok_or(element)).collect()
        };
        let mut lacking = first;
        for way in &ways {
            match all(way) {
                Ok(uses) => return Ok(uses),
                Err(element) => lacking = element,
            }
        }
        Err(self.missing(lacking, level))
    }

    fn missing(&self, element: KeyElement, level: usize) -> RlweError {
        let order = 1i64 << (self.parameters.log_n() - 1);
        let steps = element.rotation_steps(self.parameters.log_n());
        let mut candidates: Vec<_> = self
            .keys
            .values()
            .flatten()
            .map(|key| {
                let distance = match (steps, key.spec().element.rotation_steps(self.parameters.log_n())) {
                    _ if key.spec().element == element => -1,
                    (Some(a), Some(b)) => {
                        let d = (a - b).rem_euclid(order);
                        d.min(order - d)
                    }
                    _ => order,
                };
                (distance, key.spec())
            })
            .collect();
        candidates.sort_by_key(|&(distance, spec)| (distance, spec.level.abs_diff(level)));
        let mut nearest = Vec::with_capacity(NEAREST);
        for (_, spec) in candidates {
            let text = format!("{} at level {}", self.describe(spec.element), spec.level);
            // Several keys may differ in nothing but their digits.
            if nearest.len() < NEAREST && !nearest.contains(&text) {
                nearest.push(text);
            }
        }
        RlweError::MissingKey {
            element,
            rotation: steps.map_or_else(|| "none".to_string(), |k| k.to_string()),
            level,
            nearest: if nearest.is_empty() { "none, the set is empty".into() } else { nearest.join(", ") },
        }
    }

    fn describe(&self, element: KeyElement) -> String {
        match (element.rotation_steps(self.parameters.log_n()), element) {
            (Some(k), _) => format!("rotation by {k}"),
            (None, KeyElement::Galois(g)) if g == (2 << self.parameters.log_n()) - 1 => "conjugation".into(),
            _ => element.to_string(),
        }
    }
}
