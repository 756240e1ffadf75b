use std::sync::Arc;

use keywright_ring::{Automorphism, Evaluation, Poly};
use keywright_rlwe::{Decomposed, Finish, KeyElement, KeyUse, Parameters, ServedHop, noise};

use crate::CircuitError;

/// One key switch that a transform performs, and the automorphism after it.
pub(crate) struct Rotation {
    /// The key.
    pub(crate) key_use: KeyUse,
    /// The automorphism after the switch.
    pub(crate) automorphism: Arc<Automorphism>,
}

impl From<ServedHop> for Rotation {
    fn from(hop: ServedHop) -> Self {
        Self { key_use: hop.key_use, automorphism: hop.automorphism }
    }
}

impl Rotation {
    /// A whole key switch, including division, of each pair of halves, followed by its rotation. All are over the
    /// primes of one level.
    pub(crate) fn switch(
        rlwe: &Parameters,
        rotations: &[&Self],
        [first, second]: [&Poly<Evaluation>; 2],
    ) -> Result<Vec<[Poly<Evaluation>; 2]>, CircuitError> {
        let Some(any) = rotations.first() else { return Ok(Vec::new()) };
        let decomposed = Decomposed::new(rlwe, any.key_use.plan.clone(), second)?;
        let finish: Vec<_> = rotations
            .iter()
            .map(|rotation| Finish {
                addend: [Some(first), None],
                automorphism: Some(&*rotation.automorphism),
            })
            .collect();
        let uses: Vec<_> = rotations.iter().map(|rotation| &rotation.key_use).collect();
        let switched = decomposed.switch_stored(&uses, &finish)?.into_iter();
        Ok(switched.filter_map(|result| <[_; 2]>::try_from(result.polys).ok()).collect())
    }

    /// Variance that it adds if its result is divided.
    pub(crate) fn variance(&self, rlwe: &Parameters) -> f64 {
        noise::key_switch(rlwe, &self.key_use.plan, &self.key_use.key)
    }

    /// Variance that it adds if its result stays over the special primes.
    pub(crate) fn raised_variance(&self, rlwe: &Parameters) -> f64 {
        noise::key_switch_raised(rlwe, &self.key_use.plan, &self.key_use.key)
    }
}

/// The key that raises the modulus and rotates by `steps`, whose Galois element is `g`.
pub(crate) fn raised_element(steps: usize, g: u64, weight: usize) -> KeyElement {
    match steps {
        0 => KeyElement::SparseToDense(weight),
        _ => KeyElement::SparseToDenseGalois { weight, galois: g },
    }
}
