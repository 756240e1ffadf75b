//! Memory of running key switches, in limbs of `N` words, from counts of primes alone. Tests compare it with the actual
//! allocations.

use super::coalescing::used_rows;
use super::layout::SwitchLayout;
use crate::parallel::run_length;
use crate::{KeySpec, Parameters, RlweError};

/// Peak limbs of scratch of `threads` threads: `runs` tasks over `targets` primes in all, each with `per_prime` limbs
/// per prime and `per_task` more.
fn tasks(targets: usize, per_prime: usize, per_task: usize, threads: usize) -> usize {
    let length = run_length(targets, threads);
    threads.min(targets.div_ceil(length.max(1))) * (length * per_prime + per_task)
}

/// Limbs of a division: of `polynomials` over `kept + removed` primes by the last `removed`, with its results.
pub fn division_limbs(polynomials: usize, kept: usize, removed: usize, threads: usize) -> usize {
    let remainders = polynomials * removed;
    let first = threads.min(remainders);
    let second = polynomials * kept + threads.min(polynomials * kept) * run_length(kept, threads);
    remainders + first.max(second)
}

impl SwitchLayout {
    /// Limbs of a decomposed polynomial.
    pub fn decomposition_limbs(&self) -> usize {
        (self.input_level() + 1) * if self.merged.is_empty() { 1 } else { 2 }
    }

    /// Limbs of the decomposition of a polynomial and its switches with `keys` keys at once, including their results,
    /// which have a prime less with a rescaling.
    pub fn switch_limbs(&self, keys: usize, rescale: bool, threads: usize) -> usize {
        let (digits, halves, last) = (self.digits.len(), 2 * keys, usize::from(rescale));
        let (kept, removed) = (self.level + 1 - last, self.removed().count() + last);
        let cutting = threads.min(self.input_level() + 1);
        let removing = tasks(removed, digits + halves, 0, threads);
        let keeping = tasks(kept, digits.max(1) + halves, 1, threads);
        self.decomposition_limbs() + cutting.max(halves * (kept + removed) + removing.max(keeping))
    }
}

impl KeySpec {
    /// The layout of the use of such a key at a level that [`crate::EvaluationKeys::best`] chooses.
    ///
    /// # Errors
    /// The errors of [`Self::validate`]; [`RlweError::Level`] above the key's level.
    pub fn best_layout(
        &self,
        parameters: &Parameters,
        level: usize,
        rescale: bool,
    ) -> Result<SwitchLayout, RlweError> {
        let digits = self.validate(parameters)?;
        let above = RlweError::Level { level, max: self.level, object: "the key" };
        if level > self.level {
            return Err(above);
        }
        if self.element.raises() {
            return Ok(SwitchLayout::raising(level, &self.special));
        }
        let (widths, rows) = (parameters.ring_named(self.subring)?.widths(), used_rows(&digits, level));
        let uses = SwitchLayout::all(widths, self.level, &digits, &self.special, level);
        uses.min_by_key(|layout| layout.rank(widths, rows, rescale)).ok_or(above)
    }
}
