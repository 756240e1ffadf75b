use core::fmt;

use keywright_ring::{Buffer, Evaluation, Poly, Seed, StreamId, sampling};
use zeroize::Zeroize;

use crate::parallel::for_each_item;
use crate::{KeyIdentity, Parameters, SecretKey};

/// Stream object of the uniform halves of public keys.
pub const PUBLIC_KEY_STREAM: u64 = 3 << 40;

/// An encryption of zero `(b, a)` over all ciphertext primes, `b = -a s + e`; `a` is expanded from a seed.
#[derive(Clone)]
pub struct PublicKey {
    parameters: Parameters,
    identity: KeyIdentity,
    seed: Seed,
    b: Poly<Evaluation>,
    a: Poly<Evaluation>,
}

impl PublicKey {
    pub(crate) fn generate(secret: &SecretKey, rng: &mut sampling::SecretRng) -> Self {
        // If the operation cannot begin, draws are fresh nevertheless: see `SecretRng`.
        let _ = rng.begin();
        Self::from_seed(secret, rng.public_seed(), rng)
    }

    /// The public key `(-a s + e, a)` whose uniform half is expanded from a given seed. Parties that agree on a seed
    /// add their first halves to get the public key of the sum of their secrets. Use a seed once per secret: two keys
    /// of one secret and seed differ only in their errors.
    pub fn from_seed(secret: &SecretKey, seed: Seed, rng: &mut sampling::SecretRng) -> Self {
        let parameters = secret.parameters();
        let (ring, n) = (parameters.ring(), parameters.n());
        let error = sampling::Samples::gaussian(n, rng);
        let b = Poly::unspecified(n, parameters.max_level() + 1);
        let mut key = Self::expand(parameters, secret.identity(), seed, b);
        let a = &key.a;
        for_each_item(key.b.limbs_mut().collect(), |i, limb: &mut [u64]| {
            let (m, backend) = (ring.modulus(i), ring.backend());
            let mut negated = Buffer::unspecified(n);
            negated.copy_from_slice(secret.limb(i));
            backend.neg_assign(m, &mut negated);
            ring.forward_small_limb(i, &error, limb, &[]);
            backend.mul_add_assign(m, limb, a.limb(i), &negated);
            negated.zeroize();
        });
        key
    }

    /// A public key from its secret's identity, its stored half and its seed.
    ///
    /// # Panics
    /// Unless `b` has one limb of `N` words per ciphertext prime.
    pub fn expand(parameters: &Parameters, identity: KeyIdentity, seed: Seed, b: Poly<Evaluation>) -> Self {
        assert!(
            b.n() == parameters.n() && b.limb_count() == parameters.max_level() + 1,
            "{b:?} is not the half of a public key over {} primes of degree {}",
            parameters.max_level() + 1,
            parameters.n()
        );
        let ring = parameters.ring();
        let mut a = Poly::unspecified(parameters.n(), parameters.max_level() + 1);
        for_each_item(a.limbs_mut().collect(), |i, limb: &mut [u64]| {
            let id = StreamId { object: PUBLIC_KEY_STREAM, digit: 0, limb: i as u16 };
            ring.backend().expand_uniform(&seed, id, ring.modulus(i), limb);
        });
        Self { parameters: parameters.clone(), identity, seed, b, a }
    }

    /// The parameters of the key.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The identity of its secret.
    pub fn identity(&self) -> KeyIdentity {
        self.identity
    }

    /// Seed of the uniform half.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// The stored half.
    pub fn b(&self) -> &Poly<Evaluation> {
        &self.b
    }

    /// The uniform half.
    pub fn a(&self) -> &Poly<Evaluation> {
        &self.a
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({:?})", self.parameters)
    }
}
