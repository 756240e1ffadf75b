use keywright_client::KeySetStream;
use wasm_bindgen::prelude::*;

use crate::errors::Failure;

/// A key set as bytes: each limb of a key is made on request, and only one is in memory.
#[wasm_bindgen]
pub struct KeyStream {
    stream: KeySetStream,
}

impl KeyStream {
    pub(crate) fn new(stream: KeySetStream) -> Self {
        Self { stream }
    }
}

#[wasm_bindgen]
impl KeyStream {
    /// Bytes of the whole set.
    #[wasm_bindgen(getter)]
    pub fn bytes(&self) -> f64 {
        self.stream.bytes() as f64
    }

    /// Keys of the set.
    #[wasm_bindgen(getter)]
    pub fn keys(&self) -> usize {
        self.stream.count()
    }

    /// The next bytes, at most a limb with its framing; `undefined` after the last.
    #[wasm_bindgen(js_name = next)]
    pub fn next_part(&mut self) -> Result<Option<Vec<u8>>, JsValue> {
        let part = self.stream.next_part().map_err(Failure::from)?;
        Ok((!part.is_empty()).then_some(part))
    }

    /// Resumes at a byte of the set, with the same bytes as before, after a server lost its state.
    pub fn seek(&mut self, place: f64) -> Result<(), JsValue> {
        Ok(self.stream.seek(place as u64).map_err(Failure::from)?)
    }
}
