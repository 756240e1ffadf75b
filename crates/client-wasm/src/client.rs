use keywright_ckks::CkksLiteral;
use keywright_client::{ClientError, ClientParameters, Form};
use keywright_rlwe::{KeySpec, Parameters};
use keywright_wire::{KeySetReader, Wire};
use wasm_bindgen::prelude::*;
use zeroize::Zeroizing;

use crate::errors::Failure;
use crate::key_stream::KeyStream;

/// Most bytes of the secret's transforms while keys are made: enough for every prime of a ring of degree 2^16 with 48
/// primes, and less than half of the module's memory.
const KEPT_BYTES: usize = 24 << 20;

/// The owner of a secret: encrypts numbers, decrypts answers, makes the keys that a server requests.
#[wasm_bindgen]
pub struct Client {
    client: keywright_client::Client,
}

/// Supplies bytes that were passed in, once.
pub(crate) fn given(entropy: &[u8]) -> impl FnMut(&mut [u8]) -> Result<(), ClientError> {
    let mut bytes = Zeroizing::new(entropy.to_vec());
    move |out: &mut [u8]| {
        if bytes.len() < out.len() {
            return Err(ClientError::Randomness("pass 32 random bytes"));
        }
        let rest = bytes.split_off(out.len());
        out.copy_from_slice(&bytes);
        bytes = Zeroizing::new(rest);
        Ok(())
    }
}

impl Client {
    fn make(parameters: &[u8], secret: Option<&[u8]>, entropy: &[u8]) -> Result<Self, Failure> {
        let parameters = ClientParameters::from_bytes(parameters)?;
        let mut entropy = given(entropy);
        let client = match secret {
            None => keywright_client::Client::generate(&parameters, &mut entropy)?,
            Some(bytes) => keywright_client::Client::from_secret_bytes(&parameters, bytes, &mut entropy)?,
        };
        Ok(Self { client })
    }

    fn encrypt_to(&mut self, numbers: &[i32], form: Form) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::with_capacity(self.client.parameters().form_bytes(form, true)?);
        self.client.encrypt(numbers, form, &mut out)?;
        Ok(out)
    }

    fn keys(&mut self, parameters: &[u8], head: &[u8]) -> Result<KeyStream, Failure> {
        let parameters = Parameters::new(CkksLiteral::from_bytes(parameters, &())?.rlwe)?;
        stream(&mut self.client, &parameters, head)
    }
}

/// The keys of a set, in a new session of a client.
pub(crate) fn stream(
    client: &mut keywright_client::Client,
    parameters: &Parameters,
    head: &[u8],
) -> Result<KeyStream, Failure> {
    let reader = KeySetReader::new(head, parameters)?;
    let specs: Vec<KeySpec> = reader.entries().iter().map(|entry| entry.spec.clone()).collect();
    let session = client.session()?;
    let mut keys = client.keys(parameters, &specs, &session)?;
    keys.keep(KEPT_BYTES);
    Ok(KeyStream::new(keywright_client::KeySetStream::new(keys, head)?))
}

#[wasm_bindgen]
impl Client {
    /// A client with a new secret.
    ///
    /// @param parameters the client's parameters from the server's manifest, an object of kind 0106.
    /// @param entropy 32 bytes of `crypto.getRandomValues`, used for nothing else.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8], entropy: &[u8]) -> Result<Client, JsValue> {
        Ok(Self::make(parameters, None, entropy)?)
    }

    /// A client of a secret from `secretBytes`.
    #[wasm_bindgen(js_name = fromSecret)]
    pub fn from_secret(parameters: &[u8], secret: &[u8], entropy: &[u8]) -> Result<Client, JsValue> {
        Ok(Self::make(parameters, Some(secret), entropy)?)
    }

    /// The secret, for its owner's storage. Never send it.
    #[wasm_bindgen(js_name = secretBytes)]
    pub fn secret_bytes(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.client.secret_bytes().map_err(Failure::from)?.to_vec())
    }

    /// A new public key, for an `Encryptor` that must encrypt but not decrypt.
    #[wasm_bindgen(js_name = publicKey)]
    pub fn public_key(&mut self) -> Result<Vec<u8>, JsValue> {
        let mut out = Vec::new();
        self.client.public_key(&mut out).map_err(Failure::from)?;
        Ok(out)
    }

    /// Numbers of a ciphertext: the most that `encrypt` accepts, and those that `decrypt` returns.
    #[wasm_bindgen(getter)]
    pub fn capacity(&self) -> usize {
        self.client.parameters().capacity()
    }

    /// Bits of a number after the point: numbers are integers in units of `2^-fractionBits`.
    #[wasm_bindgen(getter, js_name = fractionBits)]
    pub fn fraction_bits(&self) -> u32 {
        self.client.parameters().fixed_point().fraction_bits()
    }

    /// Largest absolute value of a number.
    #[wasm_bindgen(getter)]
    pub fn max(&self) -> f64 {
        self.client.parameters().fixed_point().max() as f64
    }

    /// Encrypts numbers with the secret: the bytes to send, a seed and one polynomial.
    pub fn encrypt(&mut self, numbers: &[i32]) -> Result<Vec<u8>, JsValue> {
        Ok(self.encrypt_to(numbers, Form::Evaluations)?)
    }

    /// Encrypts numbers with the secret: a seed, and the coefficients that carry numbers, without their `dropped` low
    /// bits.
    #[wasm_bindgen(js_name = encryptCompact)]
    pub fn encrypt_compact(&mut self, numbers: &[i32], dropped: u32) -> Result<Vec<u8>, JsValue> {
        Ok(self.encrypt_to(numbers, Form::Compact([dropped, 0]))?)
    }

    /// Decrypts the numbers of an answer. Numbers beyond 32 bits are truncated.
    pub fn decrypt(&mut self, answer: &[u8]) -> Result<Vec<i32>, JsValue> {
        let mut numbers = Zeroizing::new(vec![0; self.capacity()]);
        self.client.decrypt(answer, &mut numbers).map_err(Failure::from)?;
        let clamp = |n: &i64| (*n).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        Ok(numbers.iter().map(clamp).collect())
    }

    /// The keys that a server requests, a limb at a time.
    ///
    /// @param parameters the parameters from the server's manifest, with every prime.
    /// @param head the head of the key set in the manifest.
    #[wasm_bindgen(js_name = keyStream)]
    pub fn key_stream(&mut self, parameters: &[u8], head: &[u8]) -> Result<KeyStream, JsValue> {
        Ok(self.keys(parameters, head)?)
    }
}
