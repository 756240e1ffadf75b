use alloc::vec;
use alloc::vec::Vec;

use keywright_frame::packing::unpack;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyIdentity, KeySpec, Parameters};
use zeroize::Zeroizing;

use crate::Answer;
use crate::engine::Engine;
use crate::engine::choice::{ChosenEngine, EngineChoice, on_engine};
use crate::keys::key::{
    Half, PUBLIC_KEY, PublicKey, expand_secret, make_public_key, read_secret, sample_secret, secret_bytes,
    write_public_key, write_secret,
};
use crate::{
    ClientError, ClientParameters, Entropy, Form, KeyStream, Numbers, Sink, encrypt, encrypt_symmetric,
};

/// The owner of a secret: makes keys, encrypts with the secret, decrypts. Allocates all memory when it is made. Secrets
/// are wiped when it is dropped, and never printed.
pub struct Client {
    parameters: ClientParameters,
    key: KeyIdentity,
    secret: Zeroizing<Vec<u8>>,
    chosen: ChosenEngine,
    rng: SecretRng,
}

impl Client {
    /// A client with a new secret.
    ///
    /// # Errors
    /// [`ClientError::Randomness`] if the platform provides none; [`ClientError::Ring`].
    pub fn generate(parameters: &ClientParameters, entropy: &mut dyn Entropy) -> Result<Self, ClientError> {
        let mut rng = entropy.generator()?;
        let mut secret = Zeroizing::new(vec![0; secret_bytes(parameters.log_n())]);
        sample_secret(parameters, &mut rng, &mut secret)?;
        Self::with(parameters, secret, rng, EngineChoice::Fastest)
    }

    /// A client with the secret in the object `bytes`, as written by [`Self::secret_bytes`] or the full library.
    ///
    /// # Errors
    /// As [`read_secret`]; [`ClientError::Randomness`].
    pub fn from_secret_bytes(
        parameters: &ClientParameters,
        bytes: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ClientError> {
        let secret = Zeroizing::new(read_secret(parameters, bytes)?.to_vec());
        Self::with(parameters, secret, entropy.generator()?, EngineChoice::Fastest)
    }

    /// The same client on another engine: the same bytes at another speed.
    ///
    /// # Errors
    /// [`ClientError::Range`] for [`EngineChoice::ShiftAdd`] and a prime that it does not support.
    pub fn with_engine(self, choice: EngineChoice) -> Result<Self, ClientError> {
        Self::with(&self.parameters, self.secret, self.rng, choice)
    }

    fn with(
        parameters: &ClientParameters,
        secret: Zeroizing<Vec<u8>>,
        rng: SecretRng,
        choice: EngineChoice,
    ) -> Result<Self, ClientError> {
        let mut chosen = ChosenEngine::new(parameters.log_n(), parameters.modulus().value(), choice)?;
        on_engine!(&mut chosen, working, keys, {
            keys.secret = Zeroizing::new(vec![Default::default(); parameters.n()]);
            expand_secret(&working.engine, &secret, &mut keys.secret)?;
        });
        Ok(Self {
            parameters: *parameters,
            key: KeyIdentity::of_packed(&secret, parameters.literal().secret),
            secret,
            chosen,
            rng,
        })
    }

    /// The parameters of the client.
    pub fn parameters(&self) -> &ClientParameters {
        &self.parameters
    }

    /// The identity of its secret, which its keys and ciphertexts carry.
    pub fn key(&self) -> KeyIdentity {
        self.key
    }

    /// The secret as an object, for its owner's storage; the full library reads it as a secret key. Wiped when dropped.
    ///
    /// # Errors
    /// None that a client can cause.
    pub fn secret_bytes(&self) -> Result<Zeroizing<Vec<u8>>, ClientError> {
        // Never reallocated, so no copy of the secret remains.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.secret.len() + 128));
        write_secret(&self.parameters, &self.secret, &mut *bytes)?;
        Ok(bytes)
    }

    /// A new public key at `q_0` as an object, for devices that encrypt but do not decrypt: see [`Encryptor`].
    ///
    /// # Errors
    /// [`ClientError::Sink`].
    pub fn public_key(&mut self, sink: &mut dyn Sink) -> Result<(), ClientError> {
        let (parameters, rng) = (&self.parameters, &mut self.rng);
        on_engine!(&mut self.chosen, working, keys, {
            let seed = make_public_key(&working.engine, &keys.secret, rng, &mut working.limb)?;
            write_public_key(parameters, self.key, &seed, &working.limb, sink)
        })
    }

    /// The switching keys that a server requests, made one after another: see [`KeyStream`].
    ///
    /// # Errors
    /// As [`KeyStream::new`].
    pub fn keys(
        &self,
        parameters: &Parameters,
        specs: &[KeySpec],
        session: &Zeroizing<[u8; 32]>,
    ) -> Result<KeyStream, ClientError> {
        KeyStream::new(&self.parameters, parameters, &self.secret, specs, session)
    }

    /// 32 secret bytes for [`KeyStream`]s. Store them with the secret until all keys have arrived. They serve any list
    /// of keys.
    ///
    /// # Errors
    /// [`ClientError::Ring`] for a client of given entropy in a forked child, or if the operating system returns no
    /// random bytes.
    pub fn session(&mut self) -> Result<Zeroizing<[u8; 32]>, ClientError> {
        self.rng.begin()?;
        let mut session = Zeroizing::new([0; 32]);
        self.rng.fill_bytes(&mut *session);
        Ok(session)
    }

    /// Encrypts numbers, in units of their last place, with the secret: a seed and one polynomial.
    ///
    /// # Errors
    /// As [`encrypt_symmetric`].
    pub fn encrypt<T: Numbers + ?Sized>(
        &mut self,
        numbers: &T,
        form: Form,
        sink: &mut dyn Sink,
    ) -> Result<(), ClientError> {
        let (parameters, rng) = (&self.parameters, &mut self.rng);
        on_engine!(&mut self.chosen, working, keys, {
            let (engine, limb) = (&working.engine, &mut working.limb);
            encrypt_symmetric(engine, parameters, &keys.secret, self.key, numbers, form, rng, limb, sink)
        })
    }

    /// Decrypts the numbers of an answer, in units of their last place, as many as `numbers` holds.
    ///
    /// # Errors
    /// As [`Answer::read`] and [`Answer::numbers`]; [`ClientError::Rlwe`] for an answer under another secret.
    pub fn decrypt(&mut self, answer: &[u8], numbers: &mut [i64]) -> Result<(), ClientError> {
        let parameters = &self.parameters;
        let answer = Answer::read(parameters, answer)?;
        self.key.join(answer.key(), "the client's secret", "the answer")?;
        on_engine!(&mut self.chosen, working, keys, {
            answer.numbers(
                &working.engine,
                parameters,
                &keys.secret,
                &mut working.limb,
                &mut working.mask,
                numbers,
            )
        })
    }
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Client({:?})", self.parameters)
    }
}

/// Encrypts under another owner's public key, and can do nothing else: for a camera or a sensor.
pub struct Encryptor {
    parameters: ClientParameters,
    key: KeyIdentity,
    chosen: ChosenEngine,
    rng: SecretRng,
}

impl Encryptor {
    /// An encryptor with the public key `bytes` from [`Client::public_key`].
    ///
    /// # Errors
    /// As [`PublicKey::read`]; [`ClientError::Randomness`].
    pub fn new(
        parameters: &ClientParameters,
        public_key: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ClientError> {
        Self::with_engine(parameters, public_key, entropy, EngineChoice::Fastest)
    }

    /// The same on a given engine.
    ///
    /// # Errors
    /// As [`Self::new`]; [`ClientError::Range`] for [`EngineChoice::ShiftAdd`] and a prime that it does not support.
    pub fn with_engine(
        parameters: &ClientParameters,
        public_key: &[u8],
        entropy: &mut dyn Entropy,
        choice: EngineChoice,
    ) -> Result<Self, ClientError> {
        let rng = entropy.generator()?;
        let mut chosen = ChosenEngine::new(parameters.log_n(), parameters.modulus().value(), choice)?;
        let key = on_engine!(&mut chosen, working, keys, {
            let engine = &working.engine;
            let key = PublicKey::read(parameters, public_key)?;
            let residues = |half: Half<'_, _>| {
                let mut out = vec![Default::default(); parameters.n()];
                match half {
                    Half::Residues(residues) => out.copy_from_slice(residues),
                    Half::Packed(bytes) => unpack(parameters.modulus().bits(), bytes, 0, &mut out),
                    Half::Seeded(seed) => engine.uniform(&seed, PUBLIC_KEY, 0, &mut out),
                }
                out
            };
            keys.public = Some([residues(key.b), residues(key.a)]);
            key.key
        });
        Ok(Self { parameters: *parameters, key, chosen, rng })
    }

    /// The parameters of the encryptor.
    pub fn parameters(&self) -> &ClientParameters {
        &self.parameters
    }

    /// Encrypts numbers, in units of their last place.
    ///
    /// # Errors
    /// As [`encrypt()`].
    pub fn encrypt<T: Numbers + ?Sized>(
        &mut self,
        numbers: &T,
        form: Form,
        sink: &mut dyn Sink,
    ) -> Result<(), ClientError> {
        let (parameters, rng) = (&self.parameters, &mut self.rng);
        on_engine!(&mut self.chosen, working, keys, {
            // Set when the encryptor was made.
            let Some([b, a]) = &keys.public else { return Ok(()) };
            let key = PublicKey { b: Half::Residues(b), a: Half::Residues(a), key: self.key };
            let (engine, mask, limb) = (&working.engine, &mut working.mask, &mut working.limb);
            encrypt(engine, parameters, &key, numbers, form, rng, mask, limb, sink)
        })
    }
}

impl core::fmt::Debug for Encryptor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Encryptor({:?})", self.parameters)
    }
}
