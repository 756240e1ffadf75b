use keywright_rlwe::Security;
use wasm_bindgen::prelude::*;

use crate::errors::Failure;

/// What a server's parameters for thin clients say, checked: of these a page speaks, whatever else the server says.
#[wasm_bindgen]
pub struct ClientParameters {
    parameters: keywright_client::ClientParameters,
}

#[wasm_bindgen]
impl ClientParameters {
    /// Reads the client's parameters of a server's manifest, an object of kind 0106.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8]) -> Result<ClientParameters, JsValue> {
        let parameters = keywright_client::ClientParameters::from_bytes(parameters).map_err(Failure::from)?;
        Ok(Self { parameters })
    }

    /// `log2(N)`.
    #[wasm_bindgen(getter, js_name = logN)]
    pub fn log_n(&self) -> u32 {
        self.parameters.log_n()
    }

    /// The one prime of ciphertexts.
    #[wasm_bindgen(getter)]
    pub fn modulus(&self) -> u64 {
        self.parameters.modulus().value()
    }

    /// Whether they are an experiment's, without security.
    #[wasm_bindgen(getter)]
    pub fn insecure(&self) -> bool {
        self.parameters.security() == Security::InsecureForExperiments
    }
}
