use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use keywright_ring::Automorphism;

use crate::switch::used_rows;
use crate::{Hop, KeyElement, KeyRoutes, KeySpec, Parameters, RlweError, StoredKey, SwitchPlan};

/// A way to use one key at one level.
#[derive(Debug, Clone)]
pub struct KeyUse {
    /// The key.
    pub key: StoredKey,
    /// Key rows per digit; 1 is the key's own digits.
    pub coalesce: usize,
    /// The arithmetic of it.
    pub plan: Arc<SwitchPlan>,
    /// What orders the ways to switch: [`crate::SwitchLayout::rank`].
    pub rank: usize,
}

/// One key switch on the way to automorphisms of a ciphertext: what [`EvaluationKeys::serve`] lists.
#[derive(Debug, Clone)]
pub struct ServedHop {
    /// Galois element of what is switched: 1 for the ciphertext itself, or the child of a hop before.
    pub parent: u64,
    /// Galois element of the result.
    pub child: u64,
    /// The automorphism after the switch, from `parent` to `child`.
    pub automorphism: Arc<Automorphism>,
    /// The key.
    pub found: KeyUse,
}

/// The switching keys a server holds: any number per element, with or without routes that say how a program is to use them.
#[derive(Debug, Clone)]
pub struct EvaluationKeys {
    parameters: Parameters,
    keys: BTreeMap<KeyElement, Vec<StoredKey>>,
    coalescing: bool,
    routes: Option<Arc<KeyRoutes>>,
}

/// How many nearest keys an error lists.
const NEAREST: usize = 4;

impl EvaluationKeys {
    /// An empty set.
    pub fn new(parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone(), keys: BTreeMap::new(), coalescing: true, routes: None }
    }

    /// The same keys, each used with its own digits at every level: a measure of what coalescing does.
    #[must_use]
    pub fn without_coalescing(self) -> Self {
        Self { coalescing: false, ..self }
    }

    /// The same keys, used as a plan says: every automorphism is made by its route, every relinearization with the key of its level.
    /// Keys to and from ephemeral secrets are used as without.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`] for a key of the routes that the set lacks.
    pub fn with_routes(self, routes: Arc<KeyRoutes>) -> Result<Self, RlweError> {
        for spec in routes.keys() {
            self.exact(spec)?;
        }
        Ok(Self { routes: Some(routes), ..self })
    }

    /// The routes that it follows.
    pub fn routes(&self) -> Option<&Arc<KeyRoutes>> {
        self.routes.as_ref()
    }

    /// The parameters of its keys.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Adds a key.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`]; [`RlweError::EphemeralRepeated`] for a second key to or from an ephemeral secret of one weight.
    pub fn insert(&mut self, key: impl Into<StoredKey>) -> Result<(), RlweError> {
        let key = key.into();
        if let Some(key) = key.in_memory() {
            self.parameters.require_same(key.parameters(), "the key set", "the key")?;
        }
        let element = key.spec().element;
        let keys = self.keys.entry(element).or_default();
        if element.ephemeral_weight().is_some() && !keys.is_empty() {
            return Err(RlweError::EphemeralRepeated(element));
        }
        keys.push(key);
        Ok(())
    }

    /// All keys, by element.
    pub fn iter(&self) -> impl Iterator<Item = &StoredKey> {
        self.keys.values().flatten()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether no key is in a [`crate::KeySource`].
    pub fn all_in_memory(&self) -> bool {
        self.iter().all(|key| key.in_memory().is_some())
    }

    /// Bytes of all keys, in memory or not.
    pub fn bytes(&self) -> usize {
        self.iter().map(|key| key.bytes()).sum()
    }

    /// Every way to switch `element` at `level`: all keys of the element that reach the level, with all numbers of rows
    /// per digit that are legal.
    pub fn uses(
        &self,
        element: KeyElement,
        level: usize,
        rescale: bool,
    ) -> impl Iterator<Item = KeyUse> + '_ {
        let keys = self.keys.get(&element).into_iter().flatten();
        keys.flat_map(move |key| self.uses_of(key, level, rescale))
    }

    /// Every way to use a key at `level`: none above its own.
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

    /// The cheapest way to switch `element` at `level`: the one of [`Self::uses`] with the least [`crate::SwitchLayout::rank`]. With routes a
    /// relinearization is done with the key of its level.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`] naming element, rotation and level, and the nearest keys there are; [`RlweError::NotPlanned`] for a
    /// relinearization that the routes do not know.
    pub fn best(&self, element: KeyElement, level: usize, rescale: bool) -> Result<KeyUse, RlweError> {
        if let (Some(routes), KeyElement::Relinearization) = (&self.routes, element) {
            let Some(spec) = routes.relinearization(level) else {
                return Err(RlweError::NotPlanned { what: "the relinearization".into(), level });
            };
            let uses = self.uses_of(self.exact(spec)?, level, rescale);
            return uses.min_by_key(|found| found.rank).ok_or_else(|| self.missing(element, level));
        }
        self.uses(element, level, rescale)
            .min_by_key(|found| found.rank)
            .ok_or_else(|| self.missing(element, level))
    }

    /// The key switches that make the images of a ciphertext at `level` under `X -> X^g` for each of the elements `g`: those of its
    /// route, or one for each where there are no routes. 1 needs none and is left out. Every parent is 1 or a child before it.
    ///
    /// Keys are used in the way of least [`crate::SwitchLayout::rank`], of those that divide by the primes `removed` if a key has any.
    ///
    /// # Errors
    /// [`RlweError::MissingKey`]; [`RlweError::NotPlanned`] if the routes have none for these elements together;
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
            let found = uses.min_by_key(|found| (found.plan.mod_down.removed != removed, found.rank));
            let found = found.ok_or_else(|| self.missing(KeyElement::Galois(g), level))?;
            Ok(ServedHop { parent, child, automorphism: self.parameters.automorphism(g)?, found })
        };
        let Some(routes) = &self.routes else {
            let direct = |&g: &u64| hop(1, g, g, &mut self.uses(KeyElement::Galois(g), level, false));
            return targets.iter().map(direct).collect();
        };
        let Some(hops) = routes.hops(level, &targets) else {
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

    fn missing(&self, element: KeyElement, level: usize) -> RlweError {
        let order = 1i64 << (self.parameters.log_n() - 1);
        let steps = element.rotation_steps(self.parameters.log_n());
        let mut candidates: Vec<_> = self
            .iter()
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
        let nearest: Vec<String> = candidates
            .iter()
            .take(NEAREST)
            .map(|(_, spec)| format!("{} at level {}", self.describe(spec.element), spec.level))
            .collect();
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
