//! ModRaise: raising the modulus from `q_0` to `q_0 .. q_level`.
//!
//! The residues modulo `q_0` of `c_0, c_1` are read as integers in `[-q_0/2, q_0/2]` and reduced modulo the other
//! primes. An encryption of `m` modulo `q_0` then decrypts to `m + q_0 I` with small integers `I`.
//! [`crate::bootstrapping::range`] bounds them by the Hamming weight of the secret. A dense secret is therefore
//! replaced temporarily by a sparse one (sparse-secret encapsulation: Bossuat, Troncoso-Pastoriza and Hubaux, ePrint
//! 2022/024):
//!
//! 1. at `q_0`, switch to an ephemeral secret of weight `h` ([`KeyElement::DenseToSparse`]); its key has the modulus
//!    `q_0 P'` and is checked against the bound for sparse secrets;
//! 2. raise the modulus: `|I| <= K(h)`;
//! 3. switch back ([`KeyElement::SparseToDense`]) at the raised level. The switched polynomial is below `q_0 / 2` over
//!    the integers, so the key has a single digit and one special modulus above `q_0`, at any level.
//!
//! # Form
//! *Input*: level 0, any packing, scale `D`, message `m`; all coefficients of `D m` below `q_0 / 4`. *Output*: the
//! wanted level, the same packing, scale exactly `q_0`, so that the value of every coefficient is
//!
//! ```text
//! x = (D / q_0) m + I.
//! ```
//!
//! An input of a subring is moved up in step 1, whose key is then from `s'(X^k)` ([`KeyElement::RingUpToSparse`]).
//! Without an ephemeral secret, a key of its own moves it up before ([`KeyElement::RingUp`]). Its values are in
//! coefficients: coefficient `i` becomes coefficient `k i`.
//!
//! With fewer than `N/2` slots, `I` still has all `N` coefficients: a trace to the subring removes the others.
//!
//! # Error
//! In units of coefficients at scale `q_0`: without an ephemeral secret, only the error of moving up from a subring.
//! With one, variance `N sigma^2 (q_0 / P')^2 / 12 + (1 + h) / 12` for the first switch and
//! `N sigma^2 (q_0 / P)^2 / 12 + (1 + |s|^2) / 12` for the second ([`keywright_rlwe::noise`]).

use std::borrow::Cow;

use keywright_ckks::{Ciphertext, CkksError, CkksParameters, ErrorEstimate, Evaluator, Packing};
use keywright_ring::Poly;
use keywright_rlwe::{
    Decomposed, Finish, KeyElement, KeySpec, KeyUse, Parameters, RlweCiphertext, SecretDistribution, noise,
    raise_modulus, ring_up,
};

use crate::CircuitError;

/// The two keys that depend on an ephemeral secret; the paper calls them the keys of sparse-secret encapsulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EphemeralKeys {
    /// Hamming weight of the ephemeral secret.
    pub weight: usize,
    /// The key to it, at level 0: from the secret of the ring, or of the subring of the inputs.
    pub to_sparse: KeySpec,
    /// The key back, at the raised level.
    pub to_dense: KeySpec,
}

/// The plan of ModRaise: plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModRaisePlan {
    /// The raised level.
    pub level: usize,
    /// The switch to an ephemeral secret, if any.
    pub ephemeral: Option<EphemeralKeys>,
    /// The level-0 key that moves inputs of a subring up if there is no ephemeral secret. Otherwise
    /// [`EphemeralKeys::to_sparse`] does it.
    pub up: Option<KeySpec>,
}

impl ModRaisePlan {
    /// Raises to `level`, under an ephemeral secret of the given Hamming weight or, with `None`, under the main
    /// secret.
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError`]: a level that does not exist, special primes below `q_0`, a modulus `q_0 P'`
    /// above the bound for the ephemeral secret or `Q_level P` above the one for the main secret.
    pub fn new(parameters: &Parameters, level: usize, weight: Option<usize>) -> Result<Self, CircuitError> {
        Self::from_ring(parameters, level, weight, None)
    }

    /// The same for inputs of the subring of degree `2^from`, if one is given.
    ///
    /// # Errors
    /// As [`Self::new`]; [`keywright_rlwe::RlweError::RingSwitch`] for a degree that is not smaller.
    pub fn from_ring(
        parameters: &Parameters,
        level: usize,
        weight: Option<usize>,
        from: Option<u32>,
    ) -> Result<Self, CircuitError> {
        parameters.require_level(level)?;
        let key = |element, level| {
            let spec = KeySpec::new(parameters, element, level, 1, true);
            spec.validate(parameters).map(|_| spec)
        };
        let ephemeral = weight
            .map(|weight| {
                let there = match from {
                    Some(from) => KeyElement::RingUpToSparse { from, weight },
                    None => KeyElement::DenseToSparse(weight),
                };
                Ok::<_, CircuitError>(EphemeralKeys {
                    weight,
                    to_sparse: key(there, 0)?,
                    to_dense: key(KeyElement::SparseToDense(weight), level)?,
                })
            })
            .transpose()?;
        let up = from
            .filter(|_| ephemeral.is_none())
            .map(|from| key(KeyElement::RingUp { from }, 0))
            .transpose()?;
        Ok(Self { level, ephemeral, up })
    }

    /// The keys: none, the pair to and from the ephemeral secret in that order, or the key from a subring.
    pub fn key_specs(&self) -> Vec<KeySpec> {
        let pair = self.ephemeral.iter().flat_map(|e| [e.to_sparse.clone(), e.to_dense.clone()]);
        pair.chain(self.up.clone()).collect()
    }

    /// `log2` of the degree of the inputs' subring, if there is one.
    fn source(&self) -> Option<u32> {
        let key = self.ephemeral.as_ref().map(|keys| &keys.to_sparse).or(self.up.as_ref());
        key.and_then(|spec| spec.element.source_ring())
    }

    /// Largest Hamming weight of the secret under which the modulus is raised.
    pub fn weight(&self, parameters: &Parameters) -> usize {
        match (&self.ephemeral, parameters.secret()) {
            (Some(ephemeral), _) => ephemeral.weight,
            (None, SecretDistribution::Sparse { weight }) => weight,
            (None, SecretDistribution::Ternary) => parameters.n(),
        }
    }
}

/// A ciphertext at level 0 under the ephemeral secret, between steps 1 and 2. Its residues modulo `q_0` stand for
/// integers in `[-q_0/2, q_0/2]`. [`crate::bootstrapping::CoeffsToSlots::evaluate_raised`] does step 3 with every
/// rotation of its first factor.
#[derive(Debug, Clone)]
pub struct Raised(pub(crate) Ciphertext);

/// Step 1 alone: a ciphertext at level 0 under the ephemeral secret.
///
/// # Errors
/// [`CircuitError::NoEphemeralSecret`] for a plan without one; as [`mod_raise`].
pub fn switch_to_ephemeral(
    evaluator: &Evaluator<'_>,
    plan: &ModRaisePlan,
    input: &Ciphertext,
) -> Result<Raised, CircuitError> {
    check(evaluator, plan, input)?;
    let Some(ephemeral) = &plan.ephemeral else { return Err(CircuitError::NoEphemeralSecret) };
    let (parameters, rlwe) = (evaluator.parameters(), evaluator.parameters().rlwe());
    let key_use = evaluator.keys().best(ephemeral.to_sparse.element, 0, false)?;
    let sparse = match plan.source() {
        Some(_) => ring_up(rlwe, &input.rlwe, &key_use)?,
        None => switch(rlwe, &key_use, &input.rlwe.polys[0], &input.rlwe.polys[1])?,
    };
    let variance = noise::key_switch(rlwe, &key_use.plan, &key_use.key);
    Ok(Raised(raised(plan, input, sparse, parameters, variance)))
}

/// Raises the modulus of a ciphertext at level 0.
///
/// # Errors
/// [`CircuitError::StageLevel`] unless the input is at level 0; [`CkksError::Degree`]; a missing key; mixed
/// parameters.
pub fn mod_raise(
    evaluator: &Evaluator<'_>,
    plan: &ModRaisePlan,
    input: &Ciphertext,
) -> Result<Ciphertext, CircuitError> {
    check(evaluator, plan, input)?;
    let (parameters, rlwe) = (evaluator.parameters(), evaluator.parameters().rlwe());
    let Some(ephemeral) = &plan.ephemeral else {
        let up = plan.up.as_ref().map(|key| evaluator.keys().best(key.element, 0, false)).transpose()?;
        let variance =
            up.as_ref().map_or(0.0, |key_use| noise::key_switch(rlwe, &key_use.plan, &key_use.key));
        let lowest = match &up {
            Some(key_use) => Cow::Owned(ring_up(rlwe, &input.rlwe, key_use)?),
            None => Cow::Borrowed(&input.rlwe),
        };
        let raise = |poly| raise_modulus(rlwe, poly, plan.level);
        let polys = lowest.polys.iter().map(raise).collect::<Result<_, _>>()?;
        return Ok(raised(plan, input, RlweCiphertext { polys, key: input.key() }, parameters, variance));
    };
    let back = KeyElement::SparseToDense(ephemeral.weight);
    let key_use = evaluator.keys().best(back, plan.level, false)?;
    let Raised(sparse) = switch_to_ephemeral(evaluator, plan, input)?;
    let c0 = raise_modulus(rlwe, &sparse.rlwe.polys[0], plan.level)?;
    let mut dense = switch(rlwe, &key_use, &c0, &sparse.rlwe.polys[1])?;
    dense.key = dense.key.or(sparse.key());
    let mut out = Ciphertext { rlwe: dense, ..sparse };
    let variance = noise::key_switch(rlwe, &key_use.plan, &key_use.key);
    out.estimate = out.estimate.with_noise(out.deviation_of(variance));
    Ok(out)
}

fn check(evaluator: &Evaluator<'_>, plan: &ModRaisePlan, input: &Ciphertext) -> Result<(), CircuitError> {
    let parameters = evaluator.parameters();
    let ring = plan.source().map_or(Ok(parameters), |log_n| parameters.ring_of_degree(log_n))?;
    ring.require_same(&input.parameters, "the evaluator", "the ciphertext")?;
    evaluator.require_key(input)?;
    if input.level() != 0 {
        return Err(CircuitError::StageLevel { stage: "mod_raise", found: input.level(), expected: 0 });
    }
    if input.degree() != 1 {
        return Err(CkksError::Degree { operation: "mod_raise", degree: input.degree() }.into());
    }
    Ok(())
}

/// The form and estimate of the output, with an added error of that variance.
fn raised(
    plan: &ModRaisePlan,
    input: &Ciphertext,
    mut polys: RlweCiphertext,
    parameters: &CkksParameters,
    variance: f64,
) -> Ciphertext {
    polys.key = polys.key.or(input.key());
    let rlwe = parameters.rlwe();
    let q0 = rlwe.modulus(0).value() as f64;
    // |c_0 + c_1 s| <= q_0 (1 + h) / 2 in every coefficient. All coefficients add up in a slot.
    let meeting = if input.packing == Packing::Coefficients { 1.0 } else { rlwe.n() as f64 };
    let overflow = (plan.weight(rlwe) as f64 + 1.0) / 2.0 * meeting;
    let units = input.scale / q0;
    let estimate =
        ErrorEstimate { deviation: input.estimate.deviation * units, magnitude: overflow, ..input.estimate };
    let mut out =
        Ciphertext { parameters: parameters.clone(), rlwe: polys, scale: q0, estimate, ..input.clone() };
    out.estimate = estimate.with_noise(out.deviation_of(variance));
    out
}

/// `(c_0, 0)` and `c_1` switched, at the level of `c_0`.
fn switch(
    rlwe: &Parameters,
    key_use: &KeyUse,
    c0: &Poly<keywright_ring::Evaluation>,
    c1: &Poly<keywright_ring::Evaluation>,
) -> Result<RlweCiphertext, CircuitError> {
    let decomposed = Decomposed::new(rlwe, key_use.plan.clone(), c1)?;
    let key = key_use.key.load()?;
    let rows = decomposed.rows_of(&key, key_use.coalesce)?;
    let finish = [Finish { addend: [Some(c0), None], automorphism: None }];
    Ok(decomposed.switch(&[(&key, rows)], &finish).remove(0))
}
