use keywright_rlwe::SwitchLayout;
use keywright_rlwe::switch::division_limbs;

use super::blocks::{BABY_WORDS, BLOCK, GIANTS, GROUP, TRANSFORMED_WORDS, row_words, sums_together};
use super::{BsgsPlan, GiantSteps};

/// Counts of a block row of transforms that determine the memory of its evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScratchShape {
    /// Inputs above the level of the transforms, which are copied.
    pub above: usize,
    /// Inputs, and the ciphertexts made from them before baby steps.
    pub tiers: usize,
    /// Decompositions of these: one for each shape of key.
    pub decomposed: usize,
    /// Baby steps of all inputs with a key.
    pub switched: usize,
    /// Baby steps of all inputs without a key.
    pub lifted: usize,
    /// Giant steps of all inputs, including 0.
    pub giants: usize,
    /// Giant steps other than 0.
    pub rotated: usize,
    /// Whether giant steps are chained.
    pub chained: bool,
    /// Words modulo each prime of all diagonals that are kept as coefficients: at least `2^MIN_LOG_N` each.
    pub transformed: usize,
}

impl ScratchShape {
    /// Counts for inputs with their plans, with encoded diagonals, at the level of the transforms.
    pub fn new(plans: &[&BsgsPlan]) -> Self {
        let mut giants: Vec<usize> = plans.iter().flat_map(|plan| &plan.giants).copied().collect();
        giants.sort_unstable();
        giants.dedup();
        let mut out = Self { giants: giants.len(), ..Self::default() };
        out.rotated = giants.iter().filter(|&&giant| giant != 0).count();
        for plan in plans {
            let lifted = plan.babies.iter().filter(|&&baby| baby % plan.tier == 0).count();
            out.tiers += 1 + plan.hops();
            out.decomposed += 1 + plan.hops();
            out.lifted += lifted;
            out.switched += plan.babies.len() - lifted;
            out.chained |= plan.giant_steps != GiantSteps::Separate;
        }
        out
    }

    /// Peak bytes of the evaluation, including the result but not the inputs, with keys of one layout and this many
    /// threads.
    pub fn bytes(&self, log_n: u32, layout: &SwitchLayout, threads: usize) -> usize {
        let n = 1usize << log_n;
        let (kept, removed) = (layout.level + 1, layout.removed().count());
        let (primes, digits) = (kept + removed, layout.digits.len());
        let tiers = self.above + self.tiers.saturating_sub(1);
        let inputs = if layout.raises { kept } else { 2 * kept * tiers };
        // What a chain has summed so far is held next to the sums that are left.
        let held = sums_together(self.chained && !layout.raises, self.switched > 0, self.giants);
        let sums = 2 * primes * (held + usize::from(held < self.giants));
        let tasks = threads.min(primes.div_ceil(GROUP));

        let most = (self.switched + self.lifted).clamp(1, (BABY_WORDS / (2 * n * GROUP)).max(1));
        let hoisted = if self.switched == 0 { 0 } else { self.decomposed * layout.decomposition_limbs() };
        let babies = inputs + hoisted + sums + tasks * (GROUP * (digits + 1) + 2);
        let blocks = 2 * GROUP * most * row_words(n)
            + (self.switched + self.lifted) * BLOCK
            + (self.transformed * held).div_ceil(self.giants.max(1)).min(TRANSFORMED_WORDS + n);
        let babies = babies * n + tasks * blocks;

        let zero = if self.rotated < self.giants || self.chained { 0 } else { 2 * primes };
        let together = if self.chained { 1 } else { GIANTS }.min(self.rotated);
        let switched = together * (kept + layout.decomposition_limbs()) + tasks * (GROUP * digits + 3);
        let giants = match (self.rotated, layout.raises) {
            (0, _) => 0,
            (_, true) => sums + division_limbs(2, kept, removed, threads),
            (_, false) => sums + zero + switched.max(division_limbs(together, kept, removed, threads)),
        };
        let division = 2 * primes + division_limbs(2, kept - 1, removed + 1, threads);
        babies.max((inputs + giants.max(division)) * n) * 8
    }
}
