//! Trades key bytes against time: chooses the way to evaluate each factor.

use super::factor::FactorPlan;
use crate::CircuitError;

/// The bytes that the evaluation keys of a bootstrapping may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyBudget {
    /// No limit: the least time.
    Fastest,
    /// The least time with at most this many bytes in memory, with seeds instead of uniform halves.
    Bytes(usize),
    /// The fewest bytes, and the fastest of the ways that need only these.
    Fewest,
}

/// One way for each factor.
struct Choice {
    bytes: usize,
    work: f64,
    /// Index of the option of each factor.
    picks: Vec<usize>,
}

/// The items that no other item matches or beats in both figures, by the first one ascending. The first of equal items
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

/// The ways that no other beats in both bytes of keys and [`FactorPlan::work`], by ascending bytes.
pub(crate) fn worthwhile(ways: Vec<FactorPlan>) -> Vec<FactorPlan> {
    pareto(ways, |way| (way.key_bytes, way.work))
}

impl KeyBudget {
    /// The work and one way of each factor, of least work within the budget. `fixed` bytes of the budget go to keys
    /// that are needed anyway.
    ///
    /// Exact: for one factor after the other it keeps the best choices for every number of bytes, and drops the rest.
    ///
    /// # Errors
    /// [`CircuitError::KeyBudget`] with the fewest possible bytes.
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
