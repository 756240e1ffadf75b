//! Rotation keys that a server derives from master keys.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::{Automorphism, Buffer, Evaluation, Poly, galois_inverse};

use super::plan::KeyFamily;
use super::{DerivationPlan, DerivationStep, MasterKeys, MasterParameters};
use crate::parallel::for_each_item;
use crate::{
    Decomposed, Finish, KeyElement, KeySpec, KeyUse, RlweError, SwitchPlan, SwitchingKey, UniformPart,
};

/// Derives keys: the result of [`DerivationPlan::derive`]. It walks the trees depth first, so that it keeps only keys
/// from which others are still derived.
pub struct Derivation {
    plan: Arc<DerivationPlan>,
    /// For each family: the wanted keys, and the keys with their parents.
    targets: Vec<BTreeSet<u64>>,
    needed: Vec<BTreeSet<u64>>,
    /// The current family, and its keys from which others are still derived.
    at: usize,
    stack: Vec<Frame>,
    ready: VecDeque<SwitchingKey>,
    left: usize,
}

/// A key from which others are derived: per digit, a ciphertext `(b, a)` of `P g_j s(X^element)` under `s`, modulo the
/// primes of the chain up to the family's level.
struct Node {
    element: u64,
    /// `None` for a `b` of zero.
    rows: Vec<(Option<Poly<Evaluation>>, Poly<Evaluation>)>,
    /// Variance of the error of one coefficient.
    variance: f64,
}

/// A node, and the number of its children that are done.
struct Frame {
    node: Node,
    derived: usize,
}

/// A key in progress. A key from which others are derived is made over the chain. Any other key is made over its own
/// primes and after the inverse automorphism, as switching keys are stored.
struct Child<'l> {
    step: &'l DerivationStep,
    inner: bool,
    master: &'l KeyUse,
    automorphism: Option<Arc<Automorphism>>,
    b: Vec<Poly<Evaluation>>,
    a: Vec<Poly<Evaluation>>,
    variance: f64,
}

impl KeyFamily {
    /// The key of 1: `(0, P g_j)`, without an error.
    fn root(&self, parameters: &MasterParameters) -> Node {
        let (chain, evaluation) = (parameters.chain(), parameters.evaluation());
        let row = |digit: &Range<usize>| {
            let mut a = Poly::zero(chain.n(), self.chain_level + 1);
            for (i, limb) in a.limbs_mut().enumerate() {
                if parameters.evaluation_index(i).is_some_and(|prime| digit.contains(&prime)) {
                    limb.fill(evaluation.product(&self.spec.special, chain.modulus(i)));
                }
            }
            (None, a)
        };
        Node { element: 1, rows: self.digits.iter().map(row).collect(), variance: 0.0 }
    }

    /// The children of the next batch, and the number of children done after it.
    fn batch<'t>(&'t self, needed: &'t BTreeSet<u64>, frame: &Frame) -> (Vec<&'t DerivationStep>, usize) {
        let left = || self.children(needed, frame.node.element).skip(frame.derived);
        let count = self.batches().next(left().map(|step| self.is_inner(needed, step.element)));
        (left().take(count).collect(), frame.derived + count)
    }

    /// A child with memory for its rows.
    fn child<'l>(
        &'l self,
        parameters: &MasterParameters,
        needed: &BTreeSet<u64>,
        parent: &Node,
        step: &'l DerivationStep,
    ) -> Result<Child<'l>, RlweError> {
        let chain = parameters.chain();
        let inner = self.is_inner(needed, step.element);
        let master = self.master(step);
        let element = if inner { step.master } else { galois_inverse(chain.log_n(), parent.element) };
        let automorphism = if element == 1 { None } else { Some(chain.automorphism(element)?) };
        let limbs = if inner { self.chain_level + 1 } else { self.spec.primes().count() };
        let rows = || self.digits.iter().map(|_| Poly::unspecified(chain.n(), limbs)).collect();
        let variance = parent.variance + self.added_variance(parameters, step);
        Ok(Child { step, inner, master, automorphism, b: rows(), a: rows(), variance })
    }

    /// Derives keys from one key, all with master keys of one plan: one decomposition per row.
    fn extend(
        &self,
        parameters: &MasterParameters,
        parent: &Node,
        children: &mut [Child<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), RlweError> {
        let chain = parameters.chain();
        let Some(plan) = children.first().map(|child| child.master.plan.clone()) else { return Ok(()) };
        // The output of each prime's limb; the limb of a prime that the key lacks is discarded.
        let place = |child: &Child<'_>, i: usize| {
            if child.inner {
                return Some(i);
            }
            let prime = parameters.evaluation_index(i)?;
            self.spec.primes().position(|p| p == prime)
        };
        let kept = self.chain_level + 1;
        let places: Vec<Vec<Option<usize>>> =
            children.iter().map(|child| (0..kept).map(|i| place(child, i)).collect()).collect();
        let unused: usize = places.iter().flatten().filter(|place| place.is_none()).count();
        let mut waste = Buffer::unspecified(2 * unused * chain.n());
        let automorphisms: Vec<_> = children.iter().map(|child| child.automorphism.clone()).collect();
        let loaded = children.iter().map(|child| child.master.key.load()).collect::<Result<Vec<_>, _>>()?;
        for (j, (b, a)) in parent.rows.iter().enumerate() {
            if stop() {
                return Err(RlweError::Interrupted);
            }
            let decomposed = Decomposed::new(chain, plan.clone(), a)?;
            let keys = children
                .iter()
                .zip(&loaded)
                .map(|(child, key)| Ok((&**key, decomposed.rows_of(key, child.master.coalesce)?)))
                .collect::<Result<Vec<_>, RlweError>>()?;
            let finish: Vec<_> = automorphisms
                .iter()
                .map(|phi| Finish { addend: [b.as_ref(), None], automorphism: phi.as_deref() })
                .collect();
            let mut waste = waste.chunks_exact_mut(chain.n());
            let mut outs: Vec<Vec<&mut [u64]>> = (0..kept).map(|_| Vec::new()).collect();
            for (child, places) in children.iter_mut().zip(&places) {
                let mut halves = [&mut child.b[j], &mut child.a[j]]
                    .map(|poly| poly.limbs_mut().map(Some).collect::<Vec<_>>());
                for (out, place) in outs.iter_mut().zip(places) {
                    for half in &mut halves {
                        let limb = match place {
                            Some(place) => half[*place].take(),
                            None => waste.next(),
                        };
                        out.extend(limb);
                    }
                }
            }
            decomposed.switch_into(&keys, &finish, outs);
        }
        Ok(())
    }

    /// A finished child: as a node if others are derived from it, and as a key if it was requested.
    fn take(
        &self,
        parameters: &MasterParameters,
        targets: &BTreeSet<u64>,
        child: Child<'_>,
    ) -> Result<(Option<Node>, Option<SwitchingKey>), RlweError> {
        let (element, variance) = (child.step.element, child.variance);
        let identity = child.master.key.identity();
        let key = |b: Vec<Poly<Evaluation>>, a: Vec<Poly<Evaluation>>| {
            let spec = KeySpec { element: KeyElement::Galois(element), ..self.spec.clone() };
            let uniform = UniformPart::stored(a);
            let key = SwitchingKey::from_parts(parameters.evaluation(), identity, spec, b, uniform)?;
            Ok::<_, RlweError>(key.with_error_variance(variance))
        };
        if !child.inner {
            return Ok((None, Some(key(child.b, child.a)?)));
        }
        let kept = if targets.contains(&element) {
            let b = self.kept_form(parameters, element, &child.b)?;
            let a = self.kept_form(parameters, element, &child.a)?;
            Some(key(b, a)?)
        } else {
            None
        };
        let rows = child.b.into_iter().map(Some).zip(child.a).collect();
        Ok((Some(Node { element, rows, variance }), kept))
    }

    /// Rows of a node in the form of switching keys: over their own primes, after the inverse automorphism.
    fn kept_form(
        &self,
        parameters: &MasterParameters,
        element: u64,
        rows: &[Poly<Evaluation>],
    ) -> Result<Vec<Poly<Evaluation>>, RlweError> {
        let chain = parameters.chain();
        let inverse = chain.automorphism(galois_inverse(chain.log_n(), element))?;
        let primes: Vec<usize> = self.spec.primes().map(|prime| parameters.chain_index(prime)).collect();
        let mut out: Vec<_> = rows.iter().map(|_| Poly::unspecified(chain.n(), primes.len())).collect();
        let limbs: Vec<_> = out
            .iter_mut()
            .zip(rows)
            .flat_map(|(out, row)| out.limbs_mut().zip(&primes).map(|(limb, &i)| (limb, row.limb(i))))
            .collect();
        for_each_item(limbs, |_, (out, limb)| chain.ring().backend().permute(&inverse, limb, out));
        Ok(out)
    }
}

impl MasterKeys {
    /// All keys of a [`DerivationPlan`] of these specs.
    ///
    /// The same masters and specs give the same bytes, on any number of threads.
    ///
    /// # Errors
    /// As [`DerivationPlan::new`].
    pub fn derive(&self, specs: &[KeySpec], max_hops: usize) -> Result<Derivation, RlweError> {
        let plan = Arc::new(DerivationPlan::new(self, specs, max_hops)?);
        let all = 0..specs.len();
        Ok(plan.derive(all))
    }
}

impl DerivationPlan {
    /// The keys at some places of [`Self::keys`], one after the other in the order of the trees.
    pub fn derive(self: &Arc<Self>, places: impl IntoIterator<Item = usize>) -> Derivation {
        let mut targets: Vec<BTreeSet<u64>> = self.families.iter().map(|_| BTreeSet::new()).collect();
        let mut needed = targets.clone();
        for &(family, element) in places.into_iter().filter_map(|place| self.keys.get(place)) {
            targets[family].insert(element);
            needed[family].extend(self.families[family].ancestry(element));
        }
        let left = targets.iter().map(BTreeSet::len).sum();
        let (stack, ready) = (Vec::new(), VecDeque::new());
        let mut derivation = Derivation { plan: self.clone(), targets, needed, at: 0, stack, ready, left };
        derivation.plant();
        derivation
    }
}

impl Derivation {
    /// The plan.
    pub fn plan(&self) -> &Arc<DerivationPlan> {
        &self.plan
    }

    /// Puts the key of 1 of the current family, or of the next family with keys to derive, on the stack.
    fn plant(&mut self) {
        while self.needed.get(self.at).is_some_and(BTreeSet::is_empty) {
            self.at += 1;
        }
        if let Some(family) = self.plan.families.get(self.at) {
            let node = family.root(self.plan.masters.parameters());
            self.stack.push(Frame { node, derived: 0 });
        }
    }

    /// The next key. Before every row, about a second's work on one thread in the largest rings, `stop` is asked
    /// whether to give up.
    ///
    /// # Errors
    /// [`RlweError::Interrupted`] if `stop` says so; the derivation may continue later. After any other error there are
    /// no more keys.
    pub fn next_unless(
        &mut self,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Result<SwitchingKey, RlweError>> {
        loop {
            if let Some(key) = self.ready.pop_front() {
                self.left -= 1;
                return Some(Ok(key));
            }
            if self.left == 0 {
                return None;
            }
            if let Err(error) = self.advance(stop) {
                if !matches!(error, RlweError::Interrupted) {
                    self.left = 0;
                }
                return Some(Err(error));
            }
        }
    }

    /// Makes the next batch of keys. An interruption changes nothing.
    fn advance(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), RlweError> {
        let plan = self.plan.clone();
        let parameters = plan.masters.parameters();
        let Some(mut frame) = self.stack.pop() else {
            self.at += 1;
            self.plant();
            return Ok(());
        };
        let (family, needed) = (&plan.families[self.at], &self.needed[self.at]);
        let (steps, end) = family.batch(needed, &frame);
        let mut children = steps
            .into_iter()
            .map(|step| family.child(parameters, needed, &frame.node, step))
            .collect::<Result<Vec<_>, _>>()?;
        // Masters of one plan share a decomposition. Plans keep the order in which they occur, which fixes the order of
        // keys.
        let mut plans: Vec<Arc<SwitchPlan>> = Vec::new();
        children.sort_by_cached_key(|child| {
            plans.iter().position(|plan| Arc::ptr_eq(plan, &child.master.plan)).unwrap_or_else(|| {
                plans.push(child.master.plan.clone());
                plans.len() - 1
            })
        });
        for run in children.chunk_by_mut(|x, y| Arc::ptr_eq(&x.master.plan, &y.master.plan)) {
            if let Err(error) = family.extend(parameters, &frame.node, run, stop) {
                self.stack.push(frame);
                return Err(error);
            }
        }
        frame.derived = end;
        if end < family.children(needed, frame.node.element).count() {
            self.stack.push(frame);
        }
        for child in children {
            let (node, key) = family.take(parameters, &self.targets[self.at], child)?;
            self.stack.extend(node.map(|node| Frame { node, derived: 0 }));
            self.ready.extend(key);
        }
        Ok(())
    }
}

impl Iterator for Derivation {
    type Item = Result<SwitchingKey, RlweError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_unless(&|| false)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Derivation {}
