//! Switch plans, divisions and automorphisms of parameters, each made once.

use alloc::sync::Arc;
use core::convert::Infallible;

use keywright_ring::{Automorphism, Buffer};

use super::plan::{PlanId, SwitchPlan, identify};
use crate::{KeySpec, ModDown, Parameters, RlweError};

/// Plans, automorphisms and monomials made so far.
#[derive(Default)]
struct PlanCache {
    plans: List<PlanId, SwitchPlan>,
    mod_downs: List<usize, ModDown>,
    automorphisms: List<u64, Automorphism>,
    inverses_of_x: List<usize, Buffer>,
}

#[cfg(feature = "std")]
type List<K, V> = keywright_ring::ForkMutex<alloc::collections::BTreeMap<K, Arc<V>>>;
#[cfg(not(feature = "std"))]
type List<K, V> = core::marker::PhantomData<(K, V)>;

/// A value of a list. Made each time without a standard library, and in a child that was forked while the list was
/// locked.
fn once<K: Ord, V, E>(
    parameters: &Parameters,
    list: fn(&PlanCache) -> &List<K, V>,
    key: K,
    build: impl FnOnce() -> Result<V, E>,
) -> Result<Arc<V>, E> {
    #[cfg(feature = "std")]
    if let Some(cache) = parameters.memo().get()
        && let Ok(mut list) = list(cache).lock()
    {
        use alloc::collections::btree_map::Entry;
        return Ok(match list.entry(key) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) => entry.insert(Arc::new(build()?)).clone(),
        });
    }
    #[cfg(not(feature = "std"))]
    let _ = (parameters, list, key);
    build().map(Arc::new)
}

impl Parameters {
    /// `X^-1 = -X^(N-1)` modulo prime `prime` in evaluation form; computed once if there is a standard library.
    pub(crate) fn inverse_of_x(&self, prime: usize) -> Arc<Buffer> {
        let Ok(inverse) = once(
            self,
            |cache| &cache.inverses_of_x,
            prime,
            || {
                let mut limb = Buffer::zeroed(self.n());
                limb[self.n() - 1] = self.modulus(prime).value() - 1;
                self.ring().forward_limb(prime, &mut limb);
                Ok::<_, Infallible>(limb)
            },
        );
        inverse
    }

    /// The plan of a key of this spec for ciphertexts at `level`, with `coalesce` key rows per digit, rescaling or not.
    ///
    /// # Errors
    /// [`RlweError::KeyUse`] if the key cannot be used in this way, with the reason; the errors of
    /// [`KeySpec::validate`].
    pub fn switch_plan(
        &self,
        spec: &KeySpec,
        level: usize,
        coalesce: usize,
        rescale: bool,
    ) -> Result<Arc<SwitchPlan>, RlweError> {
        let (layout, id) = identify(self, spec, level, coalesce, rescale)?;
        once(self, |cache| &cache.plans, id, || Ok(SwitchPlan::build(self, layout, rescale)))
    }

    /// The division by `q_level`, precomputed once.
    ///
    /// # Errors
    /// [`RlweError::LastPrime`] at level 0, [`RlweError::Level`] above the highest level.
    pub fn rescaling(&self, level: usize) -> Result<Arc<ModDown>, RlweError> {
        self.require_level(level)?;
        if level == 0 {
            return Err(RlweError::LastPrime);
        }
        once(self, |cache| &cache.mod_downs, level, || Ok(ModDown::new(self, level, alloc::vec![level])))
    }

    /// The automorphism `X -> X^element`, precomputed once.
    ///
    /// # Errors
    /// [`RlweError::Ring`] unless the element is odd and below `2N`.
    pub fn automorphism(&self, element: u64) -> Result<Arc<Automorphism>, RlweError> {
        let build = || Automorphism::new(self.log_n(), element);
        Ok(once(self, |cache| &cache.automorphisms, element, build)?)
    }
}
