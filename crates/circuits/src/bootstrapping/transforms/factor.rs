use keywright_ckks::{Ciphertext, CkksParameters, Complex64, Evaluator};
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec, Parameters, RlweError};
use std::collections::BTreeMap;
use std::ops::Range;

use crate::CircuitError;
use crate::bootstrapping::keys::KeyDesign;
use crate::linear_transform::{
    BsgsPlan, LinearTransform, Spread, Storage, SwitchShape, evaluate, raised_element,
};

/// One linear transform of a stage: its level, its baby and giant steps and its keys. Plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorPlan {
    /// Level of its input; the output is one lower.
    pub level: usize,
    /// `log2` of the number of slots.
    pub log_slots: u32,
    /// Baby and giant steps.
    pub bsgs: BsgsPlan,
    /// Special primes of its key switches.
    pub special: Vec<usize>,
    /// Weight of the ephemeral secret, for a factor that is fused with the switch back from it:
    /// [`crate::bootstrapping::mod_raise::Raised`].
    pub raised: Option<usize>,
    /// One key for each rotation, at the factor's level, all with the same special primes. The giant steps of a raised
    /// factor use others.
    pub keys: Vec<KeySpec>,
    /// Bytes of the keys.
    pub key_bytes: usize,
    /// Work, in multiplications per coefficient of a polynomial modulo one prime: [`TransformCost::multiplications`].
    /// It orders the ways.
    ///
    /// [`TransformCost::multiplications`]: crate::linear_transform::TransformCost::multiplications
    pub work: f64,
}

/// Digits and special primes of a transform's keys.
struct KeyShape {
    /// Level of a key: that of the factor, or above.
    level: usize,
    special: Vec<usize>,
    alpha: usize,
    digits: usize,
    /// Bytes of a key.
    bytes: usize,
}

/// The shapes of keys at `level` that no other shape beats in both key rows and targets. Special primes are those of
/// the parameters, then ciphertext primes above the level: these are dropped already, so they are free, and more of
/// them make fewer digits.
///
/// # Errors
/// The errors of [`KeySpec::validate`] if no shape is legal.
fn key_shapes(rlwe: &Parameters, level: usize) -> Result<Vec<KeyShape>, RlweError> {
    rlwe.require_level(level)?;
    let element = KeyElement::Galois(rotation_element(rlwe.log_n(), 1));
    let primes = rlwe.widths().special_candidates(level, f64::INFINITY);
    let mut shapes: Vec<KeyShape> = Vec::new();
    for count in 1..=primes.len() {
        let special = primes[..count].to_vec();
        let spec =
            KeySpec { element, level, alpha: level + 1, special, seeded: true, subring: rlwe.as_subring() };
        let Ok(digits) = spec.validate(rlwe) else { continue };
        let alpha = digits.iter().map(Range::len).max().unwrap_or(1);
        // Targets grow with the count; only fewer digits compensate.
        if shapes.last().is_none_or(|last| digits.len() < last.digits) {
            let bytes = spec.bytes(rlwe)?;
            shapes.push(KeyShape { level, special: spec.special, alpha, digits: digits.len(), bytes });
        }
    }
    if shapes.is_empty() {
        KeySpec::new(rlwe, element, level, 1, true).validate(rlwe)?;
    }
    Ok(shapes)
}

/// The one shape of a design.
///
/// # Errors
/// As [`KeyDesign::key`].
fn designed_shape(rlwe: &Parameters, level: usize, design: KeyDesign) -> Result<KeyShape, RlweError> {
    let spec = design.key(rlwe, KeyElement::Galois(rotation_element(rlwe.log_n(), 1)), level)?;
    let digits = spec.validate(rlwe)?.iter().filter(|digit| digit.start <= level).count();
    let bytes = spec.bytes(rlwe)?;
    Ok(KeyShape { level: spec.level, special: spec.special, alpha: spec.alpha, digits, bytes })
}

/// Counts of baby steps that are tried: all up to 8, then four for each power of two.
fn counts(most: usize) -> impl Iterator<Item = usize> {
    let larger = (0..usize::BITS - 3).flat_map(|k| (4..8).map(move |c| c << k));
    (1..4).chain(larger).take_while(move |&count| count <= most)
}

/// Most baby steps of a factor: at `N = 2^16` each holds 1 MiB per prime during the evaluation.
const MOST_BABIES: usize = 64;

impl FactorPlan {
    /// The ways to evaluate a transform with diagonals at `indices`. They differ in the digits and special primes of
    /// the keys, in the number of baby steps and in their tiers. Giant steps are chained, which costs no more and needs
    /// one key.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`]; [`CircuitError::Empty`] without indices.
    pub(crate) fn ways(
        parameters: &CkksParameters,
        indices: impl IntoIterator<Item = usize>,
        log_slots: u32,
        level: usize,
        design: Option<KeyDesign>,
    ) -> Result<Vec<Self>, CircuitError> {
        let (rlwe, slots) = (parameters.rlwe(), 1usize << log_slots);
        let indices: Vec<usize> = indices.into_iter().collect();
        let stride = BsgsPlan::new(indices.iter().copied(), slots, 1)?.stride();
        let most = (slots / stride).min(indices.len().next_power_of_two()).min(MOST_BABIES);
        let mut out = Vec::new();
        let shapes = match design {
            Some(design) => vec![designed_shape(rlwe, level, design)?],
            None => key_shapes(rlwe, level)?,
        };
        // The steps are the same for every shape.
        let mut splits: Vec<(BsgsPlan, Vec<usize>)> = Vec::new();
        for count in counts(most) {
            let plan = BsgsPlan::new(indices.iter().copied(), slots, stride * count)?.chained();
            for width in (1..=count).filter(|&width| count.is_multiple_of(width)) {
                let bsgs = plan.clone().tiered(stride * width)?;
                let rotations = bsgs.rotations();
                splits.push((bsgs, rotations));
            }
        }
        for shape in shapes {
            let shape_of = SwitchShape { level, digits: shape.digits, special: shape.special.len() };
            for (bsgs, rotations) in &splits {
                let key = |&steps: &usize| KeySpec {
                    element: KeyElement::Galois(rotation_element(rlwe.log_n(), steps as i64)),
                    level: shape.level,
                    alpha: shape.alpha,
                    special: shape.special.clone(),
                    seeded: true,
                    subring: rlwe.as_subring(),
                };
                let keys: Vec<KeySpec> = rotations.iter().map(key).collect();
                let key_bytes = keys.len() * shape.bytes;
                let work = bsgs.cost(shape_of).multiplications(rlwe.log_n());
                let (bsgs, special) = (bsgs.clone(), shape.special.clone());
                out.push(Self { level, log_slots, bsgs, special, raised: None, keys, key_bytes, work });
            }
        }
        Ok(out)
    }

    /// The ways to evaluate a transform of a raised ciphertext with `to_dense`, the key of
    /// [`crate::bootstrapping::mod_raise::EphemeralKeys`]. They differ in the number of baby steps, and in the digits
    /// of the giant step's key.
    ///
    /// # Errors
    /// As [`Self::ways`].
    pub(crate) fn raised_ways(
        parameters: &CkksParameters,
        indices: impl IntoIterator<Item = usize>,
        log_slots: u32,
        weight: usize,
        to_dense: &KeySpec,
    ) -> Result<Vec<Self>, CircuitError> {
        let (rlwe, slots, level) = (parameters.rlwe(), 1usize << log_slots, to_dense.level);
        let indices: Vec<usize> = indices.into_iter().collect();
        let stride = BsgsPlan::new(indices.iter().copied(), slots, 1)?.stride();
        let most = (slots / stride).min(indices.len().next_power_of_two()).min(MOST_BABIES);
        let (shapes, baby_bytes) = (key_shapes(rlwe, level)?, to_dense.bytes(rlwe)?);
        let mut out = Vec::new();
        for count in counts(most) {
            let bsgs = BsgsPlan::new(indices.iter().copied(), slots, stride * count)?.chained();
            for shape in &shapes {
                let galois = |steps: usize| rotation_element(rlwe.log_n(), steps as i64);
                let babies = bsgs.babies.iter().map(|&steps| KeySpec {
                    element: raised_element(steps, galois(steps), weight),
                    ..to_dense.clone()
                });
                let giant = bsgs.giant_rotations().into_iter().map(|steps| KeySpec {
                    element: KeyElement::Galois(galois(steps)),
                    level,
                    alpha: shape.alpha,
                    special: shape.special.clone(),
                    seeded: true,
                    subring: rlwe.as_subring(),
                });
                let keys: Vec<KeySpec> = babies.chain(giant).collect();
                let giants = keys.len() - bsgs.babies.len();
                let key_bytes = bsgs.babies.len() * baby_bytes + giants * shape.bytes;
                let shape = SwitchShape { level, digits: shape.digits, special: shape.special.len() };
                let work = bsgs.raised_cost(level, shape).multiplications(rlwe.log_n());
                let (bsgs, special) = (bsgs.clone(), to_dense.special.clone());
                out.push(Self {
                    level,
                    log_slots,
                    bsgs,
                    special,
                    raised: Some(weight),
                    keys,
                    key_bytes,
                    work,
                });
            }
        }
        Ok(out)
    }

    /// Number of its possible baby steps, 0 among them.
    pub fn baby_steps(&self) -> usize {
        self.bsgs.n1 / self.bsgs.stride()
    }

    /// Of these ways, those whose baby steps are all rotations of the input; for each number of baby steps the one of
    /// least work, by that number.
    pub(crate) fn by_baby_steps(ways: Vec<Self>) -> BTreeMap<usize, Self> {
        let mut out: BTreeMap<usize, Self> = BTreeMap::new();
        for way in ways.into_iter().filter(|way| way.bsgs.tier == way.bsgs.n1) {
            let count = way.baby_steps();
            if out.get(&count).is_none_or(|known| way.work < known.work) {
                out.insert(count, way);
            }
        }
        out
    }

    /// The transform, for errors of the given [`Spread`].
    pub(crate) fn encode(
        &self,
        parameters: &CkksParameters,
        diagonals: &BTreeMap<usize, Vec<Complex64>>,
        spread: Spread,
        storage: Storage,
    ) -> Result<LinearTransform, CircuitError> {
        let BsgsPlan { n1, tier, .. } = self.bsgs;
        let transform = LinearTransform::with_steps(
            parameters,
            diagonals,
            self.log_slots,
            self.level,
            &self.special,
            storage,
            |indices, slots| BsgsPlan::new(indices, slots, n1)?.chained().tiered(tier),
        )?;
        Ok(transform.with_spread(spread))
    }
}

/// The transforms in order.
pub(crate) fn apply<'t>(
    evaluator: &Evaluator<'_>,
    transforms: impl IntoIterator<Item = &'t LinearTransform>,
    input: Ciphertext,
) -> Result<Ciphertext, CircuitError> {
    transforms.into_iter().try_fold(input, |ciphertext, transform| {
        let mut ciphertext = ciphertext;
        ciphertext.packing = keywright_ckks::Packing::Slots { log_slots: transform.log_slots() };
        evaluate(evaluator, &[(transform, &ciphertext)])
    })
}
