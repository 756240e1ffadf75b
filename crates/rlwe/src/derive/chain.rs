use alloc::vec::Vec;

use keywright_ring::ntt_primes;

use crate::{KeyElement, KeySpec, Parameters, ParametersLiteral, RlweError};

/// The primes of master keys: those of the evaluation parameters, all of which are in the digits of a derived key, and
/// *extra* primes `P'`, by which master keys divide.
///
/// The chain numbers the special primes first: index `j < k` is special prime `p_j`, index `k + i` is `q_i`, and the
/// extra primes start at `k + L + 1`. So the primes of any key at level `l` are among the first `k + l + 1`, and a
/// master key for lower levels is one at a lower level of the chain.
#[derive(Debug, Clone)]
pub struct MasterParameters {
    evaluation: Parameters,
    chain: Parameters,
}

/// Most extra primes.
pub const MAX_EXTRA_PRIMES: usize = 32;

fn require_count(count: usize) -> Result<(), RlweError> {
    if (1..=MAX_EXTRA_PRIMES).contains(&count) {
        return Ok(());
    }
    Err(RlweError::Count { what: "extra primes of master keys", count, min: 1, max: MAX_EXTRA_PRIMES })
}

impl MasterParameters {
    /// The chain of these extra primes.
    ///
    /// # Errors
    /// [`RlweError::Count`] for no extra primes or more than [`MAX_EXTRA_PRIMES`], or more primes than parameters can
    /// have; [`RlweError::Ring`] for one that is not a prime of this ring or is there already; [`RlweError::Insecure`]
    /// if the primes of the parameters alone exceed the bound.
    pub fn new(evaluation: &Parameters, extra: Vec<u64>) -> Result<Self, RlweError> {
        require_count(extra.len())?;
        let literal = evaluation.literal();
        let q = literal.p.iter().chain(&literal.q).copied().collect();
        let chain = ParametersLiteral { q, p: extra, subrings: Vec::new(), ..literal.clone() };
        let chain = Parameters::with_backend(chain, evaluation.ring().backend())?;
        Ok(Self { evaluation: evaluation.clone(), chain })
    }

    /// The chain of the largest primes of the given widths that the parameters do not use.
    ///
    /// # Errors
    /// As [`Self::new`]; [`RlweError::Ring`] if there are not enough primes of a width.
    pub fn from_bits(evaluation: &Parameters, bits: &[u32]) -> Result<Self, RlweError> {
        require_count(bits.len())?;
        let literal = evaluation.literal();
        let mut taken: Vec<u64> = literal.q.iter().chain(&literal.p).copied().collect();
        let known = taken.len();
        for &width in bits {
            taken.push(ntt_primes(literal.log_n, width, 1, &taken)?[0]);
        }
        Self::new(evaluation, taken.split_off(known))
    }

    /// The parameters of derived keys.
    pub fn evaluation(&self) -> &Parameters {
        &self.evaluation
    }

    /// The parameters of master keys.
    pub fn chain(&self) -> &Parameters {
        &self.chain
    }

    /// The extra primes.
    pub fn extra(&self) -> &[u64] {
        &self.chain.literal().p
    }

    /// Number of special primes of the evaluation parameters.
    fn specials(&self) -> usize {
        self.evaluation.special_primes().len()
    }

    /// The position of a prime of the evaluation parameters in the chain.
    pub fn chain_index(&self, prime: usize) -> usize {
        let ciphertext_primes = self.evaluation.max_level() + 1;
        if prime < ciphertext_primes { self.specials() + prime } else { prime - ciphertext_primes }
    }

    /// The index in the evaluation parameters of a prime of the chain; `None` for an extra prime.
    pub fn evaluation_index(&self, index: usize) -> Option<usize> {
        if index >= self.evaluation.prime_count() {
            return None;
        }
        let specials = self.specials();
        Some(if index < specials { self.evaluation.max_level() + 1 + index } else { index - specials })
    }

    /// Lowest level of the chain that has all primes of a key.
    pub fn chain_level(&self, spec: &KeySpec) -> usize {
        spec.primes().map(|prime| self.chain_index(prime)).max().unwrap_or(0)
    }

    /// The master key for keys up to `level`, over the chain, with this many special primes: extra primes before
    /// dropped ciphertext primes.
    ///
    /// # Errors
    /// [`RlweError::Level`]; [`RlweError::Count`] for no special primes or more than there are; the errors of
    /// [`KeySpec::validate`].
    pub fn spec_of(
        &self,
        galois: u64,
        level: usize,
        special: usize,
        seeded: bool,
    ) -> Result<KeySpec, RlweError> {
        self.evaluation.require_level(level)?;
        let candidates = self.special_candidates(level);
        if !(1..=candidates.len()).contains(&special) {
            let what = "special primes of a master key";
            return Err(RlweError::Count { what, count: special, min: 1, max: candidates.len() });
        }
        let spec = self.candidate(galois, level, &candidates[..special], seeded);
        spec.validate(&self.chain)?;
        Ok(spec)
    }

    /// The smallest master key for keys up to `level`: [`Self::spec_of`] over all secure numbers of special primes.
    ///
    /// # Errors
    /// [`RlweError::Level`]; the errors of [`KeySpec::validate`] if no number is legal.
    pub fn spec(&self, galois: u64, level: usize, seeded: bool) -> Result<KeySpec, RlweError> {
        self.evaluation.require_level(level)?;
        let candidates = self.special_candidates(level);
        let best = (1..=candidates.len())
            .map(|special| self.candidate(galois, level, &candidates[..special], seeded))
            .filter_map(|candidate| Some((candidate.bytes(&self.chain).ok()?, candidate)))
            .min_by_key(|(bytes, _)| *bytes);
        best.map_or_else(|| self.spec_of(galois, level, 1, seeded), |(_, spec)| Ok(spec))
    }

    /// Candidates for the special primes of a master key for keys up to `level`, secure or not: the spec is checked
    /// later.
    fn special_candidates(&self, level: usize) -> Vec<usize> {
        self.chain.widths().special_candidates(self.specials() + level, f64::INFINITY)
    }

    fn candidate(&self, galois: u64, level: usize, special: &[usize], seeded: bool) -> KeySpec {
        let level = self.specials() + level;
        let element = KeyElement::Galois(galois);
        KeySpec { element, level, alpha: level + 1, special: special.to_vec(), seeded, subring: None }
    }
}
