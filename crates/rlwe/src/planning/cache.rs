//! Switch plans, divisions and automorphisms of parameters, each made once.

use alloc::sync::Arc;

use keywright_ring::{Automorphism, Buffer, RingError};

use super::layout::SwitchLayout;
use super::plan::{PlanId, SwitchPlan, identify};
use crate::{KeySpec, ModDown, Parameters, RlweError};

/// Plans, automorphisms and monomials made so far. A child that was forked while a list was locked makes them each
/// time.
#[derive(Default)]
pub(crate) struct PlanCache {
    #[cfg(feature = "std")]
    plans: List<PlanId, SwitchPlan>,
    #[cfg(feature = "std")]
    mod_downs: List<usize, ModDown>,
    #[cfg(feature = "std")]
    automorphisms: List<u64, Automorphism>,
    #[cfg(feature = "std")]
    inverses_of_x: List<usize, Buffer>,
}

#[cfg(feature = "std")]
type List<K, V> = keywright_ring::ForkMutex<alloc::collections::BTreeMap<K, Arc<V>>>;

impl PlanCache {
    #[cfg(feature = "std")]
    fn plan(
        &self,
        parameters: &Parameters,
        id: PlanId,
        layout: SwitchLayout,
        rescale: bool,
    ) -> Arc<SwitchPlan> {
        let build = || Arc::new(SwitchPlan::build(parameters, layout, rescale));
        match self.plans.lock() {
            Ok(mut plans) => plans.entry(id).or_insert_with(build).clone(),
            Err(_) => build(),
        }
    }

    #[cfg(not(feature = "std"))]
    fn plan(
        &self,
        parameters: &Parameters,
        _id: PlanId,
        layout: SwitchLayout,
        rescale: bool,
    ) -> Arc<SwitchPlan> {
        Arc::new(SwitchPlan::build(parameters, layout, rescale))
    }

    #[cfg(feature = "std")]
    fn rescaling(&self, parameters: &Parameters, level: usize) -> Arc<ModDown> {
        let build = || Arc::new(ModDown::new(parameters, level, alloc::vec![level]));
        match self.mod_downs.lock() {
            Ok(mut mod_downs) => mod_downs.entry(level).or_insert_with(build).clone(),
            Err(_) => build(),
        }
    }

    #[cfg(not(feature = "std"))]
    fn rescaling(&self, parameters: &Parameters, level: usize) -> Arc<ModDown> {
        Arc::new(ModDown::new(parameters, level, alloc::vec![level]))
    }

    #[cfg(feature = "std")]
    fn automorphism(&self, log_n: u32, element: u64) -> Result<Arc<Automorphism>, RingError> {
        let mut list = self.automorphisms.lock();
        if let Some(cached) = list.as_ref().ok().and_then(|list| list.get(&element)) {
            return Ok(cached.clone());
        }
        let automorphism = Arc::new(Automorphism::new(log_n, element)?);
        if let Ok(list) = &mut list {
            list.insert(element, automorphism.clone());
        }
        Ok(automorphism)
    }

    #[cfg(not(feature = "std"))]
    fn automorphism(&self, log_n: u32, element: u64) -> Result<Arc<Automorphism>, RingError> {
        Ok(Arc::new(Automorphism::new(log_n, element)?))
    }
}

/// `X^-1 = -X^(N-1)` modulo a prime, in evaluation form.
fn inverse_of_x(parameters: &Parameters, prime: usize) -> Arc<Buffer> {
    let mut limb = Buffer::zeroed(parameters.n());
    limb[parameters.n() - 1] = parameters.modulus(prime).value() - 1;
    parameters.ring().forward_limb(prime, &mut limb);
    Arc::new(limb)
}

impl Parameters {
    /// `X^-1` modulo prime `prime` in evaluation form; computed once if there is a standard library.
    pub(crate) fn inverse_of_x(&self, prime: usize) -> Arc<Buffer> {
        #[cfg(feature = "std")]
        if let Ok(mut list) = self.plans().inverses_of_x.lock() {
            return list.entry(prime).or_insert_with(|| inverse_of_x(self, prime)).clone();
        }
        inverse_of_x(self, prime)
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
        Ok(self.plans().plan(self, id, layout, rescale))
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
        Ok(self.plans().rescaling(self, level))
    }

    /// The automorphism `X -> X^element`, precomputed once.
    ///
    /// # Errors
    /// [`RlweError::Ring`] unless the element is odd and below `2N`.
    pub fn automorphism(&self, element: u64) -> Result<Arc<Automorphism>, RlweError> {
        Ok(self.plans().automorphism(self.log_n(), element)?)
    }
}
