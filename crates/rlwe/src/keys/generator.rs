use alloc::vec::Vec;

use keywright_ring::{Automorphism, Buffer, Poly, galois_inverse, sampling};
use zeroize::Zeroize;

use crate::parallel::for_each_item;
use crate::stream_id;
use crate::{
    KeyElement, KeySpec, Parameters, PublicKey, RlweError, SecretDistribution, SecretKey, SwitchingKey,
    UniformPart,
};

/// Makes keys for one secret, from one generator of randomness.
pub struct KeyGenerator<'s> {
    secret: &'s SecretKey,
    rng: sampling::SecretRng,
}

/// The secrets of one switching key modulo one prime, in evaluation form.
struct SecretLimbs {
    /// `-s`, the negated target secret.
    negated_target: Buffer,
    /// `P s'` for the source secret.
    scaled_source: Buffer,
}

impl Drop for SecretLimbs {
    fn drop(&mut self) {
        self.negated_target.zeroize();
        self.scaled_source.zeroize();
    }
}

impl<'s> KeyGenerator<'s> {
    /// A generator for one secret.
    pub fn new(secret: &'s SecretKey, rng: sampling::SecretRng) -> Self {
        Self { secret, rng }
    }

    pub(crate) fn parameters(&self) -> &'s Parameters {
        self.secret.parameters()
    }

    /// A public key over all ciphertext primes.
    pub fn public_key(&mut self) -> PublicKey {
        PublicKey::generate(self.secret, &mut self.rng)
    }

    /// A relinearization or Galois key, or a key between rings, of the ring that the spec names.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`] and [`KeyElement::require_moving`]; [`RlweError::SourceSecret`] for a
    /// spec that switches from another secret, which needs [`Self::switching_key_from`]; [`RlweError::EphemeralSecret`]
    /// for one that [`Self::switching_keys`] makes with the others of its ephemeral secret.
    pub fn switching_key(&mut self, spec: &KeySpec) -> Result<SwitchingKey, RlweError> {
        if let KeyElement::Secret(id) = spec.element {
            return Err(RlweError::SourceSecret(id));
        }
        if spec.element.ephemeral_weight().is_some() {
            return Err(RlweError::EphemeralSecret(spec.element));
        }
        spec.element.require_moving()?;
        spec.validate(self.parameters())?;
        let target = self.secret_of(spec)?;
        let source = match spec.element {
            KeyElement::RingDown { from, part } => {
                self.secret.ring_of_degree(from)?.part_in(target.parameters(), part)
            }
            KeyElement::RingUp { from } => self.secret.ring_of_degree(from)?.embedded_in(target.parameters()),
            _ => return self.generate(spec, target, target),
        };
        self.generate(spec, &source, target)
    }

    /// The secret of a key's ring.
    fn secret_of(&self, spec: &KeySpec) -> Result<&'s SecretKey, RlweError> {
        self.secret.ring_like(self.parameters().ring_named(spec.subring)?)
    }

    /// A ternary secret of that weight, of the ring of a key.
    pub(crate) fn ephemeral_secret(&mut self, spec: &KeySpec, weight: usize) -> Result<SecretKey, RlweError> {
        let distribution = SecretDistribution::Sparse { weight };
        SecretKey::sample_from(self.parameters().ring_named(spec.subring)?, distribution, &mut self.rng)
    }

    /// A key to an ephemeral secret, or back.
    pub(crate) fn ephemeral_key(
        &mut self,
        spec: &KeySpec,
        ephemeral: &SecretKey,
    ) -> Result<SwitchingKey, RlweError> {
        let secret = self.secret_of(spec)?;
        match spec.element {
            KeyElement::DenseToSparse(_) => self.generate(spec, secret, ephemeral),
            KeyElement::RingUpToSparse { from, .. } => {
                let source = self.secret.ring_of_degree(from)?.embedded_in(ephemeral.parameters());
                self.generate(spec, &source, ephemeral)
            }
            _ => self.generate(spec, ephemeral, secret),
        }
    }

    /// A key that switches ciphertexts under `source`, the secret of number `id`, to this generator's secret. Ignores
    /// the element of `spec`.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`]; [`RlweError::MixedParameters`].
    pub fn switching_key_from(
        &mut self,
        source: &SecretKey,
        id: u64,
        spec: &KeySpec,
    ) -> Result<SwitchingKey, RlweError> {
        self.parameters().require_same(source.parameters(), "the generator", "the source secret")?;
        let (element, subring) = (KeyElement::Secret(id), self.parameters().as_subring());
        self.generate(&KeySpec { element, subring, ..spec.clone() }, source, self.secret)
    }

    /// A key between secrets of one ring, that of the spec.
    fn generate(
        &mut self,
        spec: &KeySpec,
        source: &SecretKey,
        target: &SecretKey,
    ) -> Result<SwitchingKey, RlweError> {
        let parameters = target.parameters();
        let (ring, n) = (parameters.ring(), parameters.n());
        let digits = spec.validate(parameters)?;
        // The automorphism follows the switch, so the target secret is `s(X^(1/g))`.
        let inverse = match spec.element {
            KeyElement::Galois(g) | KeyElement::SparseToDenseGalois { galois: g, .. } => {
                Some(Automorphism::new(parameters.log_n(), galois_inverse(parameters.log_n(), g))?)
            }
            _ => None,
        };
        self.rng.begin()?;
        let primes: Vec<usize> = spec.primes().collect();
        let seed = self.rng.public_seed();
        let errors: Vec<_> = digits.iter().map(|_| sampling::Samples::gaussian(n, &mut self.rng)).collect();
        let rows = |count| (0..count).map(|_| Poly::unspecified(n, primes.len())).collect::<Vec<_>>();
        let mut b = rows(digits.len());
        let mut a = rows(if spec.seeded { 0 } else { digits.len() });

        // One task per prime: it owns that limb of every row.
        let mut b_limbs: Vec<_> = b.iter_mut().map(|row| row.limbs_mut()).collect();
        let mut a_limbs: Vec<_> = a.iter_mut().map(|row| row.limbs_mut()).collect();
        let tasks: Vec<_> = primes
            .iter()
            .map(|&prime| {
                let b: Vec<&mut [u64]> = b_limbs.iter_mut().filter_map(Iterator::next).collect();
                let a: Vec<&mut [u64]> = a_limbs.iter_mut().filter_map(Iterator::next).collect();
                (prime, b, a)
            })
            .collect();
        for_each_item(tasks, |_, (prime, mut b, mut a)| {
            let (m, backend) = (ring.modulus(prime), ring.backend());
            let secrets = secret_limbs(spec, inverse.as_ref(), [source, target], prime);
            let mut scratch = Buffer::unspecified(n);
            for (j, digit) in digits.iter().enumerate() {
                let uniform: &mut [u64] = if spec.seeded { &mut scratch } else { a[j] };
                backend.expand_uniform(&seed, stream_id(spec.element, j, prime), m, uniform);
                ring.forward_small_limb(prime, &errors[j], b[j], &[]);
                backend.mul_add_assign(m, b[j], uniform, &secrets.negated_target);
                if digit.contains(&prime) {
                    backend.add_assign(m, b[j], &secrets.scaled_source);
                }
            }
        });
        drop((b_limbs, a_limbs));
        self.rng.require_operation()?;
        let uniform = if spec.seeded { UniformPart::Seeded(seed) } else { UniformPart::stored(a) };
        SwitchingKey::from_parts(parameters, self.secret.identity(), spec.clone(), b, uniform)
    }
}

/// The secrets of a key modulo one of its primes, from its source and its target secret.
fn secret_limbs(
    spec: &KeySpec,
    inverse: Option<&Automorphism>,
    [source, target]: [&SecretKey; 2],
    prime: usize,
) -> SecretLimbs {
    let parameters = target.parameters();
    let (ring, n) = (parameters.ring(), parameters.n());
    let (m, backend) = (ring.modulus(prime), ring.backend());
    let mut limbs =
        SecretLimbs { negated_target: Buffer::unspecified(n), scaled_source: Buffer::unspecified(n) };
    match inverse {
        Some(inverse) => backend.permute(inverse, target.limb(prime), &mut limbs.negated_target),
        None => limbs.negated_target.copy_from_slice(target.limb(prime)),
    }
    let s = source.limb(prime);
    match spec.element {
        KeyElement::Relinearization => backend.mul(m, s, s, &mut limbs.scaled_source),
        _ => limbs.scaled_source.copy_from_slice(s),
    }
    backend.neg_assign(m, &mut limbs.negated_target);
    let p = m.shoup(parameters.product(&spec.special, m));
    backend.mul_scalar_assign(m, &mut limbs.scaled_source, p);
    limbs
}
