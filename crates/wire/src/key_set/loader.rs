use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use keywright_rlwe::residency::{Each, KeyLoader, Stop};
use keywright_rlwe::{KeyLayout, Parameters, RlweError, SwitchingKey};

use super::KeySetFile;
use crate::{WireError, open_file};

/// The keys of a file for a [`keywright_rlwe::residency::KeyStore`].
///
/// Keys are read, not mapped into memory. A mapped file that shrinks ends the process by a signal. Its pages count as
/// resident memory of the process for as long as the system likes. Checksums would cover bytes that may change
/// afterwards. Read bytes are verified and stay. The file's pages in the system's cache are not memory of the process,
/// and are freed under pressure.
///
/// A file that is written to is refused from then on: keys of another owner may have the same places and valid
/// checksums. If a new file replaces it, an open file keeps its old content.
pub struct KeySetLoader {
    file: KeySetFile<BufReader<File>>,
    layouts: Vec<Arc<KeyLayout>>,
    /// The same file, and its state when it was opened.
    opened: File,
    stamp: Stamp,
    /// Waits for bytes of a file that is being written.
    arrival: Option<Box<Arrival>>,
}

/// Waits until a file has the bytes from one place to another.
pub type Arrival = dyn Fn(u64, u64) -> io::Result<()> + Send;

/// Length and time of the last change.
type Stamp = (u64, SystemTime);

fn stamp(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified()?))
}

impl KeySetLoader {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`KeySetFile::new`].
    pub fn open(path: impl AsRef<Path>, parameters: &Parameters) -> Result<Self, WireError> {
        let opened = open_file(path)?;
        let stamp = stamp(&opened)?;
        let file = KeySetFile::new(BufReader::with_capacity(1 << 16, opened.try_clone()?), parameters)?;
        let layouts = file
            .entries()
            .iter()
            .map(|entry| {
                let layout = KeyLayout::new(parameters, entry.spec.clone())?;
                Ok(Arc::new(KeyLayout { identity: file.identity(), ..layout }))
            })
            .collect::<Result<_, RlweError>>()?;
        Ok(Self { file, layouts, opened, stamp, arrival: None })
    }

    /// Opens a file that is being written. Its length and its head, up to the header of its first key, must be there.
    /// Each key is read, and verified by its own checksum, when its bytes are there.
    ///
    /// # Errors
    /// As [`KeySetFile::new`].
    pub fn open_arriving(
        path: impl AsRef<Path>,
        parameters: &Parameters,
        arrival: Box<Arrival>,
    ) -> Result<Self, WireError> {
        Ok(Self { arrival: Some(arrival), ..Self::open(path, parameters)? })
    }

    /// One key, or the reason why it is unavailable.
    fn read(&mut self, place: usize) -> Result<SwitchingKey, String> {
        if let Some(arrival) = &self.arrival {
            let (begin, end) = self.file.place(place);
            arrival(begin, end).map_err(|error| error.to_string())?;
            return self.file.read(place).map_err(|error| error.to_string());
        }
        let key = self.file.read(place);
        match stamp(&self.opened) {
            Err(error) => Err(error.to_string()),
            Ok(now) if now != self.stamp => {
                Err("the file was changed after it was opened; open the keys again".into())
            }
            Ok(_) => key.map_err(|error| error.to_string()),
        }
    }
}

impl KeyLoader for KeySetLoader {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        &self.layouts
    }

    fn calls_back(&self) -> bool {
        self.arrival.is_some()
    }

    fn make(&mut self, places: &[usize], each: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError> {
        for &place in places {
            if stop() {
                return Err(RlweError::Interrupted);
            }
            let key = self.read(place).map_err(|reason| {
                let spec = &self.layouts[place].spec;
                RlweError::KeySource { element: spec.element, level: spec.level, reason }
            })?;
            each(place, key);
        }
        Ok(())
    }
}
