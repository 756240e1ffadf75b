use keywright_rlwe::noise::{self, Variance};
use keywright_rlwe::{KeyElement, RlweCiphertext, RlweError, ring_down, ring_up};

use super::Evaluator;
use crate::{Ciphertext, CkksError, Packing};

impl<'k> Evaluator<'k> {
    /// The evaluator of a ciphertext's ring: this one, or that of a subring with the keys of that ring.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] for a ciphertext of other parameters.
    pub fn of(&self, ciphertext: &Ciphertext) -> Result<Self, CkksError> {
        let rlwe = ciphertext.parameters.rlwe();
        let parameters = self.parameters.ring_like(rlwe, "the evaluator", "the ciphertext")?.clone();
        Ok(Self { keys: self.keys.ring_like(parameters.rlwe())?, parameters })
    }

    /// The same values in another ring of the evaluator's parameters, at the same level and scale. A ciphertext of that
    /// ring is returned unchanged.
    ///
    /// Switching down to a smaller ring needs one key for each part of the larger ring's secret
    /// ([`KeyElement::RingDown`]); switching up needs one key ([`KeyElement::RingUp`]). The estimate includes their
    /// errors.
    ///
    /// # Errors
    /// [`CkksError::PackingMismatch`] for values in coefficients, or in more slots than the smaller ring has: see
    /// [`Self::view_slots`]. [`CkksError::Rlwe`] for a ring that the parameters lack, a level above its highest one, a
    /// missing key, mixed parameters. [`CkksError::Degree`].
    pub fn switch_ring(&self, a: &Ciphertext, log_n: u32) -> Result<Ciphertext, CkksError> {
        let to = self.parameters.ring_of_degree(log_n)?;
        let from = self.parameters.ring_like(a.parameters.rlwe(), "the evaluator", "the ciphertext")?;
        self.require_key(a)?;
        if to.rlwe().same(from.rlwe()) {
            return Ok(a.clone());
        }
        Self::require_degree_one("switch_ring", a)?;
        let most = to.max_log_slots().min(from.max_log_slots());
        if !matches!(a.packing, Packing::Slots { log_slots } if log_slots <= most) {
            let right = Packing::Slots { log_slots: most };
            return Err(CkksError::PackingMismatch { left: a.packing, right });
        }
        let (level, max) = (a.level(), to.max_level());
        if level > max {
            let object = "the target ring";
            return Err(RlweError::Level { level, max, object }.into());
        }
        let (keys, source) = (self.keys.ring_like(to.rlwe())?, from.rlwe().log_n());
        let switched = |rlwe: RlweCiphertext, variance: f64| {
            let mut out = Ciphertext { parameters: to.clone(), rlwe, ..a.clone_header() };
            out.estimate = a.estimate.with_noise(a.deviation_of(variance));
            out
        };
        if log_n < source {
            let uses = keys.ring_down(source, level)?;
            let rlwe = ring_down(from.rlwe(), to.rlwe(), &a.rlwe, &uses)?;
            Ok(switched(rlwe, noise::ring_down(to.rlwe(), &uses)))
        } else {
            let key_use = keys.best(KeyElement::RingUp { from: source }, level, false)?;
            let rlwe = ring_up(to.rlwe(), &a.rlwe, &key_use)?;
            Ok(switched(rlwe, noise::key_switch(to.rlwe(), &key_use.plan, &key_use.key)))
        }
    }

    /// Variance of a coefficient that [`Self::switch_ring`] adds at a level, between the rings of these degrees. Known
    /// before any key is made, from [`keywright_rlwe::EvaluationKeys::outline`].
    ///
    /// # Errors
    /// A missing key; [`CkksError::Rlwe`] for a ring that the parameters lack.
    pub fn switch_ring_variance(&self, source: u32, log_n: u32, level: usize) -> Result<Variance, CkksError> {
        let [from, to] = [source, log_n].map(|log_n| self.parameters.rlwe().ring_of_degree(log_n));
        let (from, to) = (from?.log_n(), to?);
        let keys = self.keys.ring_like(to)?;
        if log_n == from {
            return Ok(Variance::default());
        }
        if log_n < from {
            return Ok(noise::ring_down_parts(to, &keys.ring_down(from, level)?));
        }
        let key_use = keys.best(KeyElement::RingUp { from }, level, false)?;
        Ok(noise::key_switch_parts(to, &key_use.plan, &key_use.key))
    }

    /// The same ciphertext read as one of `2^log_slots` slots, without computation.
    ///
    /// A plaintext of few slots is a plaintext of more slots whose values repeat. Reading it with more slots repeats
    /// every value. Reading it with fewer slots requires that values already repeat, up to their errors. Slot `j` is
    /// then the mean of the slots `j + m 2^log_slots`; if these differ, the product of two such ciphertexts is not that
    /// of the means. The estimate stays. With more slots, the errors of the coefficients between those in use count
    /// too, and are assumed to be as large.
    ///
    /// # Errors
    /// [`CkksError::PackingMismatch`] for values in coefficients, or for more slots than the ciphertext's ring has;
    /// mixed parameters.
    pub fn view_slots(&self, a: &Ciphertext, log_slots: u32) -> Result<Ciphertext, CkksError> {
        let ring = self.parameters.ring_like(a.parameters.rlwe(), "the evaluator", "the ciphertext")?;
        let packing = Packing::Slots { log_slots };
        let Packing::Slots { log_slots: before } = a.packing else {
            return Err(CkksError::PackingMismatch { left: a.packing, right: packing });
        };
        if log_slots > ring.max_log_slots() {
            let right = Packing::Slots { log_slots: ring.max_log_slots() };
            return Err(CkksError::PackingMismatch { left: packing, right });
        }
        let mut out = Ciphertext { packing, ..a.clone() };
        if log_slots > before {
            out.estimate.deviation *= (packing.spread() / a.packing.spread()).sqrt();
        }
        Ok(out)
    }
}
