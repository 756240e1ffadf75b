use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyGenerator, KeySequence, KeySpec, SecretKey};
use keywright_wire::{KeySetReader, KeySetWriter, inspect};
use wasm_bindgen::prelude::*;

use crate::errors::Failure;

/// A key set as bytes: each key is made when it is asked for, and one is in memory.
#[wasm_bindgen]
pub struct KeyStream {
    secret: SecretKey,
    sequence: KeySequence,
    rng: SecretRng,
    outbox: Outbox,
    /// `None` after the end.
    writer: Option<KeySetWriter<Outbox>>,
    keys: usize,
    bytes: u64,
}

/// Bytes that were written and not taken.
#[derive(Default, Clone)]
struct Outbox(Rc<RefCell<Vec<u8>>>);

impl Write for Outbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl KeyStream {
    /// The keys that the head of a set names.
    pub(crate) fn new(secret: SecretKey, head: &[u8], rng: SecretRng) -> Result<Self, Failure> {
        let parameters = secret.parameters().clone();
        let entries = KeySetReader::new(head, &parameters)?;
        let specs: Vec<KeySpec> = entries.entries().iter().map(|entry| entry.spec.clone()).collect();
        let outbox = Outbox::default();
        let writer = KeySetWriter::new(outbox.clone(), &specs, &parameters)?;
        let sequence = KeySequence::new(&specs)?;
        let bytes = inspect(&mut &*head)?.bytes;
        Ok(Self { secret, sequence, rng, outbox, writer: Some(writer), keys: specs.len(), bytes })
    }

    /// Makes the next key and gives out its bytes; `None` after the last.
    pub(crate) fn advance(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(mut writer) = self.writer.take() else { return Ok(None) };
        let mut generator = KeyGenerator::new(&self.secret, self.rng.split());
        match self.sequence.make_next(&mut generator) {
            Some(key) => {
                writer.write(&key?)?;
                self.writer = Some(writer);
            }
            None => {
                writer.finish()?;
            }
        }
        Ok(Some(std::mem::take(&mut *self.outbox.0.borrow_mut())))
    }
}

#[wasm_bindgen]
impl KeyStream {
    /// Bytes of the whole set.
    #[wasm_bindgen(getter)]
    pub fn bytes(&self) -> f64 {
        self.bytes as f64
    }

    /// Keys of the set.
    #[wasm_bindgen(getter)]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The bytes of the next key, which end with those of the set after the last; `undefined` then.
    #[wasm_bindgen(js_name = next)]
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, JsValue> {
        Ok(self.advance()?)
    }
}
