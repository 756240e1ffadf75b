use alloc::vec::Vec;
use core::fmt;

use keywright_ring::{Evaluation, Poly, sampling};
use zeroize::{Zeroize, Zeroizing};

use crate::{KeyIdentity, Parameters, RlweError, SecretDistribution};

/// A secret and one for each subring of the parameters, independent of each other; wiped when dropped, never printed.
pub struct SecretKey {
    parameters: Parameters,
    identity: KeyIdentity,
    coefficients: Zeroizing<Vec<i64>>,
    /// Over all primes of the parameters.
    evaluations: Poly<Evaluation>,
    /// In the order of the parameters' subrings.
    subrings: Vec<Self>,
}

impl SecretKey {
    /// Samples a secret of the parameters' distribution, then those of the subrings.
    ///
    /// # Errors
    /// [`RlweError::Ring`] for a Hamming weight above `N`, which [`Parameters`] already refuse, and for a generator of
    /// given entropy in a forked child.
    pub fn sample(parameters: &Parameters, rng: &mut sampling::SecretRng) -> Result<Self, RlweError> {
        let mut secret = Self::sample_from(parameters, parameters.secret(), rng)?;
        secret.subrings =
            parameters.subrings().iter().map(|ring| Self::sample(ring, rng)).collect::<Result<_, _>>()?;
        Ok(secret.identified())
    }

    /// The same with an identity, which its subrings' secrets share.
    fn identified(mut self) -> Self {
        self.identity = KeyIdentity::of_coefficients(&self.coefficients, self.parameters.secret());
        self.subrings.iter_mut().for_each(|secret| secret.identity = self.identity);
        self
    }

    /// Samples a secret of another distribution, for keys that switch to it and are checked for it.
    pub(crate) fn sample_from(
        parameters: &Parameters,
        distribution: SecretDistribution,
        rng: &mut sampling::SecretRng,
    ) -> Result<Self, RlweError> {
        rng.begin()?;
        let mut coefficients = Zeroizing::new(alloc::vec![0; parameters.n()]);
        match distribution {
            SecretDistribution::Ternary => sampling::ternary(rng, &mut coefficients),
            SecretDistribution::Sparse { weight } => {
                sampling::sparse_ternary(rng, weight, &mut coefficients)?
            }
        }
        Ok(Self::from_coefficients(parameters, coefficients))
    }

    /// A secret from the stored ternary coefficients of all its rings: first its own, then those of the subrings in
    /// order.
    ///
    /// # Errors
    /// [`RlweError::Count`] if the number of lists is not that of the rings, the number of coefficients is not the
    /// degree, a coefficient is not in `{-1, 0, 1}`, or the Hamming weight is outside [`SecretDistribution::weights`].
    pub fn from_ternary(parameters: &Parameters, rings: Vec<Zeroizing<Vec<i64>>>) -> Result<Self, RlweError> {
        let required = parameters.subrings().len() + 1;
        let (count, mut rings) = (rings.len(), rings.into_iter());
        let Some(own) = rings.next().filter(|_| count == required) else {
            return Err(RlweError::Count { what: "rings of a secret", count, min: required, max: required });
        };
        let mut secret = Self::from_checked(parameters, own)?;
        secret.subrings = parameters
            .subrings()
            .iter()
            .zip(rings)
            .map(|(ring, coefficients)| Self::from_checked(ring, coefficients))
            .collect::<Result<_, _>>()?;
        Ok(secret.identified())
    }

    /// One ring's secret from untrusted coefficients.
    fn from_checked(parameters: &Parameters, coefficients: Zeroizing<Vec<i64>>) -> Result<Self, RlweError> {
        let n = parameters.n();
        if coefficients.len() != n {
            return Err(RlweError::Count {
                what: "coefficients of a secret",
                count: coefficients.len(),
                min: n,
                max: n,
            });
        }
        let outside = coefficients.iter().filter(|c| c.unsigned_abs() > 1).count();
        if outside > 0 {
            return Err(RlweError::Count {
                what: "non-ternary coefficients of a secret",
                count: outside,
                min: 0,
                max: 0,
            });
        }
        let weight = coefficients.iter().map(|&c| c.unsigned_abs() as usize).sum();
        let weights = parameters.secret().weights(n);
        if !weights.contains(&weight) {
            return Err(RlweError::Count {
                what: "nonzero coefficients of a secret",
                count: weight,
                min: *weights.start(),
                max: *weights.end(),
            });
        }
        Ok(Self::from_coefficients(parameters, coefficients))
    }

    /// A secret of one ring, or a part of one used as a secret, without an identity of its own.
    pub(super) fn from_coefficients(parameters: &Parameters, coefficients: Zeroizing<Vec<i64>>) -> Self {
        let ring = parameters.ring();
        let mut evaluations = Poly::unspecified(parameters.n(), parameters.prime_count());
        for (i, limb) in evaluations.limbs_mut().enumerate() {
            ring.forward_small_limb(i, &coefficients, limb, &[]);
        }
        let (parameters, identity, subrings) = (parameters.clone(), KeyIdentity::UNKNOWN, Vec::new());
        Self { parameters, identity, coefficients, evaluations, subrings }
    }

    /// The parameters of the secret.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The identity that distinguishes its keys and ciphertexts from those of others.
    pub fn identity(&self) -> KeyIdentity {
        self.identity
    }

    /// The secrets of the subrings, from the largest down.
    pub fn subrings(&self) -> &[Self] {
        &self.subrings
    }

    /// The secret of the ring of these parameters, its own or that of a subring.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] if these are not one of the secret's rings.
    pub fn ring_like(&self, parameters: &Parameters) -> Result<&Self, RlweError> {
        core::iter::once(self)
            .chain(&self.subrings)
            .find(|secret| secret.parameters.same(parameters))
            .ok_or(RlweError::MixedParameters { left: "the secret", right: "the object" })
    }

    /// The secret of the ring of that degree.
    ///
    /// # Errors
    /// [`RlweError::NoRing`].
    pub fn ring_of_degree(&self, log_n: u32) -> Result<&Self, RlweError> {
        self.ring_like(self.parameters.ring_of_degree(log_n)?)
    }

    /// Coefficients in `{-1, 0, 1}`. Secret: for the owner's storage only.
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// Residues modulo prime `index` in evaluation form. Secret.
    #[inline]
    pub fn limb(&self, index: usize) -> &[u64] {
        self.evaluations.limb(index)
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.evaluations.zeroize();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}
