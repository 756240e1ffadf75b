use keywright_ring::Seed;

use crate::error::in_range;
use crate::{AggregationError, Binding, Residues, SumParameters};

/// One client's encrypted vector: its claims, a seed, and one residue per value.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedUpdate {
    binding: Binding,
    seed: Seed,
    residues: Residues,
}

impl EncryptedUpdate {
    /// An update from its stored parts.
    ///
    /// # Errors
    /// [`AggregationError::Range`] if there is no value, or more than `2^32 - 1`, or the residues have another width.
    pub fn new(
        parameters: &SumParameters,
        binding: Binding,
        seed: Seed,
        residues: Residues,
    ) -> Result<Self, AggregationError> {
        in_range("number of values", residues.count() as u64, 1, u32::MAX.into())?;
        let width = parameters.value_bytes() as u64;
        in_range("bytes of a residue", residues.width() as u64, width, width)?;
        in_range("weight", binding.weight.into(), 1, u32::MAX.into())?;
        Ok(Self { binding, seed, residues })
    }

    /// Its claims.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Seed of its uniform half.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Its residues, in the order of the values.
    pub fn residues(&self) -> &Residues {
        &self.residues
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.residues.count()
    }
}

impl core::fmt::Debug for EncryptedUpdate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Binding { round, client, weight, .. } = self.binding;
        write!(f, "EncryptedUpdate(round {round}, client {client}, weight {weight}, {} values)", self.count())
    }
}
