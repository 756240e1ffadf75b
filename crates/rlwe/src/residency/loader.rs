use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{KeyLayout, RlweError, SwitchingKey};

/// A flag that ends long work; set from any thread.
pub type Stop<'s> = dyn Fn() -> bool + Sync + 's;
/// The receiver of keys, each with its place.
pub type Each<'e> = dyn FnMut(usize, SwitchingKey) + 'e;

/// The source of a [`super::KeyStore`]'s keys.
pub trait KeyLoader: Send {
    /// The layouts of the keys, one for each place.
    fn layouts(&self) -> &[Arc<KeyLayout>];

    /// Whether [`Self::make`] calls code of the application, as a function of Python: it may wait for a lock that the
    /// thread which drops the store has, so that thread must not wait for it.
    fn calls_back(&self) -> bool;

    /// Makes the keys of some places, each once and in any order, and passes each with its place to `each` as soon as
    /// it is ready. Asks `stop` every second or so whether to give up the rest.
    ///
    /// # Errors
    /// [`RlweError::KeySource`] with the reason why a key cannot be made; [`RlweError::Interrupted`] after `stop` said
    /// so.
    fn make(&mut self, places: &[usize], each: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError>;

    /// The number of keys worth making at once: more than one if they share work.
    fn batch(&self) -> usize {
        1
    }

    /// Bytes of keys that it always holds.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// Several loaders as one, with their places one after the other.
pub struct Loaders {
    loaders: Vec<Box<dyn KeyLoader>>,
    layouts: Vec<Arc<KeyLayout>>,
}

impl Loaders {
    /// Joins the loaders.
    pub fn new(loaders: Vec<Box<dyn KeyLoader>>) -> Self {
        let layouts = loaders.iter().flat_map(|loader| loader.layouts().iter().cloned()).collect();
        Self { loaders, layouts }
    }
}

impl KeyLoader for Loaders {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        &self.layouts
    }

    fn calls_back(&self) -> bool {
        self.loaders.iter().any(|loader| loader.calls_back())
    }

    fn make(&mut self, places: &[usize], each: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError> {
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
