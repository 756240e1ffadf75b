//! What a circuit computes beside the key switches whose keys a planner chooses.

/// Counts of kernels on limbs, of one operation on ciphertexts of one level `l`.
///
/// `Q` are the primes `q_0 .. q_l`, `P` those that key switches at the level remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arithmetic {
    /// For each prime of `Q`: products of two limbs.
    pub products: usize,
    /// For each prime of `Q`: sums, and products of a limb with a constant.
    pub visits: usize,
    /// For each prime of `Q`: sums of a polynomial with a constant.
    pub constants: usize,
    /// For each prime of `Q`: number-theoretic transforms.
    pub transforms: usize,
    /// For each prime of `Q P`: products of a diagonal with both halves of a ciphertext.
    pub diagonals: usize,
    /// For each prime of `Q`: the same, where the ciphertext is a multiple of `P`.
    pub lifted: usize,
    /// For each prime of `Q P`: products of a digit with both halves of a seeded key row.
    pub key_rows: usize,
    /// Sums and permutations of limbs, for each prime of `Q P`.
    pub raised_visits: usize,
    /// Polynomials modulo `q_0` that are raised to `Q`.
    pub raised: usize,
    /// Polynomials modulo `q_0` that are raised to `Q P`.
    pub decomposed: usize,
    /// Polynomials modulo `Q P` that are divided by `P`.
    pub lowered: usize,
    /// Polynomials modulo `Q P` that are divided by `P q_l`.
    pub divided: usize,
    /// Polynomials modulo `Q` that are divided by `q_l`.
    pub rescaled: usize,
    /// Relinearisations whose division is by `q_l` as well.
    pub merged: usize,
}

impl Arithmetic {
    /// The sum of `products` tensor products and of scaled ciphertexts, `doubled` or not, with a constant added after the
    /// rescaling, or not. Without products nothing is relinearised.
    pub(crate) fn sum(products: usize, terms: usize, doubled: bool, constant: bool) -> Self {
        Self {
            products: 4 * products,
            visits: 2 * terms + if doubled { 3 } else { 0 },
            constants: usize::from(constant),
            rescaled: if products == 0 { 2 } else { 0 },
            merged: usize::from(products > 0),
            ..Self::default()
        }
    }

    /// Element-wise sums alone, so many limbs of each prime.
    pub(crate) fn visits(visits: usize) -> Self {
        Self { visits, ..Self::default() }
    }

    /// The sum with a constant.
    pub(crate) fn constant() -> Self {
        Self { constants: 1, ..Self::default() }
    }

    /// The product with the imaginary unit, whose limbs are transformed each time.
    pub(crate) fn unit() -> Self {
        Self { products: 2, transforms: 1, ..Self::default() }
    }

    /// A switch of a polynomial modulo `q_0` with a key of one digit.
    pub(crate) fn switch() -> Self {
        Self { key_rows: 1, decomposed: 1, lowered: 2, ..Self::default() }
    }
}
