use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Decryptor, Magnitude, Packing};
use keywright_client::{ClientLiteral, ClientParameters, Layout};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::SecretKey;
use keywright_wire::{Identity, Wire, WireError, WireSecret};
use wasm_bindgen::prelude::*;

use crate::client::{given, stream};
use crate::errors::Failure;
use crate::key_stream::KeyStream;

/// The owner of a secret whose numbers are in the slots of ciphertexts modulo several primes: encrypts numbers,
/// decrypts answers, makes the keys that a server requests. The server then needs no bootstrap and fewer bytes of keys.
#[wasm_bindgen]
pub struct SlotsClient {
    parameters: CkksParameters,
    secret: SecretKey,
    keys: keywright_client::Client,
    rng: SecretRng,
}

/// What a key stream needs of a client's parameters: ring, first prime, secret and identity. The format of numbers is
/// that of another kind of client and is not used.
fn for_keys(parameters: &CkksParameters) -> Result<ClientParameters, Failure> {
    let literal = parameters.rlwe().literal();
    let identity = Identity::of(literal).map_err(WireError::from)?.to_bytes();
    Ok(ClientParameters::new(ClientLiteral {
        log_n: literal.log_n,
        modulus: parameters.rlwe().modulus(0).value(),
        secret: literal.secret,
        scale: 1,
        fraction_bits: 0,
        max: 1,
        layout: Layout::Coefficients,
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })?)
}

impl SlotsClient {
    fn make(parameters: &[u8], entropy: &[u8]) -> Result<Self, Failure> {
        let parameters = CkksParameters::new(CkksLiteral::from_bytes(parameters, &())?)?;
        let mut entropy = given(entropy);
        let mut keys = keywright_client::Client::generate(&for_keys(&parameters)?, &mut entropy)?;
        let secret = SecretKey::from_secret_bytes(&keys.secret_bytes()?, parameters.rlwe())?;
        // A generator of its own for encryptions, from that of the secret and the keys.
        let rng = SecretRng::from_entropy(&keys.session()?);
        Ok(Self { parameters, secret, keys, rng })
    }

    fn encrypt_to(
        &mut self,
        values: &[f64],
        level: usize,
        log_n: u32,
        magnitude: f64,
    ) -> Result<Vec<u8>, Failure> {
        let magnitude =
            if magnitude > 0.0 { Magnitude::new(magnitude)? } else { self.parameters.default_magnitude() };
        let decryptor = Decryptor::new(&self.parameters, &self.secret)?.declaring(magnitude);
        let (decryptor, ring) = match log_n {
            0 => (decryptor, &self.parameters),
            _ => (decryptor.in_ring(log_n)?, self.parameters.ring_of_degree(log_n)?),
        };
        let packing = Packing::Slots { log_slots: values.len().next_power_of_two().trailing_zeros() };
        Ok(decryptor.encrypt_real(values, packing, level, &mut self.rng)?.to_bytes(ring)?)
    }

    fn decrypt_from(&self, answer: &[u8]) -> Result<Vec<f64>, Failure> {
        let ciphertext = Ciphertext::from_bytes(answer, &self.parameters)?;
        Ok(Decryptor::new(&self.parameters, &self.secret)?.decrypt_real(&ciphertext)?)
    }
}

#[wasm_bindgen]
impl SlotsClient {
    /// A client with a new secret.
    ///
    /// @param parameters the parameters from the server's manifest, with every prime.
    /// @param entropy 32 bytes of `crypto.getRandomValues`, used for nothing else.
    #[wasm_bindgen(constructor)]
    pub fn new(parameters: &[u8], entropy: &[u8]) -> Result<SlotsClient, JsValue> {
        Ok(Self::make(parameters, entropy)?)
    }

    /// Encrypts numbers with the secret: the bytes to send, a seed and one polynomial.
    ///
    /// @param values as many as the ciphertext has slots, a power of two.
    /// @param level the ciphertext's level.
    /// @param logN log2 of the degree of the ciphertext's ring; 0 for the largest.
    /// @param magnitude the declared magnitude of the message, which larger values leave; 0 for the parameters' own.
    pub fn encrypt(
        &mut self,
        values: &[f64],
        level: usize,
        log_n: u32,
        magnitude: f64,
    ) -> Result<Vec<u8>, JsValue> {
        Ok(self.encrypt_to(values, level, log_n, magnitude)?)
    }

    /// Decrypts the numbers of an answer, one for each slot.
    pub fn decrypt(&self, answer: &[u8]) -> Result<Vec<f64>, JsValue> {
        Ok(self.decrypt_from(answer)?)
    }

    /// The keys that a server requests, a limb at a time.
    ///
    /// @param head the head of the key set in the manifest.
    #[wasm_bindgen(js_name = keyStream)]
    pub fn key_stream(&mut self, head: &[u8]) -> Result<KeyStream, JsValue> {
        Ok(stream(&mut self.keys, self.parameters.rlwe(), head)?)
    }
}
