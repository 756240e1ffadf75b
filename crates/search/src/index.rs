use std::fmt;

use keywright_bfv::{BfvParameters, Ciphertext, Evaluator, NoiseEstimate, Packing};
use keywright_ring::backend::UniformRow;
use keywright_ring::{Buffer, Evaluation, Poly};
use keywright_rlwe::for_each_item;

use crate::SearchError;
use crate::answer::{Answer, AnswerShape, MAX_ROWS};
use crate::error::in_range;
use crate::expansion::{Expansion, Part};
use crate::query::{require_coefficients, require_odd};

/// Components of a query whose ciphertexts are in memory at once.
const CHUNK: usize = 128;
/// Components of a block that are transformed before their products are summed: with their factors they stay in the
/// second-level cache.
const GROUP: usize = 8;

/// Both halves of the ciphertext of a block's scores, modulo the first prime.
pub type Halves = [Poly<Evaluation>; 2];

/// `N` vectors: one in each coefficient.
struct Block {
    /// Component `i` of all vectors at `i N .. (i + 1) N`.
    components: Vec<i16>,
    /// What is added to the inner products, if anything is.
    addends: Option<Vec<i64>>,
}

/// Integer vectors of one dimension in the clear, two bytes a component, and what is added to their inner products.
///
/// # Invariant
/// The squared norm of every vector is at most `max_norm2`. Places from `rows` on, and places that were cleared, are
/// zero.
pub struct Index {
    parameters: BfvParameters,
    dimension: usize,
    max_norm2: u64,
    rows: usize,
    blocks: Vec<Block>,
}

impl Index {
    /// An empty index for vectors whose squared norm is at most `max_norm2`.
    ///
    /// # Errors
    /// [`SearchError::Range`] for an even plaintext modulus and a dimension that is 0 or above `N`.
    pub fn new(parameters: &BfvParameters, dimension: usize, max_norm2: u64) -> Result<Self, SearchError> {
        require_odd(parameters)?;
        in_range("dimension", dimension as u64, 1, parameters.rlwe().n() as u64)?;
        Ok(Self { parameters: parameters.clone(), dimension, max_norm2, rows: 0, blocks: Vec::new() })
    }

    /// The parameters of queries and answers.
    pub fn parameters(&self) -> &BfvParameters {
        &self.parameters
    }

    /// Components of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Places in use, cleared ones included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the vectors.
    pub fn bytes(&self) -> usize {
        let addends = |block: &Block| block.addends.as_ref().map_or(0, |addends| 8 * addends.len());
        self.blocks.iter().map(|block| 2 * block.components.len() + addends(block)).sum()
    }

    /// Writes vectors, one after another in `components`, at their places, and what is added to their inner products:
    /// `addends` is empty, or has an integer for each. A place at the end of the index makes it longer. Nothing is
    /// written if any is refused.
    ///
    /// # Errors
    /// [`SearchError::Range`] for slices that do not match, an addend that is not below the plaintext modulus in
    /// absolute value, and a place past the end; [`SearchError::Norm`].
    pub fn write(
        &mut self,
        places: &[usize],
        components: &[i16],
        addends: &[i64],
    ) -> Result<(), SearchError> {
        let count = places.len() as u64;
        let expected = count * self.dimension as u64;
        in_range("number of components", components.len() as u64, expected, expected)?;
        if !addends.is_empty() {
            in_range("number of addends", addends.len() as u64, count, count)?;
        }
        let t = self.parameters.plaintext_modulus();
        for addend in addends {
            in_range("absolute value of an addend", addend.unsigned_abs(), 0, t - 1)?;
        }
        for (row, vector) in components.chunks_exact(self.dimension).enumerate() {
            let value = vector.iter().map(|&x| u64::from(x.unsigned_abs()).pow(2)).sum();
            if value > self.max_norm2 {
                return Err(SearchError::Norm { row, value, max: self.max_norm2 });
            }
        }
        let mut rows = self.rows;
        for &place in places {
            in_range("place", place as u64, 0, rows as u64)?;
            rows = rows.max(place + 1);
        }
        in_range("number of vectors", rows as u64, 0, MAX_ROWS as u64)?;
        self.rows = rows;
        let n = self.parameters.rlwe().n();
        while self.blocks.len() * n < rows {
            self.blocks.push(Block { components: vec![0; self.dimension * n], addends: None });
        }
        for (row, (&place, vector)) in places.iter().zip(components.chunks_exact(self.dimension)).enumerate()
        {
            let (block, column) = (&mut self.blocks[place / n], place % n);
            for (i, &component) in vector.iter().enumerate() {
                block.components[i * n + column] = component;
            }
            if let Some(addends) = &mut block.addends {
                addends[column] = 0;
            }
            if let Some(&addend) = addends.get(row) {
                block.addends.get_or_insert_with(|| vec![0; n])[column] = addend;
            }
        }
        Ok(())
    }

    /// The vectors at some places, one after another.
    ///
    /// # Errors
    /// [`SearchError::Range`] for a place past the end.
    pub fn read(&self, places: &[usize]) -> Result<Vec<i16>, SearchError> {
        let n = self.parameters.rlwe().n();
        let mut out = Vec::with_capacity(places.len() * self.dimension);
        for &place in places {
            in_range("place", place as u64, 0, (self.rows as u64).saturating_sub(1))?;
            let block = &self.blocks.get(place / n).ok_or(SearchError::Empty)?.components;
            out.extend((0..self.dimension).map(|i| block[i * n + place % n]));
        }
        Ok(out)
    }

    /// The shape of an answer, which depends on the parameters, the dimension, the largest norm and the number of
    /// places.
    ///
    /// # Errors
    /// [`SearchError::Empty`]; [`SearchError::Noise`].
    pub fn answer_shape(&self, estimate: NoiseEstimate) -> Result<AnswerShape, SearchError> {
        if self.rows == 0 {
            return Err(SearchError::Empty);
        }
        AnswerShape::new(&self.parameters, self.rows, self.product_estimate(estimate))
    }

    /// The noise of `sum_i x_i(X) q_i`, for ciphertexts of this noise. Errors of different components come from
    /// different coefficients of the query's ciphertext and of the expansion's key switches, so they are independent,
    /// and `sum_i |x_i|^2` is the sum of `N` squared norms of vectors.
    fn product_estimate(&self, factor: NoiseEstimate) -> NoiseEstimate {
        let norms2 = self.parameters.rlwe().n() as f64 * self.max_norm2.max(1) as f64;
        let log_deviation = factor.log_peak + norms2.log2() / 2.0;
        NoiseEstimate { log_deviation, log_peak: log_deviation, order: factor.order }
    }

    /// The inner products of an encrypted query with every place, plus the addends.
    ///
    /// The evaluator's keys are those of [`crate::expansion_elements`]; the query encrypts [`crate::query_values`] in
    /// coefficients, at any level.
    ///
    /// # Errors
    /// [`SearchError::Empty`]; [`SearchError::Noise`]; [`SearchError::Bfv`] for a query of other parameters, of another
    /// packing or of another key, and for a missing key.
    pub fn answer(&self, evaluator: &Evaluator<'_>, query: &Ciphertext) -> Result<Answer, SearchError> {
        let (shape, sums) = self.sums(evaluator, query)?;
        Ok(Answer::switched(&self.parameters, query.key(), shape, sums))
    }

    /// The sums of every block modulo the first prime before they are shortened, and the shape of their answer.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn sums(
        &self,
        evaluator: &Evaluator<'_>,
        query: &Ciphertext,
    ) -> Result<(AnswerShape, Vec<Halves>), SearchError> {
        if self.rows == 0 {
            return Err(SearchError::Empty);
        }
        self.parameters
            .require_same(evaluator.parameters(), "the index", "the evaluator")
            .map_err(SearchError::from)?;
        require_coefficients(query)?;
        let expansion = Expansion::new(evaluator, self.dimension)?;
        let depth = expansion.depth();
        let chunk_depth = depth - (CHUNK.ilog2() as usize).min(depth);
        let whole = Part { first: 0, ciphertext: query.clone() };
        let n = self.parameters.rlwe().n();
        let mut sums: Vec<Halves> =
            self.blocks.iter().map(|_| [Poly::zero(n, 1), Poly::zero(n, 1)]).collect();
        let mut shape = None;
        for part in expansion.expand(vec![whole], 0..chunk_depth)? {
            let mut leaves = expansion.expand(vec![part], chunk_depth..depth)?;
            for leaf in &mut leaves {
                leaf.ciphertext = evaluator.mod_switch_to(&leaf.ciphertext, 0)?;
            }
            if let (None, Some(leaf)) = (&shape, leaves.first()) {
                shape = Some(self.answer_shape(leaf.ciphertext.estimate)?);
            }
            self.add_products(&leaves, &mut sums);
        }
        let shape = shape.ok_or(SearchError::Empty)?;
        for (block, [c0, _]) in self.blocks.iter().zip(&mut sums) {
            if let Some(addends) = &block.addends {
                let t = self.parameters.plaintext_modulus() as i64;
                let residues: Vec<i64> = addends.iter().map(|x| x.rem_euclid(t)).collect();
                self.parameters.encode(&residues, Packing::Coefficients)?.add_scaled_to(c0);
            }
        }
        Ok((shape, sums))
    }

    /// Adds the products of every block with some components of the query. Blocks are independent, and each reads
    /// every ciphertext once.
    fn add_products(&self, leaves: &[Part], sums: &mut [[Poly<Evaluation>; 2]]) {
        let ring = self.parameters.rlwe().ring();
        let (n, m, backend) = (ring.n(), ring.modulus(0), ring.backend());
        for_each_item(
            sums.iter_mut().zip(&self.blocks).collect(),
            |_, (sums, block): (&mut [_; 2], &Block)| {
                let mut transforms = Buffer::unspecified(GROUP * n);
                let mut products = Buffer::unspecified(2 * n);
                let mut integers = vec![0i64; n];
                for group in leaves.chunks(GROUP) {
                    for (part, limb) in group.iter().zip(transforms.chunks_exact_mut(n)) {
                        let components = &block.components[part.first * n..][..n];
                        integers.iter_mut().zip(components).for_each(|(wide, &x)| *wide = x.into());
                        ring.forward_small_limb(0, &integers, limb, &[]);
                    }
                    let digits: Vec<&[u64]> = transforms.chunks_exact(n).take(group.len()).collect();
                    let half = |k: usize| group.iter().map(move |part| part.ciphertext.rlwe.polys[k].limb(0));
                    let b: Vec<&[u64]> = half(0).collect();
                    let a: Vec<UniformRow<'_>> = half(1).map(UniformRow::Stored).collect();
                    let (out_b, out_a) = products.split_at_mut(n);
                    backend.inner_product(m, &digits, &b, &a, out_b, out_a);
                    let [c0, c1]: &mut [Poly<Evaluation>; 2] = sums;
                    backend.add_assign(m, c0.limb_mut(0), out_b);
                    backend.add_assign(m, c1.limb_mut(0), out_a);
                }
            },
        );
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} vectors of {} components, {:?})", self.rows, self.dimension, self.parameters)
    }
}
