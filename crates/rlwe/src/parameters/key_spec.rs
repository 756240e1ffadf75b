//! Descriptions of switching keys.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use keywright_ring::{MAX_LOG_N, MIN_LOG_N, RingError, rotation_element};

use crate::{Parameters, RlweError, SecretDistribution, Security, require_secure};

/// The source secret of a switching key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyElement {
    /// From `s(X^g)` to `s`: rotations and conjugation.
    Galois(u64),
    /// From `s^2` to `s`.
    Relinearization,
    /// From another secret, identified by a number that the owner chooses.
    Secret(u64),
    /// From `s` to an ephemeral ternary secret of this Hamming weight: see [`crate::KeySequence`].
    DenseToSparse(usize),
    /// From that ephemeral secret back to `s`, raising the modulus from `q_0` to `q_0 .. q_level`. It has one digit,
    /// because the digit is below `q_0 / 2` at every level.
    SparseToDense(usize),
    /// The same from `s'(X^g)`, for the rotation by `g` of a raised ciphertext.
    SparseToDenseGalois {
        /// Hamming weight of the ephemeral secret.
        weight: usize,
        /// `g`.
        galois: u64,
    },
    /// One of the `k` keys that bring ciphertexts of a larger ring into the key's ring: from a part of the larger
    /// ring's secret `s` to the secret of the key's ring. With `s = sum_i X^i s_i(Y)`, `Y = X^k`, part 0 is `s_0` and
    /// part `j` is `Y s_{k-j}`: see [`mod@crate::switch::ring_down`].
    RingDown {
        /// `log2` of the degree of the larger ring.
        from: u32,
        /// `j`.
        part: usize,
    },
    /// From `s'(X^k)`, with `s'` the secret of a smaller ring, to the secret of the key's ring: see
    /// [`mod@crate::switch::ring_up`].
    RingUp {
        /// `log2` of the degree of the smaller ring.
        from: u32,
    },
    /// From `s'(X^k)` to an ephemeral ternary secret of this Hamming weight: [`Self::DenseToSparse`] for a ciphertext
    /// of a smaller ring.
    RingUpToSparse {
        /// `log2` of the degree of the smaller ring.
        from: u32,
        /// Hamming weight of the ephemeral secret.
        weight: usize,
    },
}

impl KeyElement {
    /// Refuses the automorphism that moves nothing: nothing uses its key.
    ///
    /// # Errors
    /// [`RlweError::Unmoved`].
    pub fn require_moving(self) -> Result<(), RlweError> {
        if self == Self::Galois(1) { Err(RlweError::Unmoved) } else { Ok(()) }
    }

    /// Hamming weight of the ephemeral secret of the key, if any.
    pub fn ephemeral_weight(self) -> Option<usize> {
        match self {
            Self::DenseToSparse(weight)
            | Self::SparseToDense(weight)
            | Self::SparseToDenseGalois { weight, .. }
            | Self::RingUpToSparse { weight, .. } => Some(weight),
            Self::Galois(_)
            | Self::Relinearization
            | Self::Secret(_)
            | Self::RingDown { .. }
            | Self::RingUp { .. } => None,
        }
    }

    /// Whether the key switches to an ephemeral secret.
    pub fn leads_to_ephemeral(self) -> bool {
        matches!(self, Self::DenseToSparse(_) | Self::RingUpToSparse { .. })
    }

    /// `log2` of the degree of the other ring, for a key between rings.
    pub fn source_ring(self) -> Option<u32> {
        match self {
            Self::RingDown { from, .. } | Self::RingUp { from } | Self::RingUpToSparse { from, .. } => {
                Some(from)
            }
            _ => None,
        }
    }

    /// The elements of the keys that bring ciphertexts of the ring of degree `2^from` into that of `2^to`, part by
    /// part; empty unless the latter is smaller.
    pub fn ring_down(from: u32, to: u32) -> impl Iterator<Item = Self> {
        let parts = if from > to && from <= MAX_LOG_N { 1 << (from - to) } else { 0 };
        (0..parts).map(move |part| Self::RingDown { from, part })
    }

    /// Whether the key raises the modulus: its source is an ephemeral secret.
    pub(crate) fn raises(self) -> bool {
        matches!(self, Self::SparseToDense(_) | Self::SparseToDenseGalois { .. })
    }

    /// Steps of the rotation that this element is, in `-N/4+1..=N/4`; `None` if it is not a rotation, or there is no
    /// such ring.
    ///
    /// `5^(2^i) = 1 + 2^(i+2)` modulo `2^(i+3)`, so each bit of the logarithm follows from one bit of what the bits
    /// below it leave.
    pub fn rotation_steps(self, log_n: u32) -> Option<i64> {
        let Self::Galois(g) = self else { return None };
        let two_n = 2u64.checked_shl(log_n).filter(|_| (MIN_LOG_N..=MAX_LOG_N).contains(&log_n))?;
        if g >= two_n {
            return None;
        }
        let order = 1i64 << (log_n - 1);
        let (mut steps, mut rest) = (0, g);
        for bit in 0..log_n - 1 {
            if rest >> (bit + 2) & 1 == 1 {
                steps |= 1 << bit;
                rest = rest * rotation_element(log_n, -(1 << bit)) % two_n;
            }
        }
        (rest == 1).then_some(if steps > order / 2 { steps - order } else { steps })
    }
}

impl fmt::Display for KeyElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Galois(g) => write!(f, "Galois element {g}"),
            Self::Relinearization => f.write_str("relinearization"),
            Self::Secret(id) => write!(f, "secret {id}"),
            Self::DenseToSparse(weight) => write!(f, "the switch to an ephemeral secret of weight {weight}"),
            Self::SparseToDense(weight) => {
                write!(f, "the switch from an ephemeral secret of weight {weight}")
            }
            Self::SparseToDenseGalois { weight, galois } => {
                write!(
                    f,
                    "the switch from an ephemeral secret of weight {weight} with Galois element {galois}"
                )
            }
            Self::RingDown { from, part } => write!(f, "part {part} of the switch down from N = 2^{from}"),
            Self::RingUp { from } => write!(f, "the switch up from N = 2^{from}"),
            Self::RingUpToSparse { from, weight } => {
                write!(f, "the switch up from N = 2^{from} to an ephemeral secret of weight {weight}")
            }
        }
    }
}

/// The description of one switching key: it determines the key's size, noise and uses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeySpec {
    /// The source secret.
    pub element: KeyElement,
    /// Highest ciphertext level it serves.
    pub level: usize,
    /// Most primes per digit.
    pub alpha: usize,
    /// Indices of its special primes: special primes of the parameters, or ciphertext primes above `level`.
    pub special: Vec<usize>,
    /// Whether the uniform half is a 32-byte seed, expanded at use.
    pub seeded: bool,
    /// The key's ring: `None` for that of the parameters, or `log2` of the degree of one of their subrings. Levels and
    /// indices of primes are those of that ring.
    pub subring: Option<u32>,
}

impl KeySpec {
    /// A key at `level` with digits of at most `alpha` primes, and the number of the parameters' special primes that
    /// makes the fewest transforms: more of them allow fuller digits, fewer of them are fewer targets. If no number is
    /// legal, it takes all of them, and [`KeySpec::validate`] tells why.
    pub fn new(
        parameters: &Parameters,
        element: KeyElement,
        level: usize,
        alpha: usize,
        seeded: bool,
    ) -> Self {
        let all = parameters.special_primes();
        let spec = |count: usize| Self {
            element,
            level,
            alpha,
            special: (all.start..all.start + count).collect(),
            seeded,
            subring: parameters.as_subring(),
        };
        (1..=all.len())
            .map(spec)
            .filter_map(|candidate| Some((candidate.rank(parameters)?, candidate)))
            .min_by_key(|(cost, _)| *cost)
            .map_or_else(|| spec(all.len()), |(_, best)| best)
    }

    /// The alpha whose key at `level`, made by [`KeySpec::new`], is legal and needs the fewest transforms; the smallest
    /// of equals. 1 if none is legal: [`KeySpec::validate`] then tells why.
    pub fn best_alpha(parameters: &Parameters, level: usize) -> usize {
        (1..=level.min(parameters.max_level()) + 1)
            .filter_map(|alpha| {
                let spec = Self::new(parameters, KeyElement::Relinearization, level, alpha, true);
                spec.validate(parameters).ok()?;
                Some((spec.rank(parameters)?, alpha))
            })
            .min()
            .map_or(1, |(_, alpha)| alpha)
    }

    /// Orders keys by time: the transforms of one use at the key's level, with this many digits. Each digit is
    /// transformed at every target, and so are both halves of the result before the division.
    pub fn transforms(&self, digits: usize) -> usize {
        (digits + 2) * (self.level + 1 + self.special.len())
    }

    /// [`Self::transforms`] for its own digits; `None` if they are not legal.
    fn rank(&self, parameters: &Parameters) -> Option<usize> {
        let spec = Self { level: self.level.min(parameters.max_level()), ..self.clone() };
        Some(spec.transforms(spec.digits(parameters).ok()?.len()))
    }

    /// `log2` of the special modulus.
    ///
    /// # Panics
    /// If the parameters of the key's ring have no such special prime; call [`Self::validate`] first.
    pub fn special_bits(&self, parameters: &Parameters) -> f64 {
        parameters.widths().log2_product(self.special.iter().copied())
    }

    /// Checks everything, including security, and returns the digits.
    ///
    /// # Errors
    /// [`RlweError::Ring`] for a Galois element that is even or above `2N`, [`RlweError::Level`], [`RlweError::Count`],
    /// [`RlweError::SpecialPrime`], [`RlweError::SpecialTooSmall`], [`RlweError::Insecure`], [`RlweError::NoBound`];
    /// [`RlweError::NoRing`] for a ring that the parameters lack, [`RlweError::RingSwitch`] for an impossible switch
    /// between rings.
    pub fn validate(&self, parameters: &Parameters) -> Result<Vec<Range<usize>>, RlweError> {
        let parameters = parameters.ring_named(self.subring)?;
        self.require_rings(parameters)?;
        if let KeyElement::Galois(element) | KeyElement::SparseToDenseGalois { galois: element, .. } =
            self.element
        {
            let two_n = 2u64 << parameters.log_n();
            if element.is_multiple_of(2) || element >= two_n {
                return Err(RingError::GaloisElement { element, two_n }.into());
            }
        }
        if let Some(weight) = self.element.ephemeral_weight()
            && !(1..=parameters.n()).contains(&weight)
        {
            let what = "Hamming weight of an ephemeral secret";
            return Err(RlweError::Count { what, count: weight, min: 1, max: parameters.n() });
        }
        parameters.require_level(self.level)?;
        let max = (self.level + 1).max(self.special.len());
        if self.alpha == 0 || self.alpha > max {
            return Err(RlweError::Count { what: "alpha", count: self.alpha, min: 1, max });
        }
        for (k, &index) in self.special.iter().enumerate() {
            let refuse = |reason| Err(RlweError::SpecialPrime { index, level: self.level, reason });
            if index >= parameters.prime_count() {
                return refuse("the parameters have no such prime");
            }
            if index <= self.level {
                return refuse("it is a ciphertext prime at the key's level");
            }
            if self.special[..k].contains(&index) {
                return refuse("it is listed twice");
            }
        }
        let digits = self.digits(parameters)?;
        if parameters.security() == Security::Classical128 {
            let log_qp = parameters.log2_q(self.level) + self.special_bits(parameters);
            let object = || format!("the key for {} at level {}", self.element, self.level);
            require_secure(object, parameters.log_n(), log_qp, self.target_secret(parameters))?;
        }
        Ok(digits)
    }

    /// Refuses a switch between rings whose sizes are not in the order that the element requires. Key generation checks
    /// that the other ring exists; using a key does not need it.
    fn require_rings(&self, ring: &Parameters) -> Result<(), RlweError> {
        let (element, log_n) = (self.element, ring.log_n());
        let refuse = |reason| Err(RlweError::RingSwitch { element, log_n, reason });
        match element {
            KeyElement::RingDown { from, .. } if !(log_n + 1..=MAX_LOG_N).contains(&from) => {
                refuse("a switch down starts from a larger ring")
            }
            KeyElement::RingDown { from, part } if part >> (from - log_n) != 0 => {
                refuse("the secret of the larger ring has fewer parts")
            }
            KeyElement::RingUp { from } | KeyElement::RingUpToSparse { from, .. }
                if !(MIN_LOG_N..log_n).contains(&from) =>
            {
                refuse("a switch up starts from a smaller ring")
            }
            _ => Ok(()),
        }
    }

    /// Distribution of the target secret, on which the key's security depends. The parameters are those of the key's
    /// ring.
    pub fn target_secret(&self, parameters: &Parameters) -> SecretDistribution {
        match self.element {
            KeyElement::DenseToSparse(weight) | KeyElement::RingUpToSparse { weight, .. } => {
                SecretDistribution::Sparse { weight }
            }
            _ => parameters.secret(),
        }
    }

    /// Primes of each digit. A key that raises the modulus has one digit for all primes; its value is below `q_0 / 2`.
    fn digits(&self, parameters: &Parameters) -> Result<Vec<Range<usize>>, RlweError> {
        let special_bits = self.special_bits(parameters);
        if self.element.raises() {
            parameters.widths().digits(0, 1, special_bits)?;
            return Ok(core::iter::once(0..self.level + 1).collect());
        }
        parameters.widths().digits(self.level, self.alpha, special_bits)
    }

    /// Indices of all primes that a row has a limb for: `0..=level`, then the special primes.
    pub fn primes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..=self.level).chain(self.special.iter().copied())
    }

    /// Bytes of the key in memory: residues, `(1 or 2) * N * 8 * dnum * (level + 1 + |P|)`, and the seed.
    ///
    /// # Errors
    /// As [`KeySpec::validate`].
    pub fn bytes(&self, parameters: &Parameters) -> Result<usize, RlweError> {
        let digits = self.validate(parameters)?.len();
        let parameters = parameters.ring_named(self.subring)?;
        Ok(parameters.widths().key_bytes(digits, self.primes().count(), self.seeded))
    }
}
