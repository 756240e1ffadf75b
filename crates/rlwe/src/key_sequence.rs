use alloc::vec::Vec;

use crate::{KeyElement, KeyGenerator, KeySpec, RlweError, SwitchingKey};

/// The keys of a list, made one by one in its order: what [`KeyGenerator::switching_keys`] returns.
pub struct SwitchingKeys<'g, 's, 'k> {
    generator: &'g mut KeyGenerator<'s>,
    specs: &'k [KeySpec],
    /// How many have been given out.
    given: usize,
    /// Keys of a pair whose turn has not come.
    waiting: Vec<SwitchingKey>,
}

impl<'s> KeyGenerator<'s> {
    /// The keys of a list, each made when it is asked for. Those of sparse-secret encapsulation may stand anywhere in it: both
    /// keys of a weight are made together, as by [`Self::encapsulation_keys`].
    ///
    /// # Errors
    /// [`RlweError::EphemeralSecret`] if there is not exactly one key to an ephemeral secret of a weight and one back: a second
    /// pair would belong to another secret. What [`Self::switching_key`] says of each key.
    pub fn switching_keys<'g, 'k>(
        &'g mut self,
        specs: &'k [KeySpec],
    ) -> Result<SwitchingKeys<'g, 's, 'k>, RlweError> {
        let count = |element| specs.iter().filter(|spec| spec.element == element).count();
        for element in specs.iter().map(|spec| spec.element) {
            if let Some(pair) = pair(element)
                && pair.map(count) != [1, 1]
            {
                return Err(RlweError::EphemeralSecret(element));
            }
        }
        Ok(SwitchingKeys { generator: self, specs, given: 0, waiting: Vec::new() })
    }
}

/// The keys to an ephemeral secret and back, for one of the two.
fn pair(element: KeyElement) -> Option<[KeyElement; 2]> {
    match element {
        KeyElement::DenseToSparse(weight) | KeyElement::SparseToDense(weight) => {
            Some([KeyElement::DenseToSparse(weight), KeyElement::SparseToDense(weight)])
        }
        _ => None,
    }
}

impl SwitchingKeys<'_, '_, '_> {
    fn make(&mut self, spec: &KeySpec) -> Result<SwitchingKey, RlweError> {
        let Some([to_sparse, to_dense]) = pair(spec.element) else {
            return self.generator.switching_key(spec);
        };
        if let Some(at) = self.waiting.iter().position(|key| key.spec().element == spec.element) {
            return Ok(self.waiting.swap_remove(at));
        }
        let specs = self.specs;
        let spec_of = |element| {
            let found = specs.iter().find(|spec| spec.element == element);
            found.ok_or(RlweError::EphemeralSecret(element))
        };
        let [there, back] = self.generator.encapsulation_keys(spec_of(to_sparse)?, spec_of(to_dense)?)?;
        let (now, later) = if spec.element == to_sparse { (there, back) } else { (back, there) };
        self.waiting.push(later);
        Ok(now)
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
