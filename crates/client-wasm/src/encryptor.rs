use keywright_client::{ClientParameters, Form};
use wasm_bindgen::prelude::*;

use crate::client::given;
use crate::errors::Failure;

/// Encrypts under another owner's public key, and can do nothing else.
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

    fn encrypt_to(&mut self, numbers: &[i32], form: Form) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::with_capacity(self.encryptor.parameters().form_bytes(form, false)?);
        self.encryptor.encrypt(numbers, form, &mut out)?;
        Ok(out)
    }
}

#[wasm_bindgen]
impl Encryptor {
    /// An encryptor with a public key from `Client.publicKey`.
    ///
    /// @param parameters the client's parameters from the server's manifest.
    /// @param entropy 32 bytes of `crypto.getRandomValues`, used for nothing else.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8], public_key: &[u8], entropy: &[u8]) -> Result<Encryptor, JsValue> {
        Ok(Self::make(parameters, public_key, entropy)?)
    }

    /// Encrypts numbers: two polynomials.
    pub fn encrypt(&mut self, numbers: &[i32]) -> Result<Vec<u8>, JsValue> {
        Ok(self.encrypt_to(numbers, Form::Evaluations)?)
    }

    /// Encrypts numbers: the coefficients of the first polynomial that carry numbers, without their `dropped0` low
    /// bits, and all of the second one without `dropped1`.
    #[wasm_bindgen(js_name = encryptCompact)]
    pub fn encrypt_compact(
        &mut self,
        numbers: &[i32],
        dropped0: u32,
        dropped1: u32,
    ) -> Result<Vec<u8>, JsValue> {
        Ok(self.encrypt_to(numbers, Form::Compact([dropped0, dropped1]))?)
    }
}
