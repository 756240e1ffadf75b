use alloc::sync::Arc;
use alloc::vec::Vec;

use super::DerivationPlan;
use super::batch::BATCH;
use crate::residency::{Each, KeyLoader, Stop};
use crate::{KeyLayout, RlweError};

/// The keys of a plan for a [`crate::residency::KeyStore`]: derived at use, evicted, and derived again.
///
/// The master keys are always in memory. Intermediate keys are in memory while a batch is made, in addition to the
/// store's bytes.
pub struct DerivedKeys {
    plan: Arc<DerivationPlan>,
    layouts: Vec<Arc<KeyLayout>>,
    #[cfg(feature = "parallel")]
    pool: rayon::ThreadPool,
}

impl DerivedKeys {
    /// The keys of a plan, derived by this many threads of its own.
    ///
    /// # Errors
    /// [`RlweError::Thread`] if the threads cannot be started.
    #[cfg_attr(not(feature = "parallel"), expect(unused_variables, reason = "there is one thread"))]
    pub fn new(plan: Arc<DerivationPlan>, threads: usize) -> Result<Self, RlweError> {
        let layouts = plan.keys()?.into_iter().map(Arc::new).collect();
        #[cfg(feature = "parallel")]
        let pool = {
            use alloc::string::ToString;
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).spawn_handler(|thread| {
                keywright_ring::start_thread(std::thread::Builder::new(), || thread.run()).map(drop)
            });
            builder.build().map_err(|error| RlweError::Thread(error.to_string()))?
        };
        Ok(Self {
            plan,
            layouts,
            #[cfg(feature = "parallel")]
            pool,
        })
    }

    /// Runs work on the deriving threads.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        #[cfg(feature = "parallel")]
        return self.pool.install(work);
        #[cfg(not(feature = "parallel"))]
        work()
    }
}

impl KeyLoader for DerivedKeys {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        &self.layouts
    }

    fn calls_back(&self) -> bool {
        false
    }

    fn make(&mut self, places: &[usize], each: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError> {
        let mut derivation = self.plan.derive(places.iter().copied());
        while let Some(key) = self.run(|| derivation.next_unless(stop)) {
            let key = key?;
            let same = |&&place: &&usize| self.layouts[place].spec == *key.spec();
            if let Some(&place) = places.iter().find(same) {
                each(place, key);
            }
        }
        Ok(())
    }

    /// As many as are derived from one key at once: they may share its decomposition, and their intermediate keys.
    fn batch(&self) -> usize {
        *BATCH.end()
    }

    fn held_bytes(&self) -> usize {
        self.plan.masters().bytes()
    }
}
