use keywright_client::{ClientError, ClientParameters, Form};
use keywright_rlwe::SecretKey;
use keywright_wire::WireSecret;
use wasm_bindgen::prelude::*;
use zeroize::Zeroizing;

use crate::errors::Failure;
use crate::key_stream::KeyStream;
use crate::parameters::Both;

/// The owner of a secret: encrypts numbers, decrypts answers, makes the keys that a server asks for.
#[wasm_bindgen]
pub struct Client {
    client: keywright_client::Client,
    parameters: Both,
}

/// Hands out bytes that were passed in, once.
fn given(entropy: &[u8]) -> impl FnMut(&mut [u8]) -> Result<(), ClientError> {
    let mut bytes = Zeroizing::new(entropy.to_vec());
    move |out: &mut [u8]| {
        if bytes.len() < out.len() {
            return Err(ClientError::Randomness("32 random bytes are needed"));
        }
        let rest = bytes.split_off(out.len());
        out.copy_from_slice(&bytes);
        bytes = Zeroizing::new(rest);
        Ok(())
    }
}

impl Client {
    fn make(parameters: &[u8], scale: u64, secret: Option<&[u8]>, entropy: &[u8]) -> Result<Self, Failure> {
        let parameters = Both::read(parameters, scale)?;
        let mut entropy = given(entropy);
        let client = match secret {
            None => keywright_client::Client::generate(&parameters.thin, &mut entropy)?,
            Some(bytes) => {
                keywright_client::Client::from_secret_bytes(&parameters.thin, bytes, &mut entropy)?
            }
        };
        Ok(Self { client, parameters })
    }

    /// The parameters of its ciphertexts.
    pub fn thin_parameters(&self) -> &ClientParameters {
        &self.parameters.thin
    }
}

#[wasm_bindgen]
impl Client {
    /// A client with a new secret.
    ///
    /// @param parameters the parameters' object of the server's manifest.
    /// @param scale at which numbers are encrypted, as the manifest says.
    /// @param entropy 32 bytes of `crypto.getRandomValues`, used for nothing else.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8], scale: u64, entropy: &[u8]) -> Result<Client, JsValue> {
        Ok(Self::make(parameters, scale, None, entropy)?)
    }

    /// A client of a secret that `secretBytes` gave.
    #[wasm_bindgen(js_name = fromSecret)]
    pub fn from_secret(
        parameters: &[u8],
        scale: u64,
        secret: &[u8],
        entropy: &[u8],
    ) -> Result<Client, JsValue> {
        Ok(Self::make(parameters, scale, Some(secret), entropy)?)
    }

    /// The secret, for its owner's storage. It must never be sent.
    #[wasm_bindgen(js_name = secretBytes)]
    pub fn secret_bytes(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.client.secret_bytes().map_err(Failure::from)?.to_vec())
    }

    /// Coefficients of a ciphertext: how many numbers `encrypt` takes at most.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> usize {
        self.parameters.thin.n()
    }

    /// Bits of a number after the point: numbers are integers in units of `2^-fractionBits`.
    #[wasm_bindgen(getter, js_name = fractionBits)]
    pub fn fraction_bits(&self) -> u32 {
        self.parameters.thin.fixed_point().fraction_bits()
    }

    /// Encrypts numbers, number i in coefficient i: the bytes to send.
    pub fn encrypt(&mut self, numbers: &[i32]) -> Result<Vec<u8>, JsValue> {
        let mut out = Vec::with_capacity(self.parameters.thin.seeded_ciphertext_bytes());
        let numbers: Vec<i64> = numbers.iter().copied().map(i64::from).collect();
        self.client.encrypt(&numbers[..], Form::Evaluations, &mut out).map_err(Failure::from)?;
        Ok(out)
    }

    /// Decrypts the numbers of an answer. Those beyond 32 bits are cut to them.
    pub fn decrypt(&mut self, answer: &[u8]) -> Result<Vec<i32>, JsValue> {
        let mut numbers = vec![0; self.size()];
        self.client.decrypt(answer, &mut numbers).map_err(Failure::from)?;
        let clamp = |n: i64| n.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        Ok(numbers.into_iter().map(clamp).collect())
    }

    /// The keys that a server asks for, one after the other.
    ///
    /// @param head the head of the key set in the server's manifest.
    /// @param entropy 32 bytes of `crypto.getRandomValues`, used for nothing else. The same bytes give the same keys.
    #[wasm_bindgen(js_name = keyStream)]
    pub fn key_stream(&self, head: &[u8], entropy: &[u8]) -> Result<KeyStream, JsValue> {
        let bytes = self.client.secret_bytes().map_err(Failure::from)?;
        let secret = SecretKey::from_secret_bytes(&bytes, &self.parameters.full).map_err(Failure::from)?;
        let rng = keywright_client::secret_rng(&mut given(entropy)).map_err(Failure::from)?;
        Ok(KeyStream::new(secret, head, rng)?)
    }
}
