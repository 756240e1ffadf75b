//! Which relinearisation keys serve a circuit fastest.
//!
//! A key at level `l` may have dropped ciphertext primes beside the special primes of the parameters, so that its digits can be
//! longer and fewer the lower it is. With one key for all levels of a circuit, those below the highest use digits that were cut
//! for that one; each further key serves the levels from its own down to the next one's.

use keywright_rlwe::{KeyElement, KeySpec, Parameters};

use crate::CircuitError;

/// Time of a transform modulo a prime above `2^50`, in those of one below.
const WIDE: usize = 3;

/// Transforms of one use of a key at a level up to its own, those modulo wide primes counted as [`WIDE`]: of every digit at every
/// target, and of the division.
fn transforms(parameters: &Parameters, spec: &KeySpec, starts: &[usize], level: usize) -> usize {
    let digits = starts.iter().filter(|&&start| start <= level).count();
    let time = |i: usize| if parameters.modulus(i).is_narrow() { 1 } else { WIDE };
    let targets: usize = (0..=level).chain(spec.special.iter().copied()).map(time).sum();
    (digits + 2) * targets
}

/// Every legal seeded key at a level, of those that differ in the first digits' lengths: by number of special primes, dropped ciphertext
/// primes after those of the parameters and narrow ones first, each with the longest digits that these allow.
fn candidates(parameters: &Parameters, level: usize) -> Vec<(KeySpec, Vec<usize>)> {
    let mut dropped: Vec<usize> = (level + 1..=parameters.max_level()).collect();
    dropped.sort_by_key(|&i| !parameters.modulus(i).is_narrow());
    let primes: Vec<usize> = parameters.special_primes().chain(dropped).collect();
    let mut found = Vec::new();
    for count in 1..=primes.len() {
        let mut special = primes[..count].to_vec();
        special.sort_unstable();
        for alpha in (1..=(level + 1).min(count)).rev() {
            let element = KeyElement::Relinearization;
            let spec = KeySpec { element, level, alpha, special: special.clone(), seeded: true };
            if let Ok(digits) = spec.validate(parameters) {
                let starts = digits.into_iter().map(|digit| digit.start).collect();
                found.push((spec, starts));
            }
        }
    }
    found
}

/// At most `count` seeded relinearisation keys for relinearisations at these levels, one entry for each: those of fewest
/// transforms in all, then of fewest bytes. Levels descending.
///
/// # Errors
/// [`CircuitError::Empty`] for no levels or no keys; what [`KeySpec::validate`] says if no key is legal at a level.
pub fn relinearization_keys(
    parameters: &Parameters,
    levels: &[usize],
    count: usize,
) -> Result<Vec<KeySpec>, CircuitError> {
    if levels.is_empty() || count == 0 {
        return Err(CircuitError::Empty("the list of relinearisations or of keys"));
    }
    let mut uses = levels.to_vec();
    uses.sort_unstable_by(|a, b| b.cmp(a));
    // serve[i][j]: the best key that serves uses i..j, at the level of use i.
    let mut serve = Vec::with_capacity(uses.len());
    for (i, &level) in uses.iter().enumerate() {
        let candidates = candidates(parameters, level);
        let mut row = Vec::with_capacity(uses.len() - i);
        for end in i + 1..=uses.len() {
            let cost = |(spec, starts): &(KeySpec, Vec<usize>)| {
                let work: usize =
                    uses[i..end].iter().map(|&level| transforms(parameters, spec, starts, level)).sum();
                (work, starts.len() * (level + 1 + spec.special.len()))
            };
            let best = candidates
                .iter()
                .map(|candidate| (cost(candidate), &candidate.0))
                .min_by_key(|(cost, _)| *cost);
            let Some((cost, spec)) = best else {
                // None is legal: the usual one says why.
                let usual = KeySpec::new(parameters, KeyElement::Relinearization, level, 1, true);
                usual.validate(parameters)?;
                return Ok(vec![usual]);
            };
            row.push((cost, spec.clone()));
        }
        serve.push(row);
    }
    // least[i]: the best keys for uses i.., with one more allowed in every round.
    type Found = Option<((usize, usize), Vec<KeySpec>)>;
    let mut least: Vec<Found> = vec![None; uses.len() + 1];
    least[uses.len()] = Some(((0, 0), Vec::new()));
    for _ in 0..count {
        let mut next = least.clone();
        for (i, row) in serve.iter().enumerate() {
            for ((cost, spec), rest) in row.iter().zip(&least[i + 1..]) {
                let Some((rest, keys)) = rest else { continue };
                let total = (cost.0 + rest.0, cost.1 + rest.1);
                if next[i].as_ref().is_none_or(|(best, _)| total < *best) {
                    next[i] = Some((total, [std::slice::from_ref(spec), keys].concat()));
                }
            }
        }
        least = next;
    }
    Ok(least.swap_remove(0).map_or(Vec::new(), |(_, keys)| keys))
}

#[cfg(test)]
mod tests {
    use keywright_rlwe::ParametersLiteral;

    use super::*;

    fn parameters() -> Parameters {
        Parameters::new(ParametersLiteral::from_bits(16, &[50; 27], &[50; 8]).unwrap()).unwrap()
    }

    fn total(parameters: &Parameters, keys: &[KeySpec], levels: &[usize]) -> usize {
        let cost = |level: usize| {
            keys.iter()
                .filter(|key| key.level >= level)
                .map(|key| {
                    let digits = key.validate(parameters).unwrap();
                    let starts: Vec<usize> = digits.iter().map(|d| d.start).collect();
                    transforms(parameters, key, &starts, level)
                })
                .min()
                .unwrap()
        };
        levels.iter().map(|&level| cost(level)).sum()
    }

    #[test]
    fn more_keys_never_cost_time_and_save_some() {
        let parameters = parameters();
        let levels = [22, 21, 20, 20, 20, 19, 19, 18, 18, 18, 17, 16, 15, 14, 14, 13];
        let mut before = usize::MAX;
        for count in 1..=4 {
            let keys = relinearization_keys(&parameters, &levels, count).unwrap();
            assert!(keys.len() <= count && keys[0].level == 22);
            assert!(keys.windows(2).all(|pair| pair[0].level > pair[1].level));
            let now = total(&parameters, &keys, &levels);
            assert!(now <= before);
            before = now;
        }
        // The key that KeySpec makes on its own, from the special primes of the parameters.
        let alpha = KeySpec::best_alpha(&parameters, 22);
        let usual = KeySpec::new(&parameters, KeyElement::Relinearization, 22, alpha, true);
        let usual = total(&parameters, &[usual], &levels);
        let one = total(&parameters, &relinearization_keys(&parameters, &levels, 1).unwrap(), &levels);
        assert!(one <= usual && before * 11 < usual * 10, "{before} {one} {usual}");
    }

    #[test]
    fn dropped_primes_are_above_the_level_and_narrow_ones_come_first() {
        let literal = ParametersLiteral::from_bits(16, &[50, 50, 50, 50, 60, 50], &[60]).unwrap();
        let parameters = Parameters::new(literal).unwrap();
        let keys = relinearization_keys(&parameters, &[3], 1).unwrap();
        // Two digits of two primes, over the special prime and the narrow one of the two that are dropped.
        assert_eq!((keys[0].alpha, &keys[0].special[..]), (2, &[5, 6][..]));
        assert!(keys[0].special.iter().all(|&i| i > 3));
        assert_eq!(relinearization_keys(&parameters, &[5], 1).unwrap()[0].special, [6]);
    }

    #[test]
    fn impossible_keys_are_named() {
        let literal = ParametersLiteral::from_bits(16, &[60, 50], &[50]).unwrap();
        let parameters = Parameters::new(literal).unwrap();
        assert!(relinearization_keys(&parameters, &[1], 1).is_err());
        assert!(matches!(relinearization_keys(&parameters, &[], 1), Err(CircuitError::Empty(_))));
        assert!(matches!(relinearization_keys(&parameters, &[1], 0), Err(CircuitError::Empty(_))));
        assert!(relinearization_keys(&parameters, &[7], 1).is_err());
    }
}
