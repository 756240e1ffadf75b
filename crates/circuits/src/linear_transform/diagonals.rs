use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use keywright_ckks::encoder::Integers;
use keywright_ckks::{CkksError, CkksParameters, Complex64};
use keywright_ring::{Buffer, Evaluation, Poly, ShoupFactor};
use keywright_rlwe::{ModDown, RlweError, for_each_item};

use super::BsgsPlan;
use crate::CircuitError;

/// Error of encoding that comes from computing the embedding in `f64`: with `u = 2^-53`, a diagonal is off by at most
/// `4 u log2(n)` of its Euclidean norm ([`keywright_ckks::encoder::Embedding`]), so a slot, in the root mean square, by that
/// times the largest value. Two more are counted with `log2(n)`, for the scale and the conversion to integers.
pub const ENCODING_UNITS: f64 = 4.0;

/// The diagonals that share a giant step.
pub(super) struct GiantStep {
    /// The giant step.
    pub(super) step: usize,
    /// Position among the baby steps, and the diagonal rotated by `-step`, over the primes of the transform.
    pub(super) terms: Vec<(usize, CompactPoly)>,
}

/// A polynomial in `X^(N/2p)` in evaluation form: every value occurs `N/2p` times in a row, as entry `i` is the value at
/// `psi^(2 brv(i) + 1)`, and `N/2p` times the exponent depends on the upper bits of `i` alone. Each is stored once.
pub(super) struct CompactPoly(Poly<Evaluation>);

impl CompactPoly {
    fn unspecified(period: usize, limbs: usize) -> Self {
        Self(Poly::unspecified(2 * period, limbs))
    }

    /// Keeps one of each run of equal values of a limb.
    fn store(limb: &mut [u64], full: &[u64]) {
        let repeat = full.len() / limb.len();
        limb.iter_mut().zip(full.iter().step_by(repeat)).for_each(|(out, value)| *out = *value);
    }

    /// Words `words` of limb `i` of ring degree `n`: those stored, or expanded into scratch of as many words.
    pub(super) fn words<'a>(
        &'a self,
        n: usize,
        i: usize,
        words: Range<usize>,
        scratch: &'a mut [u64],
    ) -> &'a [u64] {
        let limb = self.0.limb(i);
        let repeat = n / limb.len();
        if repeat == 1 {
            return &limb[words];
        }
        // Both are powers of two: a run is within the words, or they are within a run.
        let first = words.start / repeat;
        match repeat {
            _ if repeat >= scratch.len() => scratch.fill(limb[first]),
            2 => expand::<2>(&limb[first..], scratch),
            4 => expand::<4>(&limb[first..], scratch),
            _ => expand_runs(repeat, &limb[first..], scratch),
        }
        scratch
    }
}

/// Repeats every word `R` times, by stores of whole runs.
fn expand<const R: usize>(words: &[u64], out: &mut [u64]) {
    for (run, &word) in out.as_chunks_mut::<R>().0.iter_mut().zip(words) {
        *run = [word; R];
    }
}

/// The same with runs of a multiple of eight words.
fn expand_runs(repeat: usize, words: &[u64], out: &mut [u64]) {
    for (run, &word) in out.chunks_exact_mut(repeat).zip(words) {
        run.as_chunks_mut::<8>().0.iter_mut().for_each(|part| *part = [word; 8]);
    }
}

/// A matrix on the slots, encoded by diagonals for one level and one list of special primes.
///
/// A diagonal whose entries have the period `p`, a power of two, is a polynomial in `X^(N/2p)` and takes
/// `16 p (level + 1 + |special|)` bytes: at most `16 slots`, `8 N` for a full packing, for each prime.
pub struct LinearTransform {
    parameters: CkksParameters,
    plan: BsgsPlan,
    log_slots: u32,
    level: usize,
    special: Vec<usize>,
    pub(super) giants: Vec<GiantStep>,
    /// By `P q_level`.
    pub(super) division: Arc<ModDown>,
    /// By `P`.
    pub(super) lowering: Arc<ModDown>,
    /// `P` modulo each ciphertext prime.
    pub(super) lift: Vec<ShoupFactor>,
    norms: RowNorms,
    /// Of the diagonals whose baby step needs a key switch within its tier.
    rotated_norms: RowNorms,
    /// For each hop, of the diagonals whose tier comes after it.
    hop_norms: Vec<RowNorms>,
    /// For each baby step, of its diagonals.
    baby_norms: Vec<RowNorms>,
    spread: Spread,
    pub(super) deviation: f64,
}

/// The largest norms of a row.
struct RowNorms {
    sum: f64,
    euclidean: f64,
}

/// How the values and errors of a transform's inputs may depend on each other from slot to slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// In any way: estimates grow by the largest sum of a row's absolute values.
    Arbitrary,
    /// Not at all, or the matrix is a multiple of a unitary one: deviations are root mean squares over all slots, and grow by the largest
    /// Euclidean norm of a row. Magnitudes of inputs, too, are taken for root mean squares.
    RootMeanSquare,
}

impl LinearTransform {
    /// Encodes diagonals: `diagonals[r][k]` is `M[k, (k + r) mod 2^log_slots]`. Indices are taken modulo the number of
    /// slots; those that coincide are summed. `special` are the primes that key switches of the transform remove, in
    /// their order: usually [`keywright_rlwe::KeySpec::special`] of the keys.
    ///
    /// # Errors
    /// [`CircuitError::LogSlots`], [`CircuitError::DiagonalLength`], [`CircuitError::NotFinite`], [`CircuitError::BabySteps`],
    /// [`CircuitError::Empty`]; [`CkksError::LevelsExhausted`] at level 0; [`RlweError::Level`] and
    /// [`RlweError::SpecialPrime`] for primes that do not exist or belong to the ciphertext; [`CkksError::Encode`].
    pub fn new(
        parameters: &CkksParameters,
        diagonals: &BTreeMap<usize, Vec<Complex64>>,
        log_slots: u32,
        level: usize,
        special: &[usize],
        n1: usize,
    ) -> Result<Self, CircuitError> {
        Self::with_steps(parameters, diagonals, log_slots, level, special, |indices, slots| {
            BsgsPlan::new(indices, slots, n1)
        })
    }

    /// The same, with steps that `plan` makes of the indices of the diagonals, which are below the number of slots, its second argument.
    ///
    /// # Errors
    /// As [`Self::new`], and those of `plan`.
    pub fn with_steps(
        parameters: &CkksParameters,
        diagonals: &BTreeMap<usize, Vec<Complex64>>,
        log_slots: u32,
        level: usize,
        special: &[usize],
        plan: impl FnOnce(Vec<usize>, usize) -> Result<BsgsPlan, CircuitError>,
    ) -> Result<Self, CircuitError> {
        let rlwe = parameters.rlwe();
        rlwe.require_level(level)?;
        if level == 0 {
            let operation = "a linear transform";
            return Err(CkksError::LevelsExhausted { operation, needed: 1, available: 0 }.into());
        }
        require_special(rlwe.prime_count(), level, special)?;
        let max = parameters.max_log_slots();
        if log_slots > max {
            return Err(CircuitError::LogSlots { log_slots, max });
        }
        let slots = 1usize << log_slots;
        let diagonals = checked(diagonals, slots)?;
        let plan = plan(diagonals.keys().copied().collect(), slots)?;

        let scale = rlwe.modulus(level).value() as f64;
        let mut giants: Vec<GiantStep> = plan
            .giants
            .iter()
            .map(|&step| GiantStep {
                step,
                terms: (0..plan.babies.len())
                    .filter(|&b| diagonals.contains_key(&(step + plan.babies[b])))
                    .map(|b| (b, period(&diagonals[&(step + plan.babies[b])])))
                    .map(|(b, period)| (b, CompactPoly::unspecified(period, level + 1 + special.len())))
                    .collect(),
            })
            .collect();
        let mut limbs = Vec::new();
        let mut variance = 0.0;
        for giant in &mut giants {
            for (baby, poly) in &mut giant.terms {
                let diagonal = &diagonals[&(giant.step + plan.babies[*baby])];
                let period = period(diagonal);
                // Rotation by -step: out[k] = in[k - step].
                let rotated: Vec<Complex64> =
                    (0..period).map(|k| diagonal[(k + slots - giant.step) % slots]).collect();
                let integers =
                    Integers::slots(parameters.embedding(), &rotated, period.trailing_zeros(), scale)?;
                // Limbs of one diagonal at a time: its integers are dropped before the next.
                limbs.extend(poly.0.limbs_mut());
                for_each_item(std::mem::take(&mut limbs), |position, limb: &mut [u64]| {
                    let prime = if position <= level { position } else { special[position - level - 1] };
                    let mut full = Buffer::unspecified(rlwe.n());
                    integers.residues(rlwe.modulus(prime), &mut full);
                    rlwe.ring().forward_limb(prime, &mut full);
                    CompactPoly::store(limb, &full);
                });
                let largest = rotated.iter().map(|v| v.norm()).fold(0.0, f64::max);
                let embedding = ENCODING_UNITS * f64::from(log_slots + 2) * largest * 2f64.powi(-53);
                variance += period as f64 / 6.0 / (scale * scale) + embedding * embedding;
            }
        }

        let norms = |with: &dyn Fn(usize) -> bool| {
            let rows = diagonals.iter().filter(|&(&r, _)| with(r));
            let mut sums = vec![[0.0f64; 2]; slots];
            rows.for_each(|(_, d)| {
                sums.iter_mut().zip(d).for_each(|(s, v)| *s = [s[0] + v.norm(), s[1] + v.norm_sqr()]);
            });
            let largest = |part: usize| sums.iter().map(|s| s[part]).fold(0.0, f64::max);
            RowNorms { sum: largest(0), euclidean: largest(1).sqrt() }
        };
        let removed = std::iter::once(level).chain(special.iter().copied()).collect();
        let lift = (0..=level)
            .map(|i| rlwe.modulus(i))
            .map(|m| {
                m.shoup(
                    special.iter().fold(1, |product, &p| m.mul(product, m.reduce(rlwe.modulus(p).value()))),
                )
            })
            .collect();
        Ok(Self {
            parameters: parameters.clone(),
            log_slots,
            level,
            special: special.to_vec(),
            giants,
            division: Arc::new(ModDown::new(rlwe, level, removed)),
            lowering: Arc::new(ModDown::new(rlwe, level + 1, special.to_vec())),
            lift,
            norms: norms(&|_| true),
            rotated_norms: norms(&|r| !(r % plan.n1).is_multiple_of(plan.tier)),
            hop_norms: (1..=plan.hops()).map(|hop| norms(&|r| r % plan.n1 / plan.tier >= hop)).collect(),
            baby_norms: plan.babies.iter().map(|&baby| norms(&|r| r % plan.n1 == baby)).collect(),
            spread: Spread::Arbitrary,
            deviation: variance.sqrt(),
            plan,
        })
    }

    /// Its baby and giant steps.
    pub fn plan(&self) -> &BsgsPlan {
        &self.plan
    }

    /// The parameters it is encoded for.
    pub fn parameters(&self) -> &CkksParameters {
        &self.parameters
    }

    /// `log2` of the number of slots.
    pub fn log_slots(&self) -> u32 {
        self.log_slots
    }

    /// The level of ciphertexts that it takes; the result is one lower.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Indices of the primes that its key switches remove.
    pub fn special(&self) -> &[usize] {
        &self.special
    }

    /// `max_k sum_r |diag_r[k]|`: by how much the transform can enlarge values.
    pub fn row_sum(&self) -> f64 {
        self.norms.sum
    }

    /// The same transform with another assumption for its error estimates; [`Spread::Arbitrary`] at first.
    pub fn with_spread(mut self, spread: Spread) -> Self {
        self.spread = spread;
        self
    }

    /// By how much the transform multiplies deviations of its input.
    pub(super) fn growth(&self) -> f64 {
        self.norm(&self.norms)
    }

    /// By how much it multiplies those of key switches: within tiers, and of all hops, added.
    pub(super) fn switch_growth(&self) -> [f64; 2] {
        [self.norm(&self.rotated_norms), self.hop_norms.iter().map(|norms| self.norm(norms)).sum()]
    }

    /// By how much it multiplies deviations of these baby steps, at most: largest rows are added, or the whole is taken.
    pub(super) fn growth_of(&self, babies: impl IntoIterator<Item = usize>) -> f64 {
        let norms = babies.into_iter().map(|baby| self.norm(&self.baby_norms[baby]));
        let sum = match self.spread {
            Spread::Arbitrary => norms.sum(),
            Spread::RootMeanSquare => norms.map(|norm| norm * norm).sum::<f64>().sqrt(),
        };
        self.growth().min(sum)
    }

    /// `P` times a polynomial over the ciphertext primes, over all primes of the transform.
    pub(super) fn lifted(&self, poly: &Poly<Evaluation>) -> Poly<Evaluation> {
        let ring = self.parameters.rlwe().ring();
        let mut out = Poly::zero(poly.n(), self.limb_count());
        for (i, (limb, &factor)) in out.limbs_mut().zip(&self.lift).enumerate() {
            limb.copy_from_slice(poly.limb(i));
            ring.backend().mul_scalar_assign(ring.modulus(i), limb, factor);
        }
        out
    }

    fn norm(&self, norms: &RowNorms) -> f64 {
        match self.spread {
            Spread::Arbitrary => norms.sum,
            Spread::RootMeanSquare => norms.euclidean,
        }
    }

    /// Bytes of its encoded diagonals.
    pub fn bytes(&self) -> usize {
        self.giants.iter().flat_map(|giant| &giant.terms).map(|(_, poly)| poly.0.words().len() * 8).sum()
    }

    /// Index of the prime of a limb: ciphertext primes, then special primes.
    pub(super) fn prime(&self, position: usize) -> usize {
        if position <= self.level { position } else { self.special[position - self.level - 1] }
    }

    /// Number of limbs of its polynomials.
    pub(super) fn limb_count(&self) -> usize {
        self.level + 1 + self.special.len()
    }
}

/// The least power of two that is a period of a diagonal.
fn period(diagonal: &[Complex64]) -> usize {
    let mut period = diagonal.len();
    while period > 1 && diagonal[..period / 2] == diagonal[period / 2..period] {
        period /= 2;
    }
    period
}

/// The diagonals with indices reduced and coinciding ones summed.
fn checked(
    diagonals: &BTreeMap<usize, Vec<Complex64>>,
    slots: usize,
) -> Result<BTreeMap<usize, Vec<Complex64>>, CircuitError> {
    let mut out: BTreeMap<usize, Vec<Complex64>> = BTreeMap::new();
    for (&index, values) in diagonals {
        if values.len() != slots {
            return Err(CircuitError::DiagonalLength { index, found: values.len(), expected: slots });
        }
        if let Some(value) = values.iter().flat_map(|v| [v.re, v.im]).find(|x| !x.is_finite()) {
            return Err(CircuitError::NotFinite { what: "diagonal", index, value });
        }
        match out.get_mut(&(index % slots)) {
            Some(sum) => sum.iter_mut().zip(values).for_each(|(s, v)| *s += v),
            None => {
                out.insert(index % slots, values.clone());
            }
        }
    }
    Ok(out)
}

fn require_special(prime_count: usize, level: usize, special: &[usize]) -> Result<(), RlweError> {
    for (k, &index) in special.iter().enumerate() {
        let refuse = |reason| Err(RlweError::SpecialPrime { index, level, reason });
        if index >= prime_count {
            return refuse("the parameters have no such prime");
        }
        if index <= level {
            return refuse("it is a prime of the ciphertexts that the transform takes");
        }
        if special[..k].contains(&index) {
            return refuse("it is listed twice");
        }
    }
    Ok(())
}

impl fmt::Debug for LinearTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "LinearTransform({} diagonals, 2^{} slots, level {}, n1 = {}, {} bytes)",
            self.plan.diagonals,
            self.log_slots,
            self.level,
            self.plan.n1,
            self.bytes()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_compact_limb_are_those_of_the_full_one() {
        let n = 64;
        for period in [1, 2, 4, 8, 16, 32] {
            let mut poly = CompactPoly::unspecified(period, 2);
            for (i, limb) in poly.0.limbs_mut().enumerate() {
                limb.iter_mut().enumerate().for_each(|(k, word)| *word = (1000 * i + k) as u64);
            }
            let repeat = n / (2 * period);
            let full: Vec<u64> = (0..n).map(|k| (1000 + k / repeat) as u64).collect();
            for length in [8, 16, 64] {
                for start in (0..n).step_by(length) {
                    let words = start..start + length;
                    let mut scratch = vec![0; length];
                    assert_eq!(poly.words(n, 1, words.clone(), &mut scratch), &full[words]);
                }
            }
        }
    }
}
