use std::sync::Arc;

use keywright_ckks::Evaluator;
use keywright_ring::{Automorphism, rotation_element};
use keywright_rlwe::{KeyElement, KeyUse};

use crate::CircuitError;

/// One rotation that a transform performs, with the key that serves it.
pub(super) struct Rotation {
    /// Steps to the left.
    pub(super) steps: usize,
    /// The key.
    pub(super) found: KeyUse,
    /// The automorphism after the switch.
    pub(super) automorphism: Arc<Automorphism>,
}

/// The key that raises the modulus and rotates by `steps`, whose Galois element is `g`.
pub(crate) fn raised_element(steps: usize, g: u64, weight: usize) -> KeyElement {
    match steps {
        0 => KeyElement::SparseToDense(weight),
        _ => KeyElement::SparseToDenseGalois { weight, galois: g },
    }
}

/// Finds keys for rotations at one level that all remove the same primes.
pub(super) struct KeyFinder<'e, 'k> {
    pub(super) evaluator: &'e Evaluator<'k>,
    pub(super) level: usize,
    pub(super) special: &'e [usize],
    /// Rotations whose keys have other special primes.
    unfit: Vec<String>,
}

impl<'e, 'k> KeyFinder<'e, 'k> {
    pub(super) fn new(evaluator: &'e Evaluator<'k>, level: usize, special: &'e [usize]) -> Self {
        Self { evaluator, level, special, unfit: Vec::new() }
    }

    /// The cheapest fitting key of each rotation but 0. Rotations whose keys do not fit are noted for [`Self::finish`].
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError::MissingKey`] for the first rotation without any key.
    pub(super) fn rotations(&mut self, steps: &[usize]) -> Result<Vec<Rotation>, CircuitError> {
        let steps: Vec<usize> = steps.iter().copied().filter(|&steps| steps != 0).collect();
        self.find(&steps, |_, g| KeyElement::Galois(g))
    }

    /// The same for keys from an ephemeral secret of that weight; rotation 0 has a key as well.
    ///
    /// # Errors
    /// As [`Self::rotations`].
    pub(super) fn raised(&mut self, steps: &[usize], weight: usize) -> Result<Vec<Rotation>, CircuitError> {
        self.find(steps, |steps, g| raised_element(steps, g, weight))
    }

    fn find(
        &mut self,
        steps: &[usize],
        element: impl Fn(usize, u64) -> KeyElement,
    ) -> Result<Vec<Rotation>, CircuitError> {
        let (rlwe, keys) = (self.evaluator.parameters().rlwe(), self.evaluator.keys());
        let mut out = Vec::with_capacity(steps.len());
        for &steps in steps {
            let g = rotation_element(rlwe.log_n(), steps as i64);
            let element = element(steps, g);
            // Reports a rotation without any key, with its neighbours.
            keys.best(element, self.level, false)?;
            let (fit, unfit): (Vec<_>, Vec<_>) = keys
                .uses(element, self.level, false)
                .partition(|found| found.plan.division.removed == self.special);
            match fit.into_iter().min_by_key(KeyUse::cost) {
                Some(found) => out.push(Rotation { steps, found, automorphism: rlwe.automorphism(g)? }),
                None => {
                    let lists: Vec<String> =
                        unfit.iter().map(|found| format!("{:?}", found.plan.division.removed)).collect();
                    self.unfit.push(format!("rotation by {steps} over {}", lists.join(" or ")));
                }
            }
        }
        Ok(out)
    }

    /// Refuses to go on if a rotation has keys, but none that fits.
    ///
    /// # Errors
    /// [`CircuitError::SpecialPrimes`] naming every such rotation.
    pub(super) fn finish(self) -> Result<(), CircuitError> {
        if self.unfit.is_empty() {
            return Ok(());
        }
        Err(CircuitError::SpecialPrimes {
            encoded: self.special.to_vec(),
            level: self.level,
            found: self.unfit.join(", "),
        })
    }
}
