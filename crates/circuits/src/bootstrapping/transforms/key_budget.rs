//! Keys against time: which way each factor is evaluated.

use super::factor::FactorPlan;
use crate::CircuitError;

/// How many bytes the evaluation keys of a bootstrapping may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyBudget {
    /// Any number: least time.
    Fastest,
    /// Least time with at most so many bytes in memory, seeds instead of uniform halves.
    Bytes(usize),
    /// Fewest bytes, and of the ways that have as few the fastest.
    Fewest,
}

/// One way for each factor.
struct Choice {
    bytes: usize,
    work: f64,
    /// Index of the option of each factor.
    picks: Vec<usize>,
}

/// Those of which no other is at least as good in both figures, by the first one ascending. Of equal ones the first
/// stays.
fn pareto<T>(mut list: Vec<T>, figures: impl Fn(&T) -> (usize, f64)) -> Vec<T> {
    list.sort_by(|a, b| {
        let ((left, time), (right, other)) = (figures(a), figures(b));
        left.cmp(&right).then(time.total_cmp(&other))
    });
    let mut best = f64::INFINITY;
    list.retain(|item| {
        let (_, time) = figures(item);
        let keep = time < best;
        best = best.min(time);
        keep
    });
    list
}

/// The ways of which no other has both fewer bytes of keys and less [`FactorPlan::work`], by ascending bytes.
pub(crate) fn worthwhile(ways: Vec<FactorPlan>) -> Vec<FactorPlan> {
    pareto(ways, |way| (way.key_bytes, way.work))
}

impl KeyBudget {
    /// The work and one way of each factor, of least work within the budget, of which keys of `fixed` bytes that
    /// are needed anyway use up a part.
    ///
    /// Exact: for one factor after the other the best choices for every number of bytes are kept, and no others.
    ///
    /// # Errors
    /// [`CircuitError::KeyBudget`] naming the fewest bytes there can be.
    pub(crate) fn choose(
        self,
        fixed: usize,
        factors: Vec<Vec<FactorPlan>>,
    ) -> Result<(f64, Vec<FactorPlan>), CircuitError> {
        let factors: Vec<_> = factors.into_iter().map(worthwhile).collect();
        let mut choices = vec![Choice { bytes: fixed, work: 0.0, picks: Vec::new() }];
        for options in &factors {
            let extended = choices.iter().flat_map(|choice| {
                options.iter().enumerate().map(|(index, option)| Choice {
                    bytes: choice.bytes.saturating_add(option.key_bytes),
                    work: choice.work + option.work,
                    picks: choice.picks.iter().copied().chain([index]).collect(),
                })
            });
            choices = pareto(extended.collect(), |choice| (choice.bytes, choice.work));
        }
        let chosen = match self {
            Self::Fastest => choices.last(),
            Self::Fewest => choices.first(),
            Self::Bytes(budget) => choices.iter().rev().find(|choice| choice.bytes <= budget),
        };
        let Some(Choice { picks, work, .. }) = chosen else {
            let minimum = choices.first().map_or(fixed, |choice| choice.bytes);
            let budget = if let Self::Bytes(budget) = self { budget } else { 0 };
            return Err(CircuitError::KeyBudget { budget, minimum });
        };
        let picked = factors.into_iter().zip(picks);
        Ok((*work, picked.filter_map(|(options, &pick)| options.into_iter().nth(pick)).collect()))
    }
}
