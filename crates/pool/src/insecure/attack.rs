//! The attack on [`super::ChemEncryptor`].
//!
//! Let `z_1, ..., z_n` be the cached encryptions of zero, `R(m)` the sum of cached powers for message `m`, and `b` the
//! coins of one encryption: `c = R(m) + sum_j b_j z_j`. The difference of two ciphertexts of one message is in the span
//! `Z` of the `z_j` over the field of residues modulo `q_0`, coordinate by coordinate. A little over `n` encryptions of
//! one chosen `m_0` therefore span `Z`. A challenge `c*` encrypts `m_0` if `c* - c` is in `Z`. If it encrypts `m_1`,
//! then `R(m_1) - R(m_0)` must be in `Z`: since `c_1` of the cached powers is practically uniform, this has the
//! probability `q_0^(n - d)` on `d` coordinates.
//!
//! The attack uses no secret, no randomness and no property of the ciphertexts' errors.

use keywright_ring::Modulus;
use keywright_rlwe::RlweCiphertext;

/// Coordinates beyond the number of known ciphertexts: with `q_0 > 2^20`, an accident has a probability below `2^-160`.
const SLACK: usize = 8;

/// The knowledge of an attacker after ciphertexts of one chosen message.
pub struct Distinguisher {
    modulus: Modulus,
    /// The first words of `c_1` of one ciphertext.
    reference: Vec<u64>,
    /// Rows in echelon form: the column of the first nonzero entry, which is 1, and the row.
    rows: Vec<(usize, Vec<u64>)>,
}

impl Distinguisher {
    /// Learns from ciphertexts of one message; `modulus` is the first prime. `None` without any.
    pub fn learn(known: &[RlweCiphertext], modulus: &Modulus) -> Option<Self> {
        let (first, others) = known.split_first()?;
        let count = (known.len() + SLACK).min(first.polys.get(1)?.n());
        let words = |ciphertext: &RlweCiphertext| ciphertext.polys[1].limb(0)[..count].to_vec();
        let mut learnt = Self { modulus: *modulus, reference: words(first), rows: Vec::new() };
        for ciphertext in others {
            let mut row = learnt.difference(&words(ciphertext));
            learnt.reduce(&mut row);
            if let Some(column) = row.iter().position(|&x| x != 0) {
                let inverse = modulus.shoup(modulus.inv(row[column]));
                row.iter_mut().for_each(|x| *x = modulus.mul_shoup(*x, inverse));
                learnt.rows.push((column, row));
            }
        }
        Some(learnt)
    }

    /// Dimension of the span of the known ciphertexts' differences.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Whether a ciphertext encrypts the known message.
    pub fn recognises(&self, challenge: &RlweCiphertext) -> bool {
        let words = &challenge.polys[1].limb(0)[..self.reference.len()];
        let mut row = self.difference(words);
        self.reduce(&mut row);
        row.iter().all(|&x| x == 0)
    }

    fn difference(&self, words: &[u64]) -> Vec<u64> {
        words.iter().zip(&self.reference).map(|(&x, &y)| self.modulus.sub(x, y)).collect()
    }

    /// Subtracts multiples of the rows until their columns are zero.
    fn reduce(&self, row: &mut [u64]) {
        let m = &self.modulus;
        for (column, known) in &self.rows {
            let factor = m.shoup(m.neg(row[*column]));
            if factor.value != 0 {
                for (x, &y) in row.iter_mut().zip(known) {
                    *x = m.add(*x, m.mul_shoup(y, factor));
                }
            }
        }
    }
}
