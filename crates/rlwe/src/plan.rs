//! The arithmetic of one kind of key switch, precomputed.
//!
//! # Key switching
//! Input: `c` modulo `Q = q_0 ... q_l`. A key with special modulus `P` and rows
//! `(b_j, a_j) = (-a_j s + e_j + P g_j s', a_j)`, where `g_j` is 1 modulo the primes of digit `j` and 0 modulo the others.
//!
//! 1. *Decompose.* With `Q_j` the product of digit `j`, let `d_j` be the centred representative of `c mod Q_j`. Then
//!    `sum_j d_j g_j = c (mod Q)`, and each `d_j` is raised to all of `Q P` by exact basis conversion.
//! 2. *Inner product.* `sum_j d_j (b_j, a_j)` modulo `Q P` is an encryption of `P c s'` with error `sum_j d_j e_j`.
//! 3. *Divide* by `P`, rounding: `|d_j| <= Q_j / 2 (1 + eps)` and `P >= Q_j` make the error that remains comparable with
//!    the rounding of the division, see [`crate::noise`].
//!
//! # Coarser digits from the same key (coalescing, Belorgey et al., ePrint 2023/1328)
//! At a level below the key's, let `D` be the product of dropped primes that start at a digit boundary. `D c` modulo
//! `Q D` is 0 modulo every dropped prime, so digits above `l` vanish; the sum of `r` adjacent rows has
//! `g = 1` on their `r` digits together and serves one digit that is `r` times as long. Steps 1-3 run with input `D c`,
//! coarse digits, and special modulus `P D`, which must not be below a coarse digit. Fewer transforms, same key.
//!
//! # Merged rescaling
//! After a multiplication the division by `P D` and the rescaling by `q_l` are one division by `P D q_l`.
//!
//! # Raising the modulus
//! A key from an ephemeral sparse secret ([`crate::KeyElement::SparseToDense`]) switches `c` given modulo `q_0` to
//! `q_0 .. q_l`: with `d` the centred representative, `d` times its only row `(-a s + e + P s', a)` modulo `Q_l P` encrypts
//! `P d s'` over the integers, not modulo `q_0`. With a Galois element ([`crate::KeyElement::SparseToDenseGalois`]) the automorphism
//! follows, as after any switch: rotations of what is raised share `d`. One digit, because `|d| <= q_0 / 2` whatever `l`; so `P >= q_0` is enough.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::{Automorphism, Conversion, Modulus, RingError, ShoupFactor};

use crate::{Division, KeyLayout, KeySpec, Parameters, RlweError};

/// All constants of one kind of key switch; shared by every key and ciphertext it fits.
#[derive(Debug)]
pub struct SwitchPlan {
    /// Ciphertext level, before a merged rescaling.
    pub level: usize,
    /// Level of the polynomial that is switched: `level`, or 0 for a key that raises the modulus.
    pub input_level: usize,
    /// Coarse digits, ranges of ciphertext primes.
    pub digits: Vec<Range<usize>>,
    /// The division at the end: by the key's special primes, merged primes, and `q_level` when rescaling.
    pub division: Division,
    /// Per ciphertext prime, `D mod q_i`, when primes are merged.
    pub(crate) input_factor: Option<Vec<ShoupFactor>>,
    /// Per digit, the conversion to every target (kept, then removed).
    pub(crate) raise: Vec<Conversion>,
    /// When rescaling: per kept prime `q_level^-1`, by which an addend of the ciphertext's own modulus is scaled.
    pub(crate) addend_factor: Option<Vec<ShoupFactor>>,
    /// When rescaling: `P D mod q_level`, by which the addend enters before the division.
    pub(crate) addend_lift: Option<ShoupFactor>,
}

/// What decides a [`SwitchPlan`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlanId {
    level: usize,
    ends: Vec<usize>,
    special: Vec<usize>,
    merged: Vec<usize>,
    rescale: bool,
    raising: bool,
}

impl PlanId {
    /// The plan of a key of this spec, for ciphertexts at `level`, `coalesce` rows per digit.
    pub(crate) fn new(
        parameters: &Parameters,
        spec: &KeySpec,
        level: usize,
        coalesce: usize,
        rescale: bool,
    ) -> Result<Self, RlweError> {
        let refuse = |reason| RlweError::KeyUse {
            element: spec.element,
            key_level: spec.level,
            alpha: spec.alpha,
            level,
            coalesce,
            reason,
        };
        if level > spec.level {
            return Err(refuse("the ciphertext's level is above the key's"));
        }
        if rescale && level == 0 {
            return Err(refuse("there is no prime left to rescale by"));
        }
        if coalesce == 0 {
            return Err(refuse("a digit needs at least one row"));
        }
        let fine = spec.validate(parameters)?;
        if spec.element.raises() {
            if rescale || coalesce > 1 {
                return Err(refuse(
                    "a key that raises the modulus has one row and leaves nothing to rescale",
                ));
            }
            let special = spec.special.clone();
            let (ends, merged) = (alloc::vec![1], Vec::new());
            return Ok(Self { level, ends, special, merged, rescale, raising: true });
        }
        let special_bits = spec.special_bits(parameters);
        let used = fine.iter().take_while(|digit| digit.start <= level).count();
        let ends: Vec<usize> = fine[..used]
            .chunks(coalesce)
            .filter_map(|rows| rows.last().map(|digit| digit.end.min(level + 1)))
            .collect();
        // Merge dropped primes, from the first digit boundary above the level, until P D holds the longest digit.
        let first = fine[used - 1].end;
        let mut merged = Vec::new();
        let mut bits = special_bits;
        let widest = ranges(&ends)
            .map(|digit| digit.map(|i| parameters.log2_prime(i)).sum::<f64>())
            .fold(0.0, f64::max);
        while bits + 1e-9 < widest {
            let next = first + merged.len();
            if next > spec.level {
                return Err(refuse("the key has too few dropped primes to enlarge the special modulus with"));
            }
            bits += parameters.log2_prime(next);
            merged.push(next);
        }
        Ok(Self { level, ends, special: spec.special.clone(), merged, rescale, raising: false })
    }
}

fn ranges(ends: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    ends.iter().scan(0, |start, &end| Some(core::mem::replace(start, end)..end))
}

impl SwitchPlan {
    pub(crate) fn build(parameters: &Parameters, id: &PlanId) -> Self {
        let digits: Vec<_> = ranges(&id.ends).collect();
        let modulus = |i: usize| *parameters.modulus(i);
        let special: Vec<usize> = id.special.iter().chain(&id.merged).copied().collect();
        let kept = if id.rescale { id.level } else { id.level + 1 };
        let removed: Vec<usize> = special.iter().copied().chain(kept..=id.level).collect();
        let targets: Vec<Modulus> = (0..kept).chain(removed.iter().copied()).map(modulus).collect();
        let raise = digits
            .iter()
            .map(|digit| Conversion::new(&digit.clone().map(modulus).collect::<Vec<_>>(), &targets))
            .collect();
        let last = parameters.modulus(id.level);
        Self {
            level: id.level,
            input_level: if id.raising { 0 } else { id.level },
            input_factor: (!id.merged.is_empty()).then(|| {
                (0..=id.level).map(modulus).map(|m| m.shoup(parameters.product(&id.merged, &m))).collect()
            }),
            raise,
            addend_factor: id
                .rescale
                .then(|| (0..kept).map(modulus).map(|m| m.shoup(m.inv(m.reduce(last.value())))).collect()),
            addend_lift: id.rescale.then(|| last.shoup(parameters.product(&special, last))),
            division: Division::new(parameters, kept, removed),
            digits,
        }
    }

    /// Primes that digits are raised to: the kept ones, then the removed ones.
    pub fn target(&self, position: usize) -> usize {
        self.division.prime(position)
    }

    /// Number of targets.
    pub fn target_count(&self) -> usize {
        self.division.kept + self.division.removed.len()
    }

    /// Transforms of one switch: inverse ones of the input, of every raised digit, and of the division.
    pub fn transforms(&self) -> usize {
        let inputs = self.input_level + 1;
        let raised = self.digits.len() * self.target_count() - inputs;
        inputs + raised + 2 * self.target_count()
    }

    /// Terms that are multiplied with a constant for some target, all in all: of every digit for the targets that are not
    /// its own, and of both halves' remainders for the kept primes.
    pub fn conversions(&self) -> usize {
        let raised: usize = self
            .digits
            .iter()
            .zip(&self.raise)
            .map(|(digit, conversion)| {
                conversion.decomposer().term_count() * (self.target_count() - digit.len())
            })
            .sum();
        raised + 2 * self.division.term_count() * self.division.kept
    }

    /// Key rows that serve a coarse digit: for each used row of the key, which coarse digit.
    pub(crate) fn rows(&self, key: &KeyLayout) -> Vec<usize> {
        key.digits
            .iter()
            .filter(|row| row.start <= self.level)
            .filter_map(|row| self.digits.iter().position(|digit| digit.contains(&row.start)))
            .collect()
    }
}

/// Plans and automorphisms made so far. In a child that was forked while a list was locked, they are made each time.
#[derive(Default)]
pub(crate) struct PlanCache {
    #[cfg(feature = "std")]
    plans: List<PlanId, SwitchPlan>,
    #[cfg(feature = "std")]
    divisions: List<usize, Division>,
    #[cfg(feature = "std")]
    automorphisms: List<u64, Automorphism>,
}

#[cfg(feature = "std")]
type List<K, V> = keywright_ring::ForkMutex<alloc::collections::BTreeMap<K, Arc<V>>>;

impl PlanCache {
    #[cfg(feature = "std")]
    fn plan(&self, parameters: &Parameters, id: PlanId) -> Arc<SwitchPlan> {
        let build = || Arc::new(SwitchPlan::build(parameters, &id));
        match self.plans.lock() {
            Ok(mut plans) => plans.entry(id.clone()).or_insert_with(build).clone(),
            Err(_) => build(),
        }
    }

    #[cfg(not(feature = "std"))]
    fn plan(&self, parameters: &Parameters, id: PlanId) -> Arc<SwitchPlan> {
        Arc::new(SwitchPlan::build(parameters, &id))
    }

    #[cfg(feature = "std")]
    fn rescaling(&self, parameters: &Parameters, level: usize) -> Arc<Division> {
        let build = || Arc::new(Division::new(parameters, level, alloc::vec![level]));
        match self.divisions.lock() {
            Ok(mut divisions) => divisions.entry(level).or_insert_with(build).clone(),
            Err(_) => build(),
        }
    }

    #[cfg(not(feature = "std"))]
    fn rescaling(&self, parameters: &Parameters, level: usize) -> Arc<Division> {
        Arc::new(Division::new(parameters, level, alloc::vec![level]))
    }

    #[cfg(feature = "std")]
    fn automorphism(&self, log_n: u32, element: u64) -> Result<Arc<Automorphism>, RingError> {
        let mut list = self.automorphisms.lock();
        if let Some(found) = list.as_ref().ok().and_then(|list| list.get(&element)) {
            return Ok(found.clone());
        }
        let made = Arc::new(Automorphism::new(log_n, element)?);
        if let Ok(list) = &mut list {
            list.insert(element, made.clone());
        }
        Ok(made)
    }

    #[cfg(not(feature = "std"))]
    fn automorphism(&self, log_n: u32, element: u64) -> Result<Arc<Automorphism>, RingError> {
        Ok(Arc::new(Automorphism::new(log_n, element)?))
    }
}

impl Parameters {
    /// The plan of a key of this spec for ciphertexts at `level`, with `coalesce` key rows per digit, rescaling or not.
    ///
    /// # Errors
    /// [`RlweError::KeyUse`] if the key cannot be used so, with the reason; what [`KeySpec::validate`] says of the spec.
    pub fn switch_plan(
        &self,
        spec: &KeySpec,
        level: usize,
        coalesce: usize,
        rescale: bool,
    ) -> Result<Arc<SwitchPlan>, RlweError> {
        let id = PlanId::new(self, spec, level, coalesce, rescale)?;
        Ok(self.plans().plan(self, id))
    }

    /// The division by `q_level`, precomputed once.
    ///
    /// # Errors
    /// [`RlweError::Level`] at level 0, where no prime is left to divide by, or above the highest level.
    pub fn rescaling(&self, level: usize) -> Result<Arc<Division>, RlweError> {
        self.require_level(level)?;
        if level == 0 {
            return Err(RlweError::Level {
                level,
                max: 0,
                object: "a ciphertext that can no longer be rescaled",
            });
        }
        Ok(self.plans().rescaling(self, level))
    }

    /// The automorphism `X -> X^element`, precomputed once.
    ///
    /// # Errors
    /// [`RlweError::Ring`] unless the element is odd and below `2N`.
    pub fn automorphism(&self, element: u64) -> Result<Arc<Automorphism>, RlweError> {
        Ok(self.plans().automorphism(self.log_n(), element)?)
    }
}
