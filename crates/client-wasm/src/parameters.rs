use keywright_rlwe::Security;
use wasm_bindgen::prelude::*;

use crate::errors::Failure;

/// The checked parameters of a server for thin clients. A page relies on these, no matter what else the server claims.
#[wasm_bindgen]
pub struct ClientParameters {
    parameters: keywright_client::ClientParameters,
}

#[wasm_bindgen]
impl ClientParameters {
    /// Reads the client's parameters from a server's manifest, an object of kind 0106.
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

    /// Whether they belong to an experiment without security.
    #[wasm_bindgen(getter)]
    pub fn insecure(&self) -> bool {
        self.parameters.security() == Security::InsecureForExperiments
    }
}
