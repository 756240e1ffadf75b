//! The change of width behind a convolution with stride: values at even rows and columns move together, then the
//! channels do. ARK's scenario CRot1: in each of two steps, one ciphertext is rotated by many amounts, and the results
//! are masked and summed. Both masks share a level.

use std::collections::{BTreeMap, BTreeSet};

use keywright_ckks::{Ciphertext, CkksParameters, Evaluator, Packing};
use keywright_ring::rotation_element;
use keywright_rlwe::EvaluationKeys;

use crate::StudyError;

/// A rotation, and the slots in which its result is kept: `run` at `start`, and again at every `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Steps to the left.
    pub step: usize,
    /// First slot.
    pub start: usize,
    /// Slots in a row.
    pub run: usize,
    /// Distance of the runs.
    pub period: usize,
}

/// A step of a change of width.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Rotations of one ciphertext.
    pub turns: Vec<Turn>,
    /// Automorphisms that are applied one after another for a Galois element.
    pub ways: BTreeMap<u64, Vec<u64>>,
}

pub(super) struct Mover<'a> {
    pub(super) parameters: &'a CkksParameters,
    pub(super) evaluator: Evaluator<'a>,
    /// Level of the input; the result is one below.
    pub(super) level: usize,
    pub(super) log_slots: u32,
    /// Key switches so far.
    pub(super) switches: usize,
}

impl<'a> Mover<'a> {
    pub(super) fn new(
        parameters: &'a CkksParameters,
        keys: &'a EvaluationKeys,
        level: usize,
        log_slots: u32,
    ) -> Result<Self, StudyError> {
        let evaluator = Evaluator::new(parameters, keys)?;
        Ok(Self { parameters, evaluator, level, log_slots, switches: 0 })
    }

    /// Applies the steps one after another.
    pub(super) fn change(&mut self, input: &Ciphertext, steps: &[Step]) -> Result<Ciphertext, StudyError> {
        let prime = self.parameters.rlwe().modulus(self.level).value() as f64;
        let scale = prime.powf(1.0 / steps.len() as f64);
        let mut value = self.evaluator.drop_to_level(input, self.level)?;
        for step in steps {
            let rotated = self.rotations(&value, step)?;
            let mut sum: Option<Ciphertext> = None;
            for turn in &step.turns {
                let mask = self.mask(turn);
                let packing = Packing::Slots { log_slots: self.log_slots };
                let mask = self.parameters.encode_real(&mask, packing, self.level, scale)?;
                let kept = self.evaluator.multiply_plain_lazy(&rotated[&self.element(turn.step)], &mask)?;
                match &mut sum {
                    Some(sum) => self.evaluator.add_assign(sum, &kept)?,
                    None => sum = Some(kept),
                }
            }
            value = sum.ok_or_else(|| StudyError::Wrong("a step without rotations".to_owned()))?;
            // The masks of a step do not overlap.
            value.estimate.magnitude = input.estimate.magnitude;
        }
        Ok(self.evaluator.rescale(&value)?)
    }

    fn element(&self, step: usize) -> u64 {
        rotation_element(self.parameters.rlwe().log_n(), step as i64)
    }

    fn mask(&self, turn: &Turn) -> Vec<f64> {
        let kept = |slot: usize| slot.checked_sub(turn.start).is_some_and(|at| at % turn.period < turn.run);
        (0..1usize << self.log_slots).map(|slot| f64::from(u8::from(kept(slot)))).collect()
    }

    /// The rotations of a step, by Galois element. Ways share what they have in common at their beginning.
    fn rotations(
        &mut self,
        input: &Ciphertext,
        step: &Step,
    ) -> Result<BTreeMap<u64, Ciphertext>, StudyError> {
        let mut rotated: BTreeMap<&[u64], Ciphertext> = BTreeMap::from([(&[][..], input.clone())]);
        let longest = step.ways.values().map(Vec::len).max().unwrap_or(0);
        for length in 1..=longest {
            let mut hops: BTreeMap<&[u64], BTreeSet<u64>> = BTreeMap::new();
            for way in step.ways.values().filter(|way| way.len() >= length) {
                hops.entry(&way[..length - 1]).or_default().insert(way[length - 1]);
            }
            for (parent, elements) in hops {
                let elements: Vec<u64> = elements.into_iter().collect();
                let turned = self.evaluator.automorphisms_hoisted(&rotated[parent], &elements)?;
                self.switches += elements.len();
                let ways = elements.iter().filter_map(|&element| {
                    let child =
                        |way: &&Vec<u64>| way.starts_with(parent) && way.get(length - 1) == Some(&element);
                    step.ways.values().find(child).map(|way| &way[..length])
                });
                rotated.extend(ways.collect::<Vec<_>>().into_iter().zip(turned));
            }
        }
        let results = step.turns.iter().map(|turn| {
            let element = self.element(turn.step);
            let way = step.ways.get(&element).map_or(&[][..], Vec::as_slice);
            if way.is_empty() && turn.step != 0 {
                return Err(StudyError::Wrong(format!("no way makes the rotation by {}", turn.step)));
            }
            Ok((element, rotated[way].clone()))
        });
        results.collect()
    }
}

#[cfg(test)]
mod tests {
    use keywright_bench::measuring::rng;
    use keywright_ckks::{CkksLiteral, Decryptor};
    use keywright_rlwe::{KeyGenerator, SecretKey, Security};

    use super::*;
    use crate::coefficient_convolution::packing_keys;

    #[test]
    fn steps_rotate_mask_and_sum() {
        let mut literal = CkksLiteral::from_bits(10, &[50, 40, 40], &[60], 40.0).unwrap();
        literal.rlwe.security = Security::InsecureForExperiments;
        let parameters = CkksParameters::new(literal).unwrap();
        let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1)).unwrap();
        let mut generator = KeyGenerator::new(&secret, rng(2));
        let element = |step| rotation_element(10, step);
        let line = (element(2), 2, 1, true, vec![3]);
        let keys = packing_keys(parameters.rlwe(), &mut generator, &[line]).unwrap();
        // Runs of 2 at multiples of 4 move together: 8 k by 2, then the second half of 8 by 4.
        let turn = |step, start, run, period| Turn { step, start, run, period };
        let way = |step: i64| (element(step), vec![element(2); step as usize / 2]);
        let steps = [
            Step { turns: vec![turn(0, 0, 2, 8), turn(2, 2, 2, 8)], ways: BTreeMap::from([way(2)]) },
            Step { turns: vec![turn(0, 0, 4, 16), turn(4, 4, 4, 16)], ways: BTreeMap::from([way(4)]) },
        ];
        let values: Vec<f64> = (0..32).map(|slot| f64::from(slot) / 32.0).collect();
        let mut clear = values.clone();
        for step in &steps {
            let mut sum = vec![0.0; 32];
            for turn in &step.turns {
                for slot in
                    (0..32).filter(|&slot| slot >= turn.start && (slot - turn.start) % turn.period < turn.run)
                {
                    sum[slot] += clear[(slot + turn.step) % 32];
                }
            }
            clear = sum;
        }
        let decryptor = Decryptor::new(&parameters, &secret).unwrap();
        let packing = Packing::Slots { log_slots: 5 };
        let input = decryptor.encrypt_real(&values, packing, 2, &mut rng(3)).unwrap().expand();
        let mut mover = Mover::new(&parameters, &keys, 2, 5).unwrap();
        let result = mover.change(&input, &steps).unwrap();
        assert_eq!((mover.switches, result.level()), (3, 1));
        for (value, expected) in decryptor.decrypt_real(&result).unwrap().iter().zip(&clear) {
            assert!((value - expected).abs() < 1e-4, "{value} is not {expected}");
        }
        let missing = Step { ways: BTreeMap::new(), ..steps[1].clone() };
        assert!(matches!(mover.change(&input, &[missing]), Err(StudyError::Wrong(_))));
    }
}
