use alloc::vec::Vec;

use keywright_ring::sampling::SecretRng;
use zeroize::Zeroizing;

use super::MasterParameters;
use crate::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, RlweError, SecretKey, StoredKey, SwitchingKey,
};

/// The master keys of one client: switching keys over [`MasterParameters::chain`]. A server derives all Galois keys
/// that it needs from them, any number of times.
#[derive(Debug, Clone)]
pub struct MasterKeys {
    parameters: MasterParameters,
    keys: EvaluationKeys,
}

impl MasterKeys {
    /// An empty set.
    pub fn new(parameters: &MasterParameters) -> Self {
        Self { parameters: parameters.clone(), keys: EvaluationKeys::new(parameters.chain()) }
    }

    /// Makes the smallest master keys of these Galois elements, seeded, for derived keys up to `level`.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] for the secret of other parameters; as [`MasterParameters::spec`].
    pub fn generate(
        parameters: &MasterParameters,
        secret: &SecretKey,
        rng: SecretRng,
        elements: &[u64],
        level: usize,
    ) -> Result<Self, RlweError> {
        let specs =
            elements.iter().map(|&g| parameters.spec(g, level, true)).collect::<Result<Vec<_>, _>>()?;
        let mut masters = Self::new(parameters);
        masters.generate_specs(secret, rng, &specs)?;
        Ok(masters)
    }

    /// Makes the master keys of these specs, over the chain.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] for the secret of other parameters; the errors of [`KeySpec::validate`],
    /// including security at the modulus of the master key; [`RlweError::NotGalois`].
    pub fn generate_specs(
        &mut self,
        secret: &SecretKey,
        rng: SecretRng,
        specs: &[KeySpec],
    ) -> Result<(), RlweError> {
        let evaluation = self.parameters.evaluation();
        evaluation.require_same(secret.parameters(), "the master keys", "the secret")?;
        // The same coefficients, modulo the primes of the chain.
        let coefficients = Zeroizing::new(secret.coefficients().to_vec());
        let secret = SecretKey::from_ternary(self.parameters.chain(), alloc::vec![coefficients])?;
        let mut generator = KeyGenerator::new(&secret, rng);
        for spec in specs {
            require_galois(spec)?;
            let key = generator.switching_key(spec)?;
            self.insert(key)?;
        }
        Ok(())
    }

    /// Adds a master key.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] for a key that is not over this chain; [`RlweError::NotGalois`].
    pub fn insert(&mut self, key: SwitchingKey) -> Result<(), RlweError> {
        require_galois(key.spec())?;
        self.keys.insert(key)
    }

    /// The chain.
    pub fn parameters(&self) -> &MasterParameters {
        &self.parameters
    }

    /// The keys, over the chain.
    pub fn keys(&self) -> &EvaluationKeys {
        &self.keys
    }

    /// Bytes of all keys in memory.
    pub fn bytes(&self) -> usize {
        self.keys.bytes()
    }

    /// Galois elements that have a master key for derived keys of this chain level, ascending.
    pub fn elements(&self, chain_level: usize) -> Vec<u64> {
        let reaches = |key: &&StoredKey| key.spec().level >= chain_level;
        let mut elements: Vec<u64> = self
            .keys
            .iter()
            .filter(reaches)
            .filter_map(|key| if let KeyElement::Galois(g) = key.spec().element { Some(g) } else { None })
            .collect();
        elements.dedup();
        elements
    }
}

/// The Galois element of a key.
///
/// # Errors
/// [`RlweError::NotGalois`].
pub(super) fn require_galois(spec: &KeySpec) -> Result<u64, RlweError> {
    match spec.element {
        KeyElement::Galois(g) => Ok(g),
        element => Err(RlweError::NotGalois(element)),
    }
}
