use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_rlwe::Security;
use keywright_wire::Wire;
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

/// The checked parameters of a server whose clients encrypt slots.
#[wasm_bindgen]
pub struct SlotsParameters {
    parameters: CkksParameters,
}

impl SlotsParameters {
    fn read(parameters: &[u8]) -> Result<Self, Failure> {
        Ok(Self { parameters: CkksParameters::new(CkksLiteral::from_bytes(parameters, &())?)? })
    }
}

#[wasm_bindgen]
impl SlotsParameters {
    /// Reads the parameters from a server's manifest, with every prime.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8]) -> Result<SlotsParameters, JsValue> {
        Ok(Self::read(parameters)?)
    }

    /// `log2(N)`.
    #[wasm_bindgen(getter, js_name = logN)]
    pub fn log_n(&self) -> u32 {
        self.parameters.rlwe().log_n()
    }

    /// The first prime of ciphertexts.
    #[wasm_bindgen(getter)]
    pub fn modulus(&self) -> u64 {
        self.parameters.rlwe().modulus(0).value()
    }

    /// Whether they belong to an experiment without security.
    #[wasm_bindgen(getter)]
    pub fn insecure(&self) -> bool {
        self.parameters.security() == Security::InsecureForExperiments
    }

    /// The most numbers of a ciphertext.
    #[wasm_bindgen(getter)]
    pub fn capacity(&self) -> usize {
        1 << self.parameters.max_log_slots()
    }

    /// Bits of a coefficient of a ciphertext of this level, as it is sent.
    pub fn bits(&self, level: usize) -> u32 {
        let rlwe = self.parameters.rlwe();
        (0..=level.min(rlwe.max_level())).map(|i| rlwe.modulus(i).bits()).sum()
    }
}
