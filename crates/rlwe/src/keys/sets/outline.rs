use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{EvaluationKeys, KeyLayout, KeySource, KeySpec, LoadedKey, Parameters, RlweError, StoredKey};

/// Keys that were not made.
struct Unmade(Vec<Arc<KeyLayout>>);

impl KeySource for Unmade {
    fn load(&self, places: &[usize]) -> Result<Vec<LoadedKey>, RlweError> {
        let Some(layout) = places.first().and_then(|&place| self.0.get(place)) else { return Ok(Vec::new()) };
        Err(RlweError::KeySource {
            element: layout.spec.element,
            level: layout.spec.level,
            reason: "the set is an outline, whose keys were not made".to_string(),
        })
    }
}

impl EvaluationKeys {
    /// A set that has the descriptions of its keys only. It tells how the keys would be used, and what errors they
    /// would add, before any is made. Computing with one fails.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`] and of [`Self::insert`].
    pub fn outline(
        parameters: &Parameters,
        specs: impl IntoIterator<Item = KeySpec>,
    ) -> Result<Self, RlweError> {
        let layouts: Vec<_> = specs
            .into_iter()
            .map(|spec| KeyLayout::new(parameters, spec).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let source = Arc::new(Unmade(layouts.clone()));
        let mut out = Self::new(parameters);
        for (place, layout) in layouts.into_iter().enumerate() {
            out.insert(StoredKey::in_source(layout, source.clone(), place))?;
        }
        Ok(out)
    }
}
