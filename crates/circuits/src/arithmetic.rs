//! The operations of a circuit, except for the key switches whose keys a planner chooses.

use keywright_rlwe::{PrimeWidths, Work};

/// Defines a struct of counts with the list of its names.
macro_rules! counts {
    ($(#[$of_struct:meta])* pub struct $name:ident { $($(#[$of_field:meta])* $field:ident,)* }) => {
        $(#[$of_struct])*
        pub struct $name {
            $($(#[$of_field])* pub $field: usize,)*
        }

        impl $name {
            /// Every count, by name.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// The count with this name.
            pub fn count_mut(&mut self, name: &str) -> Option<&mut usize> {
                match name {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

counts! {
    /// Counts of one operation on ciphertexts of one level `l`. `Q = q_0 .. q_l`, and `P` is the product of the primes
    /// that key switches at the level remove.
    ///
    /// [`Arithmetic::work`] gives the kernels that compute them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Arithmetic {
        /// For each prime of `Q`: products of two limbs.
        products,
        /// For each prime of `Q`: sums, and products of a limb with a constant.
        visits,
        /// For each prime of `Q`: sums of a polynomial with a constant.
        constants,
        /// For each prime of `Q`: number-theoretic transforms.
        transforms,
        /// For each prime of `Q P`: products of a diagonal with both halves of a ciphertext.
        diagonals,
        /// For each prime of `Q`: the same, if the ciphertext is a multiple of `P`.
        lifted,
        /// For each prime of `Q P`: products of a digit with both halves of a seeded key row.
        key_rows,
        /// Sums and permutations of limbs, for each prime of `Q P`.
        raised_visits,
        /// Polynomials raised from `q_0` to `Q`.
        raised,
        /// Polynomials raised from `q_0` to `Q P`.
        decomposed,
        /// Polynomials modulo `Q P` divided by `P`.
        lowered,
        /// Polynomials modulo `Q P` divided by `P q_l`.
        divided,
        /// Polynomials modulo `Q` divided by `q_l`.
        rescaled,
        /// Relinearizations that also divide by `q_l`.
        merged,
        /// Encoded vectors of slots; their transforms are among `transforms`.
        embeddings,
    }
}

impl Arithmetic {
    /// The sum of `products` tensor products and of scaled ciphertexts, optionally `doubled`, and optionally with a
    /// constant added after the rescaling. Without products nothing is relinearized.
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

    /// Element-wise sums alone, of this many limbs of each prime.
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

    /// A switch of a polynomial modulo `q_0` with a one-digit key.
    pub(crate) fn switch() -> Self {
        Self { key_rows: 1, decomposed: 1, lowered: 2, ..Self::default() }
    }

    /// Transforms of one limb that [`Self::work`] counts, for these numbers of primes of `Q` and of `Q P`.
    pub(crate) fn limb_transforms(&self, kept: usize, targets: usize) -> usize {
        kept * (self.transforms + self.raised + self.rescaled)
            + targets * (self.lowered + self.divided + self.decomposed)
    }

    /// The kernels of one evaluation on ciphertexts of level `l`.
    ///
    /// | operation | transforms | conversion terms | visits |
    /// |---|---|---|---|
    /// | lowering from `Q P` to `Q` | `|P|` inverse, `l + 1` forward | `|P| (l + 1)` | `l + 1` |
    /// | dividing by `P q_l` | `|P| + 1` inverse, `l` forward | `(|P| + 1) l` | `l` |
    /// | rescaling by `q_l` | 1 inverse, `l` forward | `l` | `l` |
    /// | raising from `q_0` | 1 inverse, 1 forward for each other prime | 1 for each other prime | |
    ///
    /// A relinearization counts as a key switch that divides by the primes that its key removes. If it also divides by
    /// `q_l` (`merged`), this function counts the difference.
    ///
    /// Args: `removed` is `P`; `relinearization` are the primes that the relinearization key of the level removes.
    pub fn work(
        &self,
        widths: &PrimeWidths,
        level: usize,
        removed: &[usize],
        relinearization: &[usize],
    ) -> Work {
        let count = |value: usize| value as i64;
        let (kept, below, special) = (0..level + 1, 0..level, count(removed.len()));
        let raised = || kept.clone().chain(removed.iter().copied());
        let (kept_count, below_count) = (count(level + 1), count(level));
        let raised_count = kept_count + special;
        let mut out = Work { calls: 1, embeddings: count(self.embeddings), ..Work::default() };
        out.transform(widths, kept.clone(), count(self.transforms + self.raised + self.rescaled));
        out.transform(widths, raised(), count(self.lowered + self.divided + self.decomposed));
        out.convert(widths, kept.clone(), count(self.lowered) * special);
        out.convert(widths, below.clone(), count(self.divided) * (special + 1) + count(self.rescaled));
        out.convert(widths, 1..level + 1, count(self.raised));
        out.convert(widths, raised().skip(1), count(self.decomposed));
        out.multiply(widths, raised(), count(self.key_rows));
        out.diagonals = count(self.diagonals) * raised_count + count(self.lifted) * kept_count;
        out.multiplications = count(self.products) * kept_count;
        out.visits = count(self.visits + self.constants + self.lowered) * kept_count
            + count(self.raised_visits) * raised_count
            + count(self.divided + self.rescaled) * below_count;
        let (merged, removes) = (count(self.merged), count(relinearization.len()));
        out.convert(widths, below, 2 * merged * (removes + 1));
        out.convert(widths, kept, -2 * merged * removes);
        // The addend of the product is added modulo q_l as well, before the division.
        out.visits += merged * (2 * below_count - 4 * kept_count + 2);
        out
    }
}
