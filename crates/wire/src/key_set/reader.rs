use std::io::Read;

use keywright_rlwe::{EvaluationKeys, KeyIdentity, Parameters, SwitchingKey};

use super::{Directory, KeyEntry, read_key};
use crate::WireError;
use crate::object::open;
use crate::stream::body::BodyReader;
use crate::stream::header::Header;

/// Reads a key set key by key, from any source. An iterator of keys, which ends after the first error.
pub struct KeySetReader<R: Read> {
    parameters: Parameters,
    directory: Directory,
    /// `None` after the end or an error.
    body: Option<BodyReader<R>>,
    read: usize,
    /// The identity of the keys read so far.
    identity: KeyIdentity,
}

impl<R: Read> KeySetReader<R> {
    /// Reads the directory.
    ///
    /// # Errors
    /// Any [`WireError`] of the header and the directory.
    pub fn new(mut reader: R, parameters: &Parameters) -> Result<Self, WireError> {
        let header = Header::read(&mut reader)?;
        let directory = open::<EvaluationKeys>(&header, parameters)?;
        let body = Some(BodyReader::new(reader, &header));
        let (parameters, identity) = (parameters.clone(), KeyIdentity::UNKNOWN);
        Ok(Self { parameters, directory, body, read: 0, identity })
    }

    /// The keys of the set, in stored order.
    pub fn entries(&self) -> &[KeyEntry] {
        &self.directory.entries
    }

    fn step(&mut self, mut body: BodyReader<R>) -> Result<Option<SwitchingKey>, WireError> {
        let Some(entry) = self.directory.entries.get(self.read) else {
            body.finish()?;
            return Ok(None);
        };
        let key = read_key(&mut body, (self.read, entry), &self.parameters)?;
        self.identity = self.identity.join(key.identity(), "the key set", "the key")?;
        self.read += 1;
        self.body = Some(body);
        Ok(Some(key))
    }
}

impl<R: Read> Iterator for KeySetReader<R> {
    type Item = Result<SwitchingKey, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let body = self.body.take()?;
        self.step(body).transpose()
    }
}
