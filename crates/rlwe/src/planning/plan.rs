//! The arithmetic of one kind of key switch, precomputed.
//!
//! # Key switching
//! Input: `c` modulo `Q = q_0 ... q_l`. A key with special modulus `P` and rows
//! `(b_j, a_j) = (-a_j s + e_j + P g_j s', a_j)`, where `g_j` is 1 modulo the primes of digit `j` and 0 modulo the
//! others.
//!
//! 1. *Decompose.* With `Q_j` the product of digit `j`, let `d_j` be the centred representative of `c mod Q_j`. Then
//!    `sum_j d_j g_j = c (mod Q)`, and ModUp raises each `d_j` to all of `Q P` by exact basis conversion.
//! 2. *Inner product.* `sum_j d_j (b_j, a_j)` modulo `Q P` is an encryption of `P c s'` with error `sum_j d_j e_j`.
//! 3. *ModDown*: divide by `P`, rounding. Since `|d_j| <= Q_j / 2 (1 + eps)` and `P >= Q_j`, the remaining error is
//!    comparable with the rounding of the division, see [`crate::noise`].
//!
//! # Coarser digits from the same key
//! At a level below the key's, adjacent rows are summed and serve one longer digit, for the input `D c` and the special
//! modulus `P D`, with `D` a product of dropped primes: [`super::coalescing`].
//!
//! # Merged rescaling
//! After a multiplication the division by `P D` and the rescaling by `q_l` are one division by `P D q_l`.
//!
//! # Raising the modulus
//! A key from an ephemeral sparse secret ([`crate::KeyElement::SparseToDense`]) switches `c`, given modulo `q_0`, to
//! `q_0 .. q_l`. With `d` the centred representative, `d` times its only row `(-a s + e + P s', a)` modulo `Q_l P`
//! encrypts `P d s'` over the integers, not modulo `q_0`. With a Galois element
//! ([`crate::KeyElement::SparseToDenseGalois`]) the automorphism follows, as after any switch: rotations of a raised
//! ciphertext share `d`. There is one digit, because `|d| <= q_0 / 2` for every `l`; so `P >= q_0` suffices.

use alloc::vec::Vec;

use keywright_ring::{Conversion, Modulus, ShoupFactor};

use super::division::ModDown;
use super::layout::SwitchLayout;
use crate::{KeySpec, Parameters, RlweError};

/// All constants of one kind of key switch; shared by every key and ciphertext it fits.
#[derive(Debug)]
pub struct SwitchPlan {
    /// Digits and primes, before a merged rescaling.
    pub layout: SwitchLayout,
    /// The final division: by the key's special primes, merged primes, and `q_level` when rescaling.
    pub mod_down: ModDown,
    /// Per ciphertext prime, `D mod q_i`, when primes are merged.
    pub(crate) input_factor: Option<Vec<ShoupFactor>>,
    /// Per digit, the conversion to every target (kept, then removed).
    pub(crate) mod_up: Vec<Conversion>,
    /// When rescaling: per kept prime `q_level^-1`, the factor of an addend modulo the ciphertext's own primes.
    pub(crate) addend_factor: Option<Vec<ShoupFactor>>,
    /// When rescaling: `P D mod q_level`, the factor of the addend before the division.
    pub(crate) addend_lift: Option<ShoupFactor>,
}

/// The properties that determine a [`SwitchPlan`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlanId {
    level: usize,
    ends: Vec<usize>,
    special: Vec<usize>,
    merged: Vec<usize>,
    rescale: bool,
    raises: bool,
}

impl PlanId {
    fn new(layout: &SwitchLayout, rescale: bool) -> Self {
        Self {
            level: layout.level,
            ends: layout.digits.iter().map(|digit| digit.end).collect(),
            special: layout.special.clone(),
            merged: layout.merged.clone(),
            rescale,
            raises: layout.raises,
        }
    }
}

/// The layout of a use of a key of this spec, with `coalesce` rows per digit, and the lookup key of its plan.
pub(crate) fn identify(
    parameters: &Parameters,
    spec: &KeySpec,
    level: usize,
    coalesce: usize,
    rescale: bool,
) -> Result<(SwitchLayout, PlanId), RlweError> {
    let refuse = |reason| RlweError::KeyUse {
        element: spec.element,
        key_level: spec.level,
        alpha: spec.alpha,
        level,
        coalesce,
        reason,
    };
    let digits = spec.validate(parameters)?;
    if rescale && level == 0 {
        return Err(refuse("no prime is left for rescaling"));
    }
    let layout = SwitchLayout::new(parameters.widths(), spec.level, &digits, &spec.special, level, coalesce);
    let layout = if spec.element.raises() {
        if rescale || coalesce != 1 {
            return Err(refuse("a key that raises the modulus has one row, and its result is not rescaled"));
        }
        SwitchLayout::raising(level, &spec.special)
    } else {
        layout.map_err(refuse)?
    };
    let id = PlanId::new(&layout, rescale);
    Ok((layout, id))
}

impl SwitchPlan {
    pub(crate) fn build(parameters: &Parameters, layout: SwitchLayout, rescale: bool) -> Self {
        let level = layout.level;
        let modulus = |i: usize| *parameters.modulus(i);
        let special: Vec<usize> = layout.removed().collect();
        let kept = if rescale { level } else { level + 1 };
        let removed: Vec<usize> = special.iter().copied().chain(kept..=level).collect();
        let targets: Vec<Modulus> = (0..kept).chain(removed.iter().copied()).map(modulus).collect();
        let mod_up = layout
            .digits
            .iter()
            .map(|digit| Conversion::new(&digit.clone().map(modulus).collect::<Vec<_>>(), &targets))
            .collect();
        let last = parameters.modulus(level);
        Self {
            input_factor: (!layout.merged.is_empty()).then(|| {
                (0..=level).map(modulus).map(|m| m.shoup(parameters.product(&layout.merged, &m))).collect()
            }),
            mod_up,
            addend_factor: rescale
                .then(|| (0..kept).map(modulus).map(|m| m.shoup(m.inv(m.reduce(last.value())))).collect()),
            addend_lift: rescale.then(|| last.shoup(parameters.product(&special, last))),
            mod_down: ModDown::new(parameters, kept, removed),
            layout,
        }
    }

    /// Primes that digits are raised to: the kept ones, then the removed ones.
    pub fn target(&self, position: usize) -> usize {
        self.mod_down.prime(position)
    }

    /// Whether the plan also divides by `q_level`.
    pub fn rescales(&self) -> bool {
        self.addend_lift.is_some()
    }
}
