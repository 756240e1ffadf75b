use std::fmt;
use std::sync::OnceLock;

use keywright_bfv::{BfvParameters, Ciphertext, Evaluator};
use keywright_rlwe::{EvaluationKeys, KeyIdentity, for_each_item};

use crate::answer::{Answer, AnswerShape};
use crate::error::in_range;
use crate::expansion::{Expansion, Part};
use crate::query::{require_coefficients, require_odd};
use crate::{MAX_ROWS, SearchError};

/// At most `N` vectors: a ciphertext of every component, with one vector in each coefficient.
struct Block {
    components: Vec<Ciphertext>,
    /// What is added to the inner products, if anything is.
    addend: Option<Ciphertext>,
}

/// Vectors that their owner encrypted, in blocks of `N`. The server knows their number and dimension.
///
/// # Invariant
/// Every block has `dimension` ciphertexts of these parameters and of `level`, under one key, in coefficients. All
/// blocks or none have an addend. Coefficients from `rows` on are encryptions of 0, if the owner keeps the rule of
/// [`Self::append`].
pub struct EncryptedIndex {
    parameters: BfvParameters,
    dimension: usize,
    level: usize,
    rows: usize,
    blocks: Vec<Block>,
}

impl EncryptedIndex {
    /// An empty index, of ciphertexts at a level.
    ///
    /// # Errors
    /// [`SearchError::Range`] for an even plaintext modulus, a dimension that is 0 or above `N`, and a level above the
    /// highest.
    pub fn new(parameters: &BfvParameters, dimension: usize, level: usize) -> Result<Self, SearchError> {
        require_odd(parameters)?;
        in_range("dimension", dimension as u64, 1, parameters.rlwe().n() as u64)?;
        in_range("level of a ciphertext", level as u64, 0, parameters.max_level() as u64)?;
        Ok(Self { parameters: parameters.clone(), dimension, level, rows: 0, blocks: Vec::new() })
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
        self.blocks
            .iter()
            .flat_map(|block| block.components.iter().chain(&block.addend))
            .map(Ciphertext::bytes)
            .sum()
    }

    /// The ciphertexts of a block: of its components, and of the addends if it has them.
    ///
    /// # Errors
    /// [`SearchError::Range`] past the last block.
    pub fn read(&self, block: usize) -> Result<Vec<Ciphertext>, SearchError> {
        in_range("block", block as u64, 0, (self.blocks.len() as u64).saturating_sub(1))?;
        let block = self.blocks.get(block).ok_or(SearchError::Empty)?;
        Ok(block.components.iter().chain(&block.addend).cloned().collect())
    }

    /// Adds `rows` vectors, by a ciphertext for each component and, with `dimension + 1` ciphertexts, one of what is
    /// added to their inner products. They belong to one block: coefficient `self.rows() % N` has the first vector, the
    /// next ones follow, and all others are 0.
    ///
    /// # Errors
    /// [`SearchError::Range`] for another number of ciphertexts or another level, no vectors or more than the block
    /// has room for, and an index that is full; [`SearchError::Bfv`] for ciphertexts that do not fit the index. Nothing
    /// is added then.
    pub fn append(&mut self, rows: usize, mut components: Vec<Ciphertext>) -> Result<(), SearchError> {
        let (n, dimension) = (self.parameters.rlwe().n(), self.dimension);
        let with_addend = self.blocks.first().map(|block| block.addend.is_some());
        let least = dimension + usize::from(with_addend.unwrap_or(false));
        let most = dimension + usize::from(with_addend.unwrap_or(true));
        in_range("number of ciphertexts of a block", components.len() as u64, least as u64, most as u64)?;
        let room = n - self.rows % n;
        in_range("number of vectors of a block", rows as u64, 1, room as u64)?;
        in_range("number of vectors", (self.rows + rows) as u64, 1, MAX_ROWS as u64)?;
        let first = self.blocks.first().and_then(|block| block.components.first()).or(components.first());
        let key = first.map_or(KeyIdentity::UNKNOWN, Ciphertext::key);
        for ciphertext in &components {
            self.parameters.require_same(&ciphertext.parameters, "the index", "the ciphertext")?;
            key.join(ciphertext.key(), "one ciphertext of the index", "another")?;
            require_coefficients(ciphertext)?;
            in_range(
                "level of a ciphertext",
                ciphertext.level() as u64,
                self.level as u64,
                self.level as u64,
            )?;
        }
        if self.rows.is_multiple_of(n) {
            let addend = components.drain(dimension..).next();
            self.blocks.push(Block { components, addend });
        } else {
            let keys = EvaluationKeys::new(self.parameters.rlwe());
            let evaluator = Evaluator::new(&self.parameters, &keys)?;
            let block = self.blocks.last_mut().ok_or(SearchError::Empty)?;
            let sums = block.components.iter().chain(&block.addend).zip(&components);
            let mut sums = sums.map(|(a, b)| evaluator.add(a, b)).collect::<Result<Vec<_>, _>>()?;
            block.addend = sums.drain(dimension..).next();
            block.components = sums;
        }
        self.rows += rows;
        Ok(())
    }

    /// The inner products of an encrypted query with every vector, plus the addends. The keys are those of
    /// [`crate::expansion_elements`] and a relinearization key.
    ///
    /// # Errors
    /// As [`crate::Index::answer`]; [`keywright_bfv::BfvError::NoiseExhausted`] if the modulus is too small for the
    /// products.
    pub fn answer(&self, evaluator: &Evaluator<'_>, query: &Ciphertext) -> Result<Answer, SearchError> {
        self.parameters.require_same(evaluator.parameters(), "the index", "the evaluator")?;
        require_coefficients(query)?;
        if self.rows == 0 {
            return Err(SearchError::Empty);
        }
        let expansion = Expansion::new(evaluator, self.dimension)?;
        let whole = Part { first: 0, ciphertext: query.clone() };
        let mut factors = expansion.expand(vec![whole], 0..expansion.depth())?;
        for part in &mut factors {
            part.ciphertext = evaluator.mod_switch_to(&part.ciphertext, self.level)?;
        }
        let sums: Vec<OnceLock<Result<Ciphertext, SearchError>>> =
            self.blocks.iter().map(|_| OnceLock::new()).collect();
        for_each_item(self.blocks.iter().zip(&sums).collect(), |_, (block, sum): (&Block, &OnceLock<_>)| {
            let _ = sum.set(inner_product(evaluator, block, &factors));
        });
        let sums = sums.into_iter().filter_map(OnceLock::into_inner).collect::<Result<Vec<_>, _>>()?;
        let noisier =
            |a: &&Ciphertext, b: &&Ciphertext| a.estimate.log_bound().total_cmp(&b.estimate.log_bound());
        let estimate = sums.iter().max_by(noisier).ok_or(SearchError::Empty)?.estimate;
        let shape = AnswerShape::new(&self.parameters, self.rows, estimate)?;
        let key = query.key().or(sums[0].key());
        let halves = sums.into_iter().filter_map(|sum| <[_; 2]>::try_from(sum.rlwe.polys).ok()).collect();
        Ok(Answer::switched(&self.parameters, key, shape, halves))
    }
}

/// `sum_i x_i q_i` plus the addends, relinearized once, at level 0.
fn inner_product(
    evaluator: &Evaluator<'_>,
    block: &Block,
    factors: &[Part],
) -> Result<Ciphertext, SearchError> {
    let mut sum: Option<Ciphertext> = None;
    for part in factors {
        let product = evaluator.multiply_lazy(&block.components[part.first], &part.ciphertext)?;
        match &mut sum {
            None => sum = Some(product),
            Some(sum) => evaluator.add_assign(sum, &product)?,
        }
    }
    let mut sum = evaluator.relinearize(&sum.ok_or(SearchError::Empty)?)?;
    if let Some(addend) = &block.addend {
        evaluator.add_assign(&mut sum, addend)?;
    }
    Ok(evaluator.mod_switch_to(&sum, 0)?)
}

impl fmt::Debug for EncryptedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedIndex({} vectors of {} components)", self.rows, self.dimension)
    }
}
