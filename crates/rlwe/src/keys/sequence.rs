use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use crate::{EvaluationKeys, KeyGenerator, KeySpec, RlweError, SecretKey, SwitchingKey};

/// Makes the keys of a list one by one, in order, with a generator that is lent for each key: for owners that cannot
/// hold a borrow in between, as behind a foreign interface. [`KeyGenerator::switching_keys`] is the same as an
/// iterator.
///
/// Ephemeral keys, of sparse-secret encapsulation (Bossuat, Troncoso-Pastoriza and Hubaux, ePrint 2022/024), may be
/// anywhere in the list. All of one weight use one ephemeral secret, which is sampled with the first of them and wiped
/// when the sequence is dropped. Only these keys depend on it, so only the modulus of the key to it must be secure for
/// a sparse secret.
pub struct KeySequence {
    specs: Vec<KeySpec>,
    /// The number of keys returned so far.
    given: usize,
    /// Ephemeral secrets by ring and weight.
    ephemeral: BTreeMap<(Option<u32>, usize), SecretKey>,
}

impl KeySequence {
    /// The keys of a list.
    ///
    /// # Errors
    /// [`RlweError::EphemeralSecret`] if the key to an ephemeral secret of a weight, or the key back, is missing or
    /// repeated: a second one would belong to another secret.
    pub fn new(specs: &[KeySpec]) -> Result<Self, RlweError> {
        for spec in specs {
            if spec.element.ephemeral_weight().is_none() {
                continue;
            }
            let family = || specs.iter().filter(|other| ephemeral_of(other) == ephemeral_of(spec));
            let alike = family().filter(|other| other.element == spec.element).count();
            let there = family().any(|other| other.element.leads_to_ephemeral());
            let back = family().any(|other| !other.element.leads_to_ephemeral());
            if alike != 1 || !there || !back {
                return Err(RlweError::EphemeralSecret(spec.element));
            }
        }
        Ok(Self { specs: specs.to_vec(), given: 0, ephemeral: BTreeMap::new() })
    }

    /// The next key; `None` after the last. All keys must be made by generators of one secret.
    ///
    /// # Errors
    /// The errors of [`KeyGenerator::switching_key`].
    pub fn make_next(&mut self, generator: &mut KeyGenerator<'_>) -> Option<Result<SwitchingKey, RlweError>> {
        let spec = self.specs.get(self.given)?.clone();
        self.given += 1;
        Some(self.make(generator, &spec))
    }

    /// The number of keys left.
    pub fn left(&self) -> usize {
        self.specs.len() - self.given
    }

    fn make(&mut self, generator: &mut KeyGenerator<'_>, spec: &KeySpec) -> Result<SwitchingKey, RlweError> {
        let Some(weight) = spec.element.ephemeral_weight() else {
            return generator.switching_key(spec);
        };
        let ephemeral = match self.ephemeral.entry((spec.subring, weight)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(free) => {
                // All are checked before a secret is sampled.
                for spec in self.specs.iter().filter(|other| ephemeral_of(other) == ephemeral_of(spec)) {
                    spec.validate(generator.parameters())?;
                }
                free.insert(generator.ephemeral_secret(spec, weight)?)
            }
        };
        generator.ephemeral_key(spec, ephemeral)
    }
}

/// The ephemeral secret of a key: its ring and weight.
fn ephemeral_of(spec: &KeySpec) -> Option<(Option<u32>, usize)> {
    Some((spec.subring, spec.element.ephemeral_weight()?))
}

/// The keys of a list, made one by one in order: the result of [`KeyGenerator::switching_keys`].
pub struct SwitchingKeys<'g, 's> {
    generator: &'g mut KeyGenerator<'s>,
    sequence: KeySequence,
}

impl<'s> KeyGenerator<'s> {
    /// The keys of a list, each made on request, as by a [`KeySequence`].
    ///
    /// # Errors
    /// As [`KeySequence::new`]; for each key, those of [`Self::switching_key`].
    pub fn switching_keys<'g>(&'g mut self, specs: &[KeySpec]) -> Result<SwitchingKeys<'g, 's>, RlweError> {
        Ok(SwitchingKeys { generator: self, sequence: KeySequence::new(specs)? })
    }

    /// The keys of a list as a set.
    ///
    /// # Errors
    /// As for [`Self::switching_keys`].
    pub fn evaluation_keys(&mut self, specs: &[KeySpec]) -> Result<EvaluationKeys, RlweError> {
        let mut keys = EvaluationKeys::new(self.parameters());
        for key in self.switching_keys(specs)? {
            keys.insert(key?)?;
        }
        Ok(keys)
    }
}

impl Iterator for SwitchingKeys<'_, '_> {
    type Item = Result<SwitchingKey, RlweError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.sequence.make_next(self.generator)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.sequence.left(), Some(self.sequence.left()))
    }
}

impl ExactSizeIterator for SwitchingKeys<'_, '_> {}
