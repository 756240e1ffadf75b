use std::fmt;
use std::sync::OnceLock;

use keywright_bfv::{BfvError, BfvParameters, Ciphertext, Evaluator, Packing};
use keywright_rlwe::{KeyIdentity, for_each_item};

use crate::answer::{Answer, AnswerShape};
use crate::error::in_range;
use crate::expansion::{Expansion, Part};
use crate::query::require_odd;
use crate::{MAX_ROWS, SearchError};

/// Vectors that their owner encrypted: for each block of `N`, a ciphertext of every component, with one vector in each
/// coefficient. The server knows their number and dimension.
///
/// # Invariant
/// Every block has `dimension` ciphertexts of these parameters, under one key, in coefficients and at one level.
pub struct EncryptedIndex {
    parameters: BfvParameters,
    dimension: usize,
    rows: usize,
    blocks: Vec<Vec<Ciphertext>>,
}

impl EncryptedIndex {
    /// An empty index.
    ///
    /// # Errors
    /// [`SearchError::Range`] for an even plaintext modulus and a dimension that is 0 or above `N`.
    pub fn new(parameters: &BfvParameters, dimension: usize) -> Result<Self, SearchError> {
        require_odd(parameters)?;
        in_range("dimension", dimension as u64, 1, parameters.rlwe().n() as u64)?;
        Ok(Self { parameters: parameters.clone(), dimension, rows: 0, blocks: Vec::new() })
    }

    /// Components of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the ciphertexts.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().flatten().map(Ciphertext::bytes).sum()
    }

    /// Adds a block of `rows` vectors, by a ciphertext for each component. All blocks but the last one are full.
    ///
    /// # Errors
    /// [`SearchError::Range`] for another number of ciphertexts, no vectors or more than `N`, a block after one that is
    /// not full, and an index that is full; [`SearchError::Bfv`] for ciphertexts that do not fit the index.
    pub fn add_block(&mut self, components: Vec<Ciphertext>, rows: usize) -> Result<(), SearchError> {
        let (n, dimension) = (self.parameters.rlwe().n(), self.dimension as u64);
        in_range("number of ciphertexts of a block", components.len() as u64, dimension, dimension)?;
        in_range("number of vectors of a block", rows as u64, 1, n as u64)?;
        in_range("vectors of the last block", (self.rows % n) as u64, 0, 0)?;
        in_range("number of vectors", (self.rows + rows) as u64, 1, MAX_ROWS as u64)?;
        let first = self.blocks.first().and_then(|block| block.first()).or(components.first());
        let (key, level) = first.map_or((KeyIdentity::UNKNOWN, 0), |c| (c.key(), c.level()));
        for ciphertext in &components {
            self.parameters.require_same(&ciphertext.parameters, "the index", "the ciphertext")?;
            key.join(ciphertext.key(), "one ciphertext of the index", "another")?;
            if ciphertext.packing != Packing::Coefficients {
                let (left, right) = (ciphertext.packing, Packing::Coefficients);
                return Err(BfvError::PackingMismatch { left, right }.into());
            }
            in_range("level of a ciphertext", ciphertext.level() as u64, level as u64, level as u64)?;
        }
        self.rows += rows;
        self.blocks.push(components);
        Ok(())
    }

    /// The inner products of an encrypted query with every vector. The keys are those of
    /// [`crate::expansion_elements`] and a relinearization key.
    ///
    /// # Errors
    /// As [`crate::Index::answer`]; [`BfvError::NoiseExhausted`] if the modulus is too small for the products.
    pub fn answer(&self, evaluator: &Evaluator<'_>, query: &Ciphertext) -> Result<Answer, SearchError> {
        self.parameters.require_same(evaluator.parameters(), "the index", "the evaluator")?;
        if query.packing != Packing::Coefficients {
            let (left, right) = (query.packing, Packing::Coefficients);
            return Err(BfvError::PackingMismatch { left, right }.into());
        }
        let level = self.blocks.first().and_then(|block| block.first()).ok_or(SearchError::Empty)?.level();
        let expansion = Expansion::new(evaluator, self.dimension)?;
        let whole = Part { first: 0, ciphertext: query.clone() };
        let mut factors = expansion.expand(vec![whole], 0..expansion.depth())?;
        for part in &mut factors {
            part.ciphertext = evaluator.mod_switch_to(&part.ciphertext, level)?;
        }
        let sums: Vec<OnceLock<Result<Ciphertext, SearchError>>> =
            self.blocks.iter().map(|_| OnceLock::new()).collect();
        for_each_item(self.blocks.iter().zip(&sums).collect(), |_, (block, sum): (&Vec<_>, &OnceLock<_>)| {
            let _ = sum.set(inner_product(evaluator, block, &factors));
        });
        let sums = sums.into_iter().filter_map(OnceLock::into_inner).collect::<Result<Vec<_>, _>>()?;
        let estimate = sums.first().ok_or(SearchError::Empty)?.estimate;
        let shape = AnswerShape::new(&self.parameters, self.rows, estimate)?;
        let key = query.key().or(sums[0].key());
        let halves = sums.into_iter().filter_map(|sum| <[_; 2]>::try_from(sum.rlwe.polys).ok()).collect();
        Ok(Answer::switched(&self.parameters, key, shape, halves))
    }
}

/// `sum_i x_i q_i`, relinearized once, at level 0.
fn inner_product(
    evaluator: &Evaluator<'_>,
    block: &[Ciphertext],
    factors: &[Part],
) -> Result<Ciphertext, SearchError> {
    let mut sum: Option<Ciphertext> = None;
    for part in factors {
        let product = evaluator.multiply_lazy(&block[part.first], &part.ciphertext)?;
        match &mut sum {
            None => sum = Some(product),
            Some(sum) => evaluator.add_assign(sum, &product)?,
        }
    }
    let sum = sum.ok_or(SearchError::Empty)?;
    Ok(evaluator.mod_switch_to(&evaluator.relinearize(&sum)?, 0)?)
}

impl fmt::Debug for EncryptedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedIndex({} vectors of {} components)", self.rows, self.dimension)
    }
}
