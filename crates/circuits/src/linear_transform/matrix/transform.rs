use std::fmt;
use std::sync::Arc;

use keywright_ckks::{CkksError, CkksParameters};
use keywright_ring::{Evaluation, Poly, ShoupFactor};
use keywright_rlwe::{ModDown, RlweError, for_each_item};

use super::diagonals::{Diagonal, Diagonals};
use super::norms::{RowNorms, RowSums, Spread, diagonal_variance};
use super::storage::{Place, Storage, Stored};
use crate::CircuitError;
use crate::linear_transform::{BsgsPlan, ENCODING_UNITS, ScratchShape};

/// The diagonals that share a giant step.
pub(crate) struct GiantStep {
    /// The giant step.
    pub(crate) step: usize,
    /// Position among the baby steps, and the place of the diagonal rotated by `-step`.
    pub(crate) terms: Vec<(usize, Place)>,
}

/// A matrix on the slots, encoded by diagonals for one level and one list of special primes, and kept as [`Storage`]
/// specifies.
pub struct LinearTransform {
    parameters: CkksParameters,
    plan: BsgsPlan,
    log_slots: u32,
    level: usize,
    special: Vec<usize>,
    pub(crate) giants: Vec<GiantStep>,
    pub(crate) stored: Stored,
    /// By `P q_level`.
    pub(crate) division: Arc<ModDown>,
    /// By `P`.
    pub(crate) lowering: Arc<ModDown>,
    /// `P` modulo each ciphertext prime.
    pub(crate) lift: Vec<ShoupFactor>,
    norms: RowNorms,
    /// Norms of the diagonals whose baby step needs a key switch within its tier.
    rotated_norms: RowNorms,
    /// For each hop, norms of the diagonals whose tier comes after it.
    hop_norms: Vec<RowNorms>,
    /// For each baby step, norms of its diagonals.
    baby_norms: Vec<RowNorms>,
    spread: Spread,
    pub(crate) deviation: f64,
}

impl LinearTransform {
    /// Encodes diagonals: `diagonals[r][k]` is `M[k, (k + r) mod 2^log_slots]`. Indices are taken modulo the number of
    /// slots; equal ones are summed. `special` are the primes that key switches of the transform remove, in their
    /// order: usually [`keywright_rlwe::KeySpec::special`] of the keys. Keeps [`Storage::Encoded`] diagonals.
    ///
    /// # Errors
    /// [`CircuitError::LogSlots`], [`CircuitError::DiagonalLength`], [`CircuitError::NotFinite`],
    /// [`CircuitError::BabySteps`], [`CircuitError::Empty`]; [`CkksError::LevelsExhausted`] at level 0;
    /// [`RlweError::Level`] and [`RlweError::SpecialPrime`] for primes that do not exist or belong to the ciphertext;
    /// [`CkksError::Encode`].
    pub fn new<'d>(
        parameters: &CkksParameters,
        diagonals: impl Into<Diagonals<'d>>,
        log_slots: u32,
        level: usize,
        special: &[usize],
        n1: usize,
    ) -> Result<Self, CircuitError> {
        Self::with_steps(
            parameters,
            diagonals,
            log_slots,
            level,
            special,
            Storage::Encoded,
            |indices, slots| BsgsPlan::new(indices, slots, n1),
        )
    }

    /// The same with another storage, and with steps that `plan` makes. Its second argument are the indices of the
    /// diagonals, which are below the number of slots.
    ///
    /// # Errors
    /// As [`Self::new`], and those of `plan`; [`CircuitError::DiagonalPeriod`] for rows;
    /// [`CircuitError::CoefficientWidth`] for coefficients of more than 62 bits that must be kept.
    pub fn with_steps<'d>(
        parameters: &CkksParameters,
        diagonals: impl Into<Diagonals<'d>>,
        log_slots: u32,
        level: usize,
        special: &[usize],
        storage: Storage,
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
        let diagonals = diagonals.into().checked(slots)?;
        let plan = plan(diagonals.keys().copied().collect(), slots)?;

        // In the order of giant steps, then of baby steps.
        let term = |step: usize, b: usize| Some((step, b, diagonals.get(&(step + plan.babies[b]))?));
        let babies = 0..plan.babies.len();
        let terms: Vec<(usize, usize, &Diagonal<'_>)> =
            plan.giants.iter().flat_map(|&step| babies.clone().filter_map(move |b| term(step, b))).collect();
        let primes: Vec<usize> = (0..=level).chain(special.iter().copied()).collect();
        let scale = rlwe.modulus(level).value() as f64;
        let periods: Vec<usize> = terms.iter().map(|(.., diagonal)| diagonal.period()).collect();
        let real = diagonals.values().all(Diagonal::is_real);
        let (mut stored, mut places) = Stored::unspecified(storage, real, &periods, primes.len());
        let mut results: Vec<Result<(), CircuitError>> = terms.iter().map(|_| Ok(())).collect();
        let rooms = stored.rooms(&places);
        let work = terms.iter().zip(rooms).zip(places.iter_mut().zip(&mut results));
        // Integers of one diagonal per thread at a time.
        for_each_item(work.collect(), |_, ((&(step, b, diagonal), room), (place, result))| {
            *result = diagonal
                .encode(parameters.embedding(), step, scale)
                .map_err(CircuitError::from)
                .and_then(|integers| {
                    let index = step + plan.babies[b];
                    storage.write(parameters, &integers, index, &primes, (place, room))
                });
        });
        results.into_iter().collect::<Result<(), _>>()?;
        let mut giants: Vec<GiantStep> =
            plan.giants.iter().map(|&step| GiantStep { step, terms: Vec::new() }).collect();
        for (&(step, b, _), place) in terms.iter().zip(places) {
            if let Some(giant) = giants.iter_mut().find(|giant| giant.step == step) {
                giant.terms.push((b, place));
            }
        }

        let matrix = Rows::new(&plan, &terms, log_slots, scale);
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
            stored,
            division: Arc::new(ModDown::new(rlwe, level, removed)),
            lowering: Arc::new(ModDown::new(rlwe, level + 1, special.to_vec())),
            lift,
            norms: matrix.all,
            rotated_norms: matrix.rotated,
            hop_norms: matrix.hops,
            baby_norms: matrix.babies,
            spread: Spread::Arbitrary,
            deviation: matrix.deviation,
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

    /// The level of its input; the result is one lower.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Indices of the primes that its key switches remove.
    pub fn special(&self) -> &[usize] {
        &self.special
    }

    /// `max_k sum_r |diag_r[k]|`: the largest factor by which the transform can enlarge values.
    pub fn row_sum(&self) -> f64 {
        self.norms.sum
    }

    /// The same transform with another assumption for its error estimates; the default is [`Spread::Arbitrary`].
    pub fn with_spread(mut self, spread: Spread) -> Self {
        self.spread = spread;
        self
    }

    /// The factor by which the transform multiplies deviations of its input.
    pub(crate) fn growth(&self) -> f64 {
        self.norm(&self.norms)
    }

    /// The factors by which it multiplies deviations of key switches: within tiers, and the sum over all hops.
    pub(crate) fn switch_growth(&self) -> [f64; 2] {
        [self.norm(&self.rotated_norms), self.hop_norms.iter().map(|norms| self.norm(norms)).sum()]
    }

    /// A bound on the factor by which it multiplies deviations of these baby steps: the sum of largest rows, or the
    /// factor of the whole.
    pub(crate) fn growth_of(&self, babies: impl IntoIterator<Item = usize>) -> f64 {
        let norms = babies.into_iter().map(|baby| self.norm(&self.baby_norms[baby]));
        let sum = match self.spread {
            Spread::Arbitrary => norms.sum(),
            Spread::RootMeanSquare => norms.map(|norm| norm * norm).sum::<f64>().sqrt(),
        };
        self.growth().min(sum)
    }

    /// `P` times a polynomial over the ciphertext primes, over all primes of the transform.
    pub(crate) fn lifted(&self, poly: &Poly<Evaluation>) -> Poly<Evaluation> {
        let ring = self.parameters.rlwe().ring();
        let mut out = Poly::zero(poly.n(), self.limb_count());
        for (i, (limb, &factor)) in out.limbs_mut().zip(&self.lift).enumerate() {
            limb.copy_from_slice(poly.limb(i));
            ring.backend().mul_scalar_assign(ring.modulus(i), limb, factor);
        }
        out
    }

    fn norm(&self, norms: &RowNorms) -> f64 {
        norms.growth(self.spread)
    }

    /// The form in which it keeps its diagonals.
    pub fn storage(&self) -> Storage {
        self.stored.storage()
    }

    /// Whether all diagonals are real.
    pub fn is_real(&self) -> bool {
        self.stored.is_real()
    }

    /// Bytes of the kept diagonals: [`Storage::bytes`].
    pub fn bytes(&self) -> usize {
        self.stored.bytes()
    }

    /// The counts that determine the memory of its evaluation on an input at its level.
    pub fn scratch_shape(&self) -> ScratchShape {
        let places = self.giants.iter().flat_map(|giant| &giant.terms).map(|(_, place)| place);
        let transformed = match self.storage() {
            Storage::Encoded => 0,
            Storage::Coefficients => places.map(Place::transformed_words).sum(),
        };
        ScratchShape { transformed, ..ScratchShape::new(&[&self.plan]) }
    }

    /// Index of the prime of a limb: ciphertext primes, then special primes.
    pub(crate) fn prime(&self, position: usize) -> usize {
        if position <= self.level { position } else { self.special[position - self.level - 1] }
    }

    /// Number of limbs of its polynomials.
    pub(crate) fn limb_count(&self) -> usize {
        self.level + 1 + self.special.len()
    }
}

/// Error norms from the rows of a matrix.
struct Rows {
    all: RowNorms,
    rotated: RowNorms,
    hops: Vec<RowNorms>,
    babies: Vec<RowNorms>,
    /// The deviation of a slot of the encoded matrix times values of 1.
    deviation: f64,
}

impl Rows {
    fn new(plan: &BsgsPlan, terms: &[(usize, usize, &Diagonal<'_>)], log_slots: u32, scale: f64) -> Self {
        let (mut all, mut rotated, mut babies) = (RowSums::new(), RowSums::new(), Vec::new());
        let mut hops: Vec<RowSums> = (1..=plan.hops()).map(|_| RowSums::new()).collect();
        let mut variance = 0.0;
        for (b, &baby) in plan.babies.iter().enumerate() {
            let mut sums = RowSums::new();
            for (.., diagonal) in terms.iter().filter(|(_, position, _)| *position == b) {
                let squares = diagonal.squares();
                let largest = squares.iter().copied().fold(0.0, f64::max).sqrt();
                let embedding = ENCODING_UNITS * f64::from(log_slots + 2) * largest * 2f64.powi(-53);
                variance += diagonal_variance(squares.len(), scale) + embedding * embedding;
                sums.add_diagonal(&squares);
            }
            all.add(&sums);
            if !baby.is_multiple_of(plan.tier) {
                rotated.add(&sums);
            }
            hops.iter_mut().take(baby / plan.tier).for_each(|hop| hop.add(&sums));
            babies.push(sums.largest());
        }
        let hops = hops.iter().map(RowSums::largest).collect();
        Self { all: all.largest(), rotated: rotated.largest(), hops, babies, deviation: variance.sqrt() }
    }
}

fn require_special(prime_count: usize, level: usize, special: &[usize]) -> Result<(), RlweError> {
    for (k, &index) in special.iter().enumerate() {
        let refuse = |reason| Err(RlweError::SpecialPrime { index, level, reason });
        if index >= prime_count {
            return refuse("the parameters have no such prime");
        }
        if index <= level {
            return refuse("it is a ciphertext prime at the transform's level");
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
