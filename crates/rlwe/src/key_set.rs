use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{KeyElement, Parameters, RlweError, SwitchPlan, SwitchingKey};

/// A way to use one key at one level.
#[derive(Debug, Clone)]
pub struct KeyUse {
    /// The key.
    pub key: Arc<SwitchingKey>,
    /// Key rows per digit; 1 is the key's own digits.
    pub coalesce: usize,
    /// The arithmetic of it.
    pub plan: Arc<SwitchPlan>,
}

impl KeyUse {
    /// What orders the ways to switch: an estimate of its time, in units of one conversion row of one target prime.
    ///
    /// A transform counts 8 of them and the product of a digit with one key row 5: rounded from a profile of rotations at
    /// `N = 2^16` on AVX-512, where both meet limbs in a far cache. Only the order matters.
    pub fn cost(&self) -> usize {
        let plan = &self.plan;
        let rows = self.key.digits().iter().filter(|row| row.start <= plan.level).count();
        8 * plan.transforms() + plan.conversions() + 5 * rows * plan.target_count()
    }
}

/// The switching keys a server holds: any number per element.
#[derive(Debug, Clone)]
pub struct EvaluationKeys {
    parameters: Parameters,
    keys: BTreeMap<KeyElement, Vec<Arc<SwitchingKey>>>,
    coalescing: bool,
}

/// How many nearest keys an error lists.
const NEAREST: usize = 4;

impl EvaluationKeys {
    /// An empty set.
    pub fn new(parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone(), keys: BTreeMap::new(), coalescing: true }
    }

    /// The same keys, each used with its own digits at every level: a measure of what coalescing does.
    #[must_use]
    pub fn without_coalescing(self) -> Self {
        Self { coalescing: false, ..self }
    }

    /// The parameters of its keys.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Adds a key.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`]; [`RlweError::EphemeralRepeated`] for a second key to or from an ephemeral secret of one weight.
    pub fn insert(&mut self, key: impl Into<Arc<SwitchingKey>>) -> Result<(), RlweError> {
        let key = key.into();
        self.parameters.require_same(key.parameters(), "the key set", "the key")?;
        let element = key.spec().element;
        let keys = self.keys.entry(element).or_default();
        if element.ephemeral_weight().is_some() && !keys.is_empty() {
            return Err(RlweError::EphemeralRepeated(element));
        }
        keys.push(key);
        Ok(())
    }

    /// All keys, by element.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SwitchingKey>> {
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

    /// Bytes of all keys.
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
        self.keys.get(&element).into_iter().flatten().filter(move |key| key.spec().level >= level).flat_map(
            move |key| {
                let rows = key.digits().iter().filter(|row| row.start <= level).count();
                let most = if self.coalescing { rows } else { rows.min(1) };
                (1..=most).filter_map(move |coalesce| {
                    let plan = self.parameters.switch_plan(key.spec(), level, coalesce, rescale).ok()?;
                    Some(KeyUse { key: key.clone(), coalesce, plan })
                })
            },
        )
    }

    /// The cheapest way to switch `element` at `level`: the one of [`Self::uses`] with the least [`KeyUse::cost`].
    ///
    /// # Errors
    /// [`RlweError::MissingKey`] naming element, rotation and level, and the nearest keys there are.
    pub fn best(&self, element: KeyElement, level: usize, rescale: bool) -> Result<KeyUse, RlweError> {
        self.uses(element, level, rescale)
            .min_by_key(KeyUse::cost)
            .ok_or_else(|| self.missing(element, level))
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
