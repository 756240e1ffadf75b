use keywright_rlwe::switch::RANK_WEIGHTS;

use crate::{Arithmetic, CircuitError};

/// Numbers that determine the cost of one key switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchShape {
    /// Ciphertext level.
    pub level: usize,
    /// Digits of the keys at that level.
    pub digits: usize,
    /// Special primes.
    pub special: usize,
}

/// Work of one transform on limbs of `N` words. It only orders the ways to split a transform into baby and giant steps;
/// [`Arithmetic`] and a calibration of the machine predict times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransformCost {
    /// Number-theoretic transforms, forward and inverse.
    pub transforms: usize,
    /// Products of one limb with another, accumulated.
    pub products: usize,
    /// Products of a digit with both halves of a key row, including reading the row and expanding its uniform half.
    pub key_rows: usize,
}

impl TransformCost {
    /// In multiplications per coefficient, for a ring of degree `2^log_n`: a transform takes `log_n / 2`, and a key row
    /// takes its share of a transform by [`RANK_WEIGHTS`].
    pub fn multiplications(self, log_n: u32) -> f64 {
        let [transform, product, _] = RANK_WEIGHTS;
        let share = product as f64 / transform as f64;
        let transforms = self.transforms as f64 + share * self.key_rows as f64;
        transforms * f64::from(log_n) / 2.0 + self.products as f64
    }
}

/// The rotations of the giant steps' sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiantSteps {
    /// Each by its own step, with its own key.
    Separate,
    /// One after the other by the same step, as in Horner's scheme: one key, and no more switches unless a multiple of
    /// the step is left out.
    Chain {
        /// The step: the greatest common divisor of all giant steps.
        step: usize,
    },
}

/// The split of one transform's diagonals into baby and giant steps. Plain data: no keys, no parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BsgsPlan {
    /// Number of possible baby steps: diagonal `r` has baby step `r mod n1`.
    pub n1: usize,
    /// Number of diagonals.
    pub diagonals: usize,
    /// The number of these with baby step 0.
    pub unrotated: usize,
    /// Baby steps that occur, ascending; 0 needs no key.
    pub babies: Vec<usize>,
    /// Giant steps that occur, ascending; 0 needs no key.
    pub giants: Vec<usize>,
    /// The rotations of the giant steps.
    pub giant_steps: GiantSteps,
    /// Baby steps of a tier: baby step `i` is a rotation by `i mod tier` of the input rotated `i / tier` times by
    /// `tier`, a *hop* each. `n1` for a single tier, whose baby steps are all rotations of the input.
    pub tier: usize,
}

impl BsgsPlan {
    /// Splits diagonals, whose indices are taken modulo the number of slots.
    ///
    /// # Errors
    /// [`CircuitError::BabySteps`] unless `1 <= n1 <= slots`; [`CircuitError::Empty`] without diagonals.
    pub fn new(
        diagonals: impl IntoIterator<Item = usize>,
        slots: usize,
        n1: usize,
    ) -> Result<Self, CircuitError> {
        if n1 == 0 || n1 > slots {
            return Err(CircuitError::BabySteps { n1, slots });
        }
        let indices = ascending(diagonals.into_iter().map(|r| r % slots));
        if indices.is_empty() {
            return Err(CircuitError::Empty("the set of diagonals"));
        }
        Ok(Self {
            n1,
            diagonals: indices.len(),
            unrotated: indices.iter().filter(|&r| r % n1 == 0).count(),
            babies: ascending(indices.iter().map(|r| r % n1)),
            giants: ascending(indices.iter().map(|r| r - r % n1)),
            giant_steps: GiantSteps::Separate,
            tier: n1,
        })
    }

    /// The plan of least [`TransformCost::multiplications`] over `n1 = g 2^k`, with `g` the greatest common divisor of
    /// the indices, and at most `max_babies` baby steps, each of which has a key.
    ///
    /// # Errors
    /// [`CircuitError::Empty`] without diagonals.
    pub fn optimal(
        diagonals: impl IntoIterator<Item = usize>,
        slots: usize,
        log_n: u32,
        shape: SwitchShape,
        max_babies: usize,
    ) -> Result<Self, CircuitError> {
        let indices = ascending(diagonals.into_iter().map(|r| r % slots));
        let gcd = indices.iter().fold(0, |a, &b| greatest_common_divisor(a, b)).max(1);
        let mut best = Self::new(indices.iter().copied(), slots, gcd)?;
        let mut n1 = 2 * gcd;
        while n1 <= slots {
            let plan = Self::new(indices.iter().copied(), slots, n1)?;
            if plan.babies.len() > max_babies {
                break;
            }
            if plan.cost(shape).multiplications(log_n) < best.cost(shape).multiplications(log_n) {
                best = plan;
            }
            n1 *= 2;
        }
        Ok(best)
    }

    /// Greatest common divisor of the diagonals' indices; 1 if 0 is the only one.
    pub(crate) fn stride(&self) -> usize {
        let steps = self.babies.iter().chain(&self.giants);
        steps.fold(0, |a, &b| greatest_common_divisor(a, b)).max(1)
    }

    /// The same with chained giant steps, if there are any.
    pub fn chained(mut self) -> Self {
        let step = self.giants.iter().fold(0, |a, &b| greatest_common_divisor(a, b));
        self.giant_steps = if step == 0 { GiantSteps::Separate } else { GiantSteps::Chain { step } };
        self
    }

    /// The same with baby steps in tiers of `tier`: one key serves all hops, and fewer rotations within a tier need
    /// one. Every hop is a whole key switch, and every tier is decomposed again.
    ///
    /// # Errors
    /// [`CircuitError::Count`] unless `1 <= tier <= n1`.
    pub fn tiered(mut self, tier: usize) -> Result<Self, CircuitError> {
        if tier == 0 || tier > self.n1 {
            let what = "baby steps of a tier";
            return Err(CircuitError::Count { what, count: tier, min: 1, max: self.n1 });
        }
        self.tier = tier;
        Ok(self)
    }

    /// Rotations of the input from one tier to the next.
    pub fn hops(&self) -> usize {
        self.babies.last().map_or(0, |last| last / self.tier)
    }

    /// Baby steps of tier `hop`.
    pub(super) fn babies_of(&self, hop: usize) -> impl Iterator<Item = usize> + '_ {
        self.babies.iter().copied().filter(move |step| step / self.tier == hop)
    }

    /// Rotations of sums that need a key.
    pub(crate) fn giant_rotations(&self) -> Vec<usize> {
        match self.giant_steps {
            GiantSteps::Separate => self.giants.iter().copied().filter(|&k| k != 0).collect(),
            GiantSteps::Chain { step } => vec![step],
        }
    }

    /// Key switches of sums.
    fn giant_switches(&self) -> usize {
        match self.giant_steps {
            GiantSteps::Separate => self.giant_rotations().len(),
            GiantSteps::Chain { step } => self.giants.last().map_or(0, |last| last / step),
        }
    }

    /// Key switches within tiers.
    fn baby_switches(&self) -> usize {
        self.babies.iter().filter(|&&k| k % self.tier != 0).count()
    }

    /// Rotations that need a key, ascending: those of the input (baby steps and hops) and of the sums (giant steps). A
    /// rotation that occurs in several roles is listed once.
    pub fn rotations(&self) -> Vec<usize> {
        let babies = self.babies.iter().map(|k| k % self.tier).filter(|&k| k != 0);
        let hop = (self.hops() > 0).then_some(self.tier);
        ascending(babies.chain(hop).chain(self.giant_rotations()))
    }

    /// Key switches: one per giant step other than 0, per hop, and per baby step that hops alone do not reach.
    pub fn key_switches(&self) -> usize {
        self.baby_switches() + self.hops() + self.giant_switches()
    }

    /// Work of one evaluation on one ciphertext.
    pub fn cost(&self, shape: SwitchShape) -> TransformCost {
        let SwitchShape { level, digits, special } = shape;
        let kept = level + 1;
        let targets = kept + special;
        let (babies, hops, giants) = (self.baby_switches(), self.hops(), self.giant_switches());
        let decomposed = self.babies.iter().filter(|&&k| k % self.tier != 0).map(|k| k / self.tier);
        let tiers = ascending(decomposed).len();
        // An inverse transform of each limb, and a forward one of each digit at each target outside of the digit.
        let decomposition = kept + digits * targets - kept;
        let division = special + kept;
        let last = 2 * (special + 1 + level);
        TransformCost {
            transforms: tiers * decomposition
                + hops * (decomposition + 2 * division)
                + giants * (division + decomposition)
                + last,
            products: 2 * targets * self.diagonals,
            key_rows: targets * digits * (babies + hops + giants),
        }
    }
}

impl BsgsPlan {
    /// The operations of one evaluation on one ciphertext, except for the key switches of its baby and giant steps, at
    /// the level of the input: see [`super`].
    pub fn arithmetic(&self) -> Arithmetic {
        let lifted = self.unrotated;
        Arithmetic {
            diagonals: self.diagonals - lifted,
            lifted,
            visits: 1 + usize::from(lifted > 0),
            divided: 2,
            ..Arithmetic::default()
        }
    }

    /// The same for a ciphertext that one-digit keys raise to the level: this includes the baby steps, but not the
    /// giant steps.
    pub fn raised_arithmetic(&self) -> Arithmetic {
        let chained = self.giant_switches() > 0;
        let babies = self.babies.len();
        let lowered = if chained { 2 * self.giants.len() } else { 0 };
        Arithmetic {
            diagonals: self.diagonals,
            visits: 1 + babies + if chained { 2 * (self.giants.len() - 1) } else { 0 },
            key_rows: babies,
            raised_visits: 2 * babies,
            raised: 1,
            decomposed: 1,
            lowered,
            divided: if chained { 0 } else { 2 },
            rescaled: if chained { 2 } else { 0 },
            ..Arithmetic::default()
        }
    }

    /// Work of one evaluation on a ciphertext that keys with one special prime raise to `level`:
    /// [`Self::raised_arithmetic`], and the switches of the giant steps, whose key has the shape `giant`.
    pub(crate) fn raised_cost(&self, level: usize, giant: SwitchShape) -> TransformCost {
        let (own, giants) = (self.raised_arithmetic(), self.giant_switches());
        let (kept, targets) = (level + 1, level + 2);
        let giant_targets = kept + giant.special;
        TransformCost {
            transforms: own.limb_transforms(kept, targets) + giants * (giant.digits + 2) * giant_targets,
            products: 2 * targets * own.diagonals,
            key_rows: targets * own.key_rows + giants * giant_targets * giant.digits,
        }
    }
}

/// Numbers in ascending order, each once.
fn ascending(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: SwitchShape = SwitchShape { level: 9, digits: 4, special: 3 };

    #[test]
    fn steps_of_a_dense_matrix() {
        let plan = BsgsPlan::new(0..64, 64, 8).unwrap();
        assert_eq!(plan.babies, (0..8).collect::<Vec<_>>());
        assert_eq!(plan.giants, (0..64).step_by(8).collect::<Vec<_>>());
        assert_eq!((plan.key_switches(), plan.rotations().len()), (14, 14));
        let cost = plan.cost(SHAPE);
        // Decomposition 52, seven giant steps of 13 + 52, the last division 2 (4 + 9).
        assert_eq!(cost.transforms, 52 + 7 * 65 + 26);
        assert_eq!((cost.products, cost.key_rows), (26 * 64, 13 * 4 * 14));
        let beside = plan.arithmetic();
        assert_eq!((beside.diagonals, beside.lifted, beside.divided), (56, 8, 2));
        let raised = plan.clone().chained().raised_arithmetic();
        assert_eq!((raised.diagonals, raised.key_rows, raised.lowered, raised.rescaled), (64, 8, 16, 2));
        let chained = plan.clone().chained();
        assert_eq!(chained.giant_steps, GiantSteps::Chain { step: 8 });
        assert_eq!(chained.rotations(), (1..=8).collect::<Vec<_>>());
        assert_eq!((chained.key_switches(), chained.cost(SHAPE)), (14, cost));
        // A chain also passes over the multiples that are left out.
        let gaps = BsgsPlan::new([0, 3, 16, 40], 64, 4).unwrap().chained();
        assert_eq!((gaps.rotations(), gaps.key_switches()), (vec![3, 8], 1 + 5));
        assert_eq!(BsgsPlan::new(0..4, 64, 4).unwrap().chained().giant_steps, GiantSteps::Separate);
    }

    #[test]
    fn the_optimum_uses_strides_and_prefers_babies() {
        let strided = BsgsPlan::optimal((0..16).map(|k| 96 * k), 1 << 14, 15, SHAPE, usize::MAX).unwrap();
        assert_eq!(strided.n1 % 96, 0);
        assert!(strided.babies.len() > strided.giants.len(), "{strided:?}");
        for n1 in [1, 7, 96, 1024] {
            let other = BsgsPlan::new((0..16).map(|k| 96 * k), 1 << 14, n1).unwrap();
            assert!(other.cost(SHAPE).multiplications(15) >= strided.cost(SHAPE).multiplications(15));
        }
        let few = BsgsPlan::optimal((0..16).map(|k| 96 * k), 1 << 14, 15, SHAPE, 2).unwrap();
        assert_eq!((few.babies.len(), few.giants.len()), (2, 8));
        let identity = BsgsPlan::optimal([0], 1, 15, SHAPE, usize::MAX).unwrap();
        assert_eq!((identity.n1, identity.key_switches()), (1, 0));
    }

    #[test]
    fn indices_wrap_and_bad_counts_are_refused() {
        assert_eq!(BsgsPlan::new([3, 11], 8, 2).unwrap(), BsgsPlan::new([3], 8, 2).unwrap());
        assert_eq!(BsgsPlan::new([3], 8, 0), Err(CircuitError::BabySteps { n1: 0, slots: 8 }));
        assert_eq!(BsgsPlan::new([3], 8, 9), Err(CircuitError::BabySteps { n1: 9, slots: 8 }));
        assert!(matches!(BsgsPlan::new([], 8, 2), Err(CircuitError::Empty(_))));
    }
}
