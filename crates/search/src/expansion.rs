//! From one ciphertext of a polynomial to a ciphertext of each coefficient.
//!
//! Level `j` doubles the ciphertexts. With `g = N / 2^j + 1`, `X -> X^g` fixes `X^(2^j k)` for even `k` and negates it
//! for odd `k`. So `c + c(X^g)` keeps the even ones, twice, and `X^(-2^j) (c - c(X^g))` the odd ones, shifted down.

use std::sync::OnceLock;

use keywright_bfv::{BfvError, Ciphertext, Evaluator, Packing, Plaintext};
use keywright_rlwe::for_each_item;

use crate::SearchError;
use crate::query::expanded;

/// The Galois elements of the keys that a query of `dimension` components needs, one for each level of its expansion.
pub fn expansion_elements(log_n: u32, dimension: usize) -> Vec<u64> {
    (0..expanded(dimension).ilog2()).map(|level| (1u64 << (log_n - level)) + 1).collect()
}

/// The levels of one expansion.
pub(crate) struct Expansion<'e> {
    evaluator: &'e Evaluator<'e>,
    dimension: usize,
    /// Galois element and `X^(-2^j)` of level `j`.
    levels: Vec<(u64, Plaintext)>,
}

/// A ciphertext of the components `first + k stride` of a query.
pub(crate) struct Part {
    pub(crate) first: usize,
    pub(crate) ciphertext: Ciphertext,
}

impl<'e> Expansion<'e> {
    pub(crate) fn new(evaluator: &'e Evaluator<'e>, dimension: usize) -> Result<Self, BfvError> {
        let parameters = evaluator.parameters();
        let n = parameters.rlwe().n();
        let levels = expansion_elements(parameters.rlwe().log_n(), dimension)
            .into_iter()
            .enumerate()
            .map(|(level, element)| {
                let mut monomial = vec![0; n - (1 << level) + 1];
                monomial[n - (1 << level)] = -1;
                Ok((element, parameters.encode(&monomial, Packing::Coefficients)?))
            })
            .collect::<Result<_, BfvError>>()?;
        Ok(Self { evaluator, dimension, levels })
    }

    /// Number of levels.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Expands parts of `levels.start` levels to parts of `levels.end`. Parts without components are left out.
    pub(crate) fn expand(
        &self,
        mut parts: Vec<Part>,
        levels: std::ops::Range<usize>,
    ) -> Result<Vec<Part>, SearchError> {
        for level in levels {
            let split: Vec<OnceLock<_>> = parts.iter().map(|_| OnceLock::new()).collect();
            for_each_item(
                parts.into_iter().zip(&split).collect(),
                |_, (part, halves): (Part, &OnceLock<_>)| {
                    let _ = halves.set(self.halves(&part, level));
                },
            );
            parts = Vec::with_capacity(2 * split.len());
            for halves in split.into_iter().filter_map(OnceLock::into_inner) {
                parts.extend(halves?);
            }
        }
        Ok(parts)
    }

    fn halves(&self, part: &Part, level: usize) -> Result<Vec<Part>, BfvError> {
        let (element, monomial) = &self.levels[level];
        let (evaluator, whole) = (self.evaluator, &part.ciphertext);
        let image = evaluator.automorphisms_hoisted(whole, &[*element])?.remove(0);
        let even = Part { first: part.first, ciphertext: evaluator.add(whole, &image)? };
        let first = part.first + (1 << level);
        if first >= self.dimension {
            return Ok(vec![even]);
        }
        let odd = evaluator.multiply_plain(&evaluator.sub(whole, &image)?, monomial)?;
        Ok(vec![even, Part { first, ciphertext: odd }])
    }
}
