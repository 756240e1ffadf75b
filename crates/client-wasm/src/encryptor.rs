use keywright_client::ClientParameters;
use wasm_bindgen::prelude::*;

use crate::client::given;
use crate::errors::Failure;

/// Encrypts under somebody's public key, and can do nothing else.
#[wasm_bindgen]
pub struct Encryptor {
    encryptor: keywright_client::Encryptor,
}

impl Encryptor {
    fn make(parameters: &[u8], public_key: &[u8], entropy: &[u8]) -> Result<Self, Failure> {
        let parameters = ClientParameters::from_bytes(parameters)?;
        let encryptor = keywright_client::Encryptor::new(&parameters, public_key, &mut given(entropy))?;
        Ok(Self { encryptor })
    }
}

#[wasm_bindgen]
impl Encryptor {
    /// An encryptor of a public key that `Client.publicKey` gave.
    ///
    /// @param parameters the client's parameters of the server's manifest.
    /// @param entropy 32 bytes of `crypto.getRandomValues`, used for nothing else.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8], public_key: &[u8], entropy: &[u8]) -> Result<Encryptor, JsValue> {
        Ok(Self::make(parameters, public_key, entropy)?)
    }

    /// Encrypts numbers: two polynomials.
    pub fn encrypt(&mut self, numbers: &[i32]) -> Result<Vec<u8>, JsValue> {
        let mut out = Vec::with_capacity(self.encryptor.parameters().ciphertext_bytes());
        self.encryptor.encrypt(numbers, &mut out).map_err(Failure::from)?;
        Ok(out)
    }

    /// Encrypts numbers: of the first polynomial the coefficients that carry numbers without `dropped0` low bits, of the second one all without `dropped1`.
    #[wasm_bindgen(js_name = encryptCompact)]
    pub fn encrypt_compact(
        &mut self,
        numbers: &[i32],
        dropped0: u32,
        dropped1: u32,
    ) -> Result<Vec<u8>, JsValue> {
        let mut out = Vec::new();
        self.encryptor.encrypt_compact(numbers, [dropped0, dropped1], &mut out).map_err(Failure::from)?;
        Ok(out)
    }
}
