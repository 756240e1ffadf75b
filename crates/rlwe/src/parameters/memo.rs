//! What the rooms above compute from parameters, kept with them.

use alloc::boxed::Box;
use core::any::Any;

use keywright_ring::RaceOnce;

/// A cache of a type that its only user chooses.
#[derive(Default)]
pub(crate) struct Memo(RaceOnce<Box<dyn Any + Send + Sync>>);

impl Memo {
    /// The cache, empty at first; nothing if it is of another type.
    pub(crate) fn get<C: Any + Default + Send + Sync>(&self) -> Option<&C> {
        self.0.get_or_init(|| Box::new(C::default())).downcast_ref()
    }
}
