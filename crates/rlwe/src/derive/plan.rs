use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

use super::batch::Batches;
use super::masters::require_galois;
use super::{DerivationStep, DerivationTree, MasterKeys, MasterParameters};
use crate::{KeyElement, KeyLayout, KeySpec, KeyUse, RlweError, noise};

/// The tree of derivations from master keys, fixed once for all keys. A key is always made by the same steps, and so
/// has the same bytes, no matter which keys are derived together.
pub struct DerivationPlan {
    pub(super) masters: MasterKeys,
    pub(super) families: Vec<KeyFamily>,
    /// The keys in the requested order, each once: the place of its family and its element.
    pub(super) keys: Vec<(usize, u64)>,
}

/// Keys of one shape, which are derived from each other and differ only in their element.
pub(super) struct KeyFamily {
    pub(super) spec: KeySpec,
    /// Primes of the digits, of the evaluation parameters.
    pub(super) digits: Vec<Range<usize>>,
    pub(super) chain_level: usize,
    pub(super) tree: DerivationTree,
    uses: BTreeMap<u64, KeyUse>,
}

impl KeyFamily {
    /// The children of a key, as far as they are needed.
    pub(super) fn children<'t>(
        &'t self,
        needed: &'t BTreeSet<u64>,
        element: u64,
    ) -> impl Iterator<Item = &'t DerivationStep> {
        let children = self.tree.children(element).iter().filter(|child| needed.contains(child));
        children.map(|&child| match self.tree.step(child) {
            Some(step) => step,
            None => unreachable!("children are steps"),
        })
    }

    pub(super) fn is_inner(&self, needed: &BTreeSet<u64>, element: u64) -> bool {
        self.children(needed, element).next().is_some()
    }

    /// A key and its children.
    pub(super) fn ancestry(&self, element: u64) -> impl Iterator<Item = u64> {
        core::iter::successors(self.tree.step(element), |step| self.tree.step(step.parent))
            .map(|step| step.element)
    }

    /// Variance that one derivation adds to the errors of a key's rows.
    pub(super) fn added_variance(&self, parameters: &MasterParameters, step: &DerivationStep) -> f64 {
        let master = self.master(step);
        noise::derivation(parameters.chain(), &master.plan, &master.key, step.parent == 1)
    }

    /// The split of the keys that are derived from one into batches.
    pub(super) fn batches(&self) -> Batches {
        self.tree.batches(self.digits.len(), self.chain_level + 1)
    }

    pub(super) fn master(&self, step: &DerivationStep) -> &KeyUse {
        match self.uses.get(&step.master) {
            Some(master) => master,
            None => unreachable!("the tree uses the masters that it was made of"),
        }
    }
}

impl DerivationPlan {
    /// Plans keys for the evaluation parameters. A repeated spec is one key. Derived keys store their uniform halves
    /// for any spec, because these have no seed.
    ///
    /// # Errors
    /// [`RlweError::NotGalois`] for a relinearization key or one of another secret; [`RlweError::Underivable`] for a
    /// key that the masters do not reach within `max_hops` steps; the errors of [`KeySpec::validate`].
    pub fn new(masters: &MasterKeys, specs: &[KeySpec], max_hops: usize) -> Result<Self, RlweError> {
        let parameters = masters.parameters();
        let evaluation = parameters.evaluation();
        let mut targets_by_shape: BTreeMap<(usize, usize, &[usize]), BTreeSet<u64>> = BTreeMap::new();
        for spec in specs {
            let element = require_galois(spec)?;
            spec.validate(evaluation)?;
            if spec.subring.is_some() {
                let reason = "it belongs to a subring, whose secret the master keys do not contain";
                return Err(RlweError::Underivable { element: spec.element, reason });
            }
            targets_by_shape.entry(shape_of(spec)).or_default().insert(element);
        }
        let mut families = Vec::with_capacity(targets_by_shape.len());
        for (&(level, alpha, special), targets) in &targets_by_shape {
            let special = special.to_vec();
            let spec = KeySpec {
                element: KeyElement::Galois(1),
                level,
                alpha,
                special,
                seeded: false,
                subring: None,
            };
            let chain_level = parameters.chain_level(&spec);
            let targets: Vec<u64> = targets.iter().copied().collect();
            let reaching = masters.elements(chain_level);
            let tree = DerivationTree::new(evaluation.log_n(), &reaching, &targets, max_hops)?;
            let used: BTreeSet<u64> = tree.steps().map(|step| step.master).collect();
            let uses = used
                .into_iter()
                .map(|g| Ok((g, masters.keys().best(KeyElement::Galois(g), chain_level, false)?)))
                .collect::<Result<_, RlweError>>()?;
            families.push(KeyFamily { digits: spec.validate(evaluation)?, spec, chain_level, tree, uses });
        }
        let (mut keys, mut known) = (Vec::with_capacity(specs.len()), BTreeSet::new());
        for spec in specs {
            let family = targets_by_shape.keys().position(|shape| *shape == shape_of(spec)).unwrap_or(0);
            let key = (family, require_galois(spec)?);
            if known.insert(key) {
                keys.push(key);
            }
        }
        Ok(Self { masters: masters.clone(), families, keys })
    }

    /// The master keys.
    pub fn masters(&self) -> &MasterKeys {
        &self.masters
    }

    /// The trees, one for each level, alpha and list of special primes.
    pub fn trees(&self) -> impl Iterator<Item = (&KeySpec, &DerivationTree)> {
        self.families.iter().map(|family| (&family.spec, &family.tree))
    }

    /// The keys in the requested order: their layouts, including their errors.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`]; none for specs that [`Self::new`] accepted.
    pub fn keys(&self) -> Result<Vec<KeyLayout>, RlweError> {
        let parameters = self.masters.parameters();
        let key = |&(family, element): &(usize, u64)| {
            let family = &self.families[family];
            let spec = KeySpec { element: KeyElement::Galois(element), ..family.spec.clone() };
            let steps = family.ancestry(element).filter_map(|element| family.tree.step(element));
            // From the key of 1 on, in the order in which derivation adds them.
            let added: Vec<f64> = steps.map(|step| family.added_variance(parameters, step)).collect();
            let error_variance = added.iter().rev().sum();
            let identity = self.masters.keys().identity();
            Ok(KeyLayout { identity, error_variance, ..KeyLayout::new(parameters.evaluation(), spec)? })
        };
        self.keys.iter().map(key).collect()
    }
}

/// The data that keys derived from each other share.
fn shape_of(spec: &KeySpec) -> (usize, usize, &[usize]) {
    (spec.level, spec.alpha, &spec.special)
}
