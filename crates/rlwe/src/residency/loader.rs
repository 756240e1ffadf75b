use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{KeyLayout, RlweError, SwitchingKey};

/// Whether to end what takes long; asked from any thread.
pub type Stop<'s> = dyn Fn() -> bool + Sync + 's;

/// Where a [`super::KeyStore`] has its keys from.
pub trait KeyLoader: Send {
    /// What the keys are: one for each place.
    fn layouts(&self) -> &[Arc<KeyLayout>];

    /// Makes the keys of some places, each once and given to `each` with its place as soon as it is there, in any
    /// order. `stop` is asked every second or so: whether nobody wants the rest any more.
    ///
    /// # Errors
    /// [`RlweError::KeySource`], why a key that was not given yet cannot be made; [`RlweError::Interrupted`] after
    /// `stop` said so.
    fn make(
        &mut self,
        places: &[usize],
        each: &mut dyn FnMut(usize, SwitchingKey),
        stop: &Stop<'_>,
    ) -> Result<(), RlweError>;

    /// How many keys it is worth while to make at once: more than one where they share work.
    fn batch(&self) -> usize {
        1
    }

    /// Bytes of keys that it holds itself, all the time.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// Several loaders as one, their places one after the other.
pub struct Loaders {
    loaders: Vec<Box<dyn KeyLoader>>,
    layouts: Vec<Arc<KeyLayout>>,
}

impl Loaders {
    /// All of them.
    pub fn new(loaders: Vec<Box<dyn KeyLoader>>) -> Self {
        let layouts = loaders.iter().flat_map(|loader| loader.layouts().iter().cloned()).collect();
        Self { loaders, layouts }
    }
}

impl KeyLoader for Loaders {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        &self.layouts
    }

    fn make(
        &mut self,
        places: &[usize],
        each: &mut dyn FnMut(usize, SwitchingKey),
        stop: &Stop<'_>,
    ) -> Result<(), RlweError> {
        let mut first = 0;
        for loader in &mut self.loaders {
            let end = first + loader.layouts().len();
            let own: Vec<usize> = places
                .iter()
                .filter(|&place| (first..end).contains(place))
                .map(|place| place - first)
                .collect();
            if !own.is_empty() {
                loader.make(&own, &mut |place, key| each(first + place, key), stop)?;
            }
            first = end;
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        self.loaders.iter().map(|loader| loader.batch()).max().unwrap_or(1)
    }

    fn held_bytes(&self) -> usize {
        self.loaders.iter().map(|loader| loader.held_bytes()).sum()
    }
}
