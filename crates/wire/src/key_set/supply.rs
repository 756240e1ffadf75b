use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use keywright_rlwe::residency::KeySupply;
use keywright_rlwe::{KeyLayout, Parameters, RlweError, SwitchingKey};

use super::KeySetFile;
use crate::WireError;

/// The keys of a file for a [`keywright_rlwe::residency::KeyStore`].
///
/// Keys are read, not mapped into memory: a mapped file that shrinks ends the process by a signal, its pages count as resident memory of the process
/// for as long as the system likes, and checksums would have to be taken of what may change afterwards. What is read is verified and stays.
/// The pages of the file in the system's cache are not memory of the process, and given up where others need it.
pub struct KeySetSupply {
    file: KeySetFile<BufReader<File>>,
    layouts: Vec<Arc<KeyLayout>>,
}

impl KeySetSupply {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`KeySetFile::open`].
    pub fn open(path: impl AsRef<Path>, parameters: &Parameters) -> Result<Self, WireError> {
        let file = KeySetFile::open(path, parameters)?;
        let layouts = file
            .entries()
            .iter()
            .map(|entry| KeyLayout::new(parameters, entry.spec.clone()).map(Arc::new))
            .collect::<Result<_, RlweError>>()?;
        Ok(Self { file, layouts })
    }
}

impl KeySupply for KeySetSupply {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        &self.layouts
    }

    fn make(&mut self, places: &[usize], each: &mut dyn FnMut(usize, SwitchingKey)) -> Result<(), RlweError> {
        for &place in places {
            let key = self.file.read(place).map_err(|error| {
                let spec = &self.layouts[place].spec;
                RlweError::KeySource { element: spec.element, level: spec.level, reason: error.to_string() }
            })?;
            each(place, key);
        }
        Ok(())
    }
}
