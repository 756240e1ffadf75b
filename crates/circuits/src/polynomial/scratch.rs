use super::plan::{Node, PolynomialPlan};

/// Peak number of limbs of an evaluation, including its result.
struct LimbPeak<'r> {
    top: usize,
    /// Limbs of a relinearization at a level, including the result.
    relinearization: &'r dyn Fn(usize) -> usize,
    peak: usize,
}

impl LimbPeak<'_> {
    /// A sum of products at a level, relinearized and rescaled, in addition to the limbs already held.
    fn product(&mut self, held: usize, level: usize) {
        self.peak = self.peak.max(held + 3 * (level + 1) + (self.relinearization)(level));
    }

    fn node(&mut self, node: &Node, held: usize) {
        let level = self.top + 1 - node.depth;
        let mut quotients = 0;
        for (quotient, _) in &node.products {
            self.node(quotient, held + quotients);
            quotients += 2 * (self.top + 1 - quotient.depth);
        }
        if node.products.is_empty() {
            self.peak = self.peak.max(held + 4 * (level + 1));
        } else {
            self.product(held + quotients, level);
        }
    }
}

impl PolynomialPlan {
    /// Peak number of limbs of the evaluation on an input at `level`, including the result but not the input. The
    /// function gives those of a relinearization with a rescaling at a level, without its input.
    pub fn scratch_limbs(&self, level: usize, relinearization: &dyn Fn(usize) -> usize) -> usize {
        let change = 2 * (level + 1);
        let top = level - self.change_depth();
        let mut limbs = LimbPeak { top, relinearization, peak: 2 * change };
        let mut powers = 2 * (top + 1);
        for power in self.powers() {
            let level = top + 1 - power.depth;
            limbs.product(powers, level);
            powers += 2 * level;
        }
        if let Some(root) = self.root() {
            limbs.node(root, powers);
        }
        limbs.peak
    }
}
