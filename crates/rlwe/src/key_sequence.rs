use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;

use crate::{KeyElement, KeyGenerator, KeySpec, RlweError, SecretKey, SwitchingKey};

/// The keys of a list, made one by one in its order: what [`KeyGenerator::switching_keys`] returns.
pub struct SwitchingKeys<'g, 's, 'k> {
    generator: &'g mut KeyGenerator<'s>,
    specs: &'k [KeySpec],
    /// How many have been given out.
    given: usize,
    /// Ephemeral secrets by weight, wiped with the list.
    ephemeral: BTreeMap<usize, SecretKey>,
}

impl<'s> KeyGenerator<'s> {
    /// The keys of a list, each made when it is asked for. Those of sparse-secret encapsulation may stand anywhere in it: all of one
    /// weight are made with one ephemeral secret, which is sampled with the first of them and wiped when the list is dropped.
    ///
    /// # Errors
    /// [`RlweError::EphemeralSecret`] if there is not exactly one key to the ephemeral secret of a weight, none back, or one of them
    /// twice: a second one would belong to another secret. What [`Self::switching_key`] says of each key.
    pub fn switching_keys<'g, 'k>(
        &'g mut self,
        specs: &'k [KeySpec],
    ) -> Result<SwitchingKeys<'g, 's, 'k>, RlweError> {
        let count = |element| specs.iter().filter(|spec| spec.element == element).count();
        for element in specs.iter().map(|spec| spec.element) {
            let Some(weight) = element.ephemeral_weight() else { continue };
            let there = KeyElement::DenseToSparse(weight);
            let of_weight = |spec: &&KeySpec| spec.element.ephemeral_weight() == Some(weight);
            let all = specs.iter().filter(of_weight).count();
            if count(element) != 1 || count(there) != 1 || all < 2 {
                return Err(RlweError::EphemeralSecret(element));
            }
        }
        Ok(SwitchingKeys { generator: self, specs, given: 0, ephemeral: BTreeMap::new() })
    }
}

impl SwitchingKeys<'_, '_, '_> {
    fn make(&mut self, spec: &KeySpec) -> Result<SwitchingKey, RlweError> {
        let Some(weight) = spec.element.ephemeral_weight() else {
            return self.generator.switching_key(spec);
        };
        let ephemeral = match self.ephemeral.entry(weight) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(free) => {
                // All are checked before a secret is sampled.
                let of_weight = |spec: &&KeySpec| spec.element.ephemeral_weight() == Some(weight);
                for spec in self.specs.iter().filter(of_weight) {
                    spec.validate(self.generator.parameters())?;
                }
                free.insert(self.generator.ephemeral_secret(weight)?)
            }
        };
        self.generator.ephemeral_key(spec, ephemeral)
    }
}

impl Iterator for SwitchingKeys<'_, '_, '_> {
    type Item = Result<SwitchingKey, RlweError>;

    fn next(&mut self) -> Option<Self::Item> {
        let specs = self.specs;
        let spec = specs.get(self.given)?;
        self.given += 1;
        Some(self.make(spec))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.specs.len() - self.given;
        (left, Some(left))
    }
}

impl ExactSizeIterator for SwitchingKeys<'_, '_, '_> {}
