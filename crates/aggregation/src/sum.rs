use std::collections::BTreeSet;

use keywright_ring::Seed;

use crate::error::in_range;
use crate::{AggregationError, Binding, EncryptedUpdate, Residues, RunId, SumParameters};

/// One summand of a sum: the data for decrypting it, and its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contributor {
    /// The client of the update.
    pub client: u64,
    /// Its claimed weight.
    pub weight: u32,
    /// Seed of its uniform half.
    pub seed: Seed,
}

/// The sum of the updates of one round, computed without a key.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedSum {
    session: RunId,
    round: u32,
    contributors: Vec<Contributor>,
    residues: Residues,
}

impl EncryptedSum {
    /// Adds updates of one session and round, each client once. Reads every residue once; accumulators stay in the
    /// cache.
    ///
    /// # Errors
    /// [`AggregationError::Range`] for no update or more than the modulus can hold, [`AggregationError::Mismatch`],
    /// [`AggregationError::Duplicate`].
    pub fn of(parameters: &SumParameters, updates: &[&EncryptedUpdate]) -> Result<Self, AggregationError> {
        in_range("number of updates of a sum", updates.len() as u64, 1, parameters.capacity().into())?;
        let first = updates[0];
        let width = parameters.value_bytes() as u64;
        for update in updates {
            let (binding, client) = (update.binding(), update.binding().client);
            let mismatch = |what, found: String, expected: String| {
                Err(AggregationError::Mismatch { what, client, found, expected })
            };
            if binding.session != first.binding().session {
                return mismatch("session", hex(&binding.session), hex(&first.binding().session));
            }
            if binding.round != first.binding().round {
                return mismatch("round", binding.round.to_string(), first.binding().round.to_string());
            }
            if update.count() != first.count() {
                return mismatch("number of values", update.count().to_string(), first.count().to_string());
            }
            in_range("bytes of a residue", update.residues().width() as u64, width, width)?;
        }
        let contributors: Vec<_> = updates
            .iter()
            .map(|update| Contributor {
                client: update.binding().client,
                weight: update.binding().weight,
                seed: *update.seed(),
            })
            .collect();
        let parts: Vec<_> = updates.iter().map(|update| update.residues()).collect();
        let Binding { session, round, .. } = *first.binding();
        require_distinct(&contributors)?;
        let residues = Residues::sum(parameters.modulus(), &parts);
        Ok(Self { session, round, contributors, residues })
    }

    /// A sum from its stored parts.
    ///
    /// # Errors
    /// [`AggregationError::Range`], [`AggregationError::Duplicate`] as in [`Self::of`].
    pub fn new(
        parameters: &SumParameters,
        session: RunId,
        round: u32,
        contributors: Vec<Contributor>,
        residues: Residues,
    ) -> Result<Self, AggregationError> {
        let inputs = contributors.len() as u64;
        in_range("number of updates of a sum", inputs, 1, parameters.capacity().into())?;
        in_range("number of values", residues.count() as u64, 1, u32::MAX.into())?;
        let width = parameters.value_bytes() as u64;
        in_range("bytes of a residue", residues.width() as u64, width, width)?;
        for contributor in &contributors {
            in_range("weight", contributor.weight.into(), 1, u32::MAX.into())?;
        }
        require_distinct(&contributors)?;
        Ok(Self { session, round, contributors, residues })
    }

    /// The run.
    pub fn session(&self) -> &RunId {
        &self.session
    }

    /// The round of its updates.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Its summands.
    pub fn contributors(&self) -> &[Contributor] {
        &self.contributors
    }

    /// The added residues.
    pub fn residues(&self) -> &Residues {
        &self.residues
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.residues.count()
    }

    /// Sum of the claimed weights.
    pub fn total_weight(&self) -> u64 {
        self.contributors.iter().map(|contributor| u64::from(contributor.weight)).sum()
    }

    /// The claims of a summand.
    pub(crate) fn binding(&self, contributor: &Contributor) -> Binding {
        let Contributor { client, weight, .. } = *contributor;
        Binding { session: self.session, round: self.round, client, weight }
    }
}

fn require_distinct(contributors: &[Contributor]) -> Result<(), AggregationError> {
    let mut seen = BTreeSet::new();
    match contributors.iter().find(|contributor| !seen.insert(contributor.client)) {
        Some(twice) => Err(AggregationError::Duplicate(twice.client)),
        None => Ok(()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl core::fmt::Debug for EncryptedSum {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (inputs, count) = (self.contributors.len(), self.count());
        write!(f, "EncryptedSum(round {}, {inputs} updates, {count} values)", self.round)
    }
}
