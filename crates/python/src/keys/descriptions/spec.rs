use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::stored::not_pickled;
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec, Parameters};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::parameters::keys::KeyParameters;

/// The description of one switching key: its source, highest level, digits and special primes.
///
/// Made by `rotation`, `conjugation`, `relinearization` or `galois`. A key has `digits * (level + 1 + special primes)`
/// residue polynomials of N words per half, and a seeded key stores one half. A key at the level where it is used is
/// therefore smaller than one at the top. All constructors take:
///
///     level: highest ciphertext level of its use; the parameters' highest by default.
///     alpha: most primes per digit; by default the number that needs the fewest transforms at that level.
///     seeded: store a 32-byte seed for the uniform half: half the bytes.
///     special: indices of its special primes, among q_0 .. q_L, p_0, ...; chosen by default.
///
/// and raise LevelError, ParameterError or SecurityError for illegal values.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "KeySpec", module = "keywright", frozen, eq, hash)]
#[derive(Clone, PartialEq)]
pub(crate) struct PyKeySpec {
    pub(crate) parameters: KeyParameters,
    pub(crate) spec: KeySpec,
}

impl std::hash::Hash for PyKeySpec {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.spec.hash(state);
    }
}

/// What the constructors of specs take besides elements, as their documentation says.
#[derive(Clone)]
pub(crate) struct KeyShape {
    pub(crate) level: Option<usize>,
    pub(crate) alpha: Option<usize>,
    pub(crate) seeded: bool,
    pub(crate) special: Option<Vec<usize>>,
}

/// A checked spec with the defaults filled in.
pub(crate) fn spec(rlwe: &Parameters, element: KeyElement, shape: KeyShape) -> Result<KeySpec, Failure> {
    element.require_moving()?;
    let level = shape.level.unwrap_or(rlwe.max_level());
    rlwe.require_level(level)?;
    let alpha = shape.alpha.unwrap_or_else(|| KeySpec::best_alpha(rlwe, level));
    let mut spec = KeySpec::new(rlwe, element, level, alpha, shape.seeded);
    if let Some(special) = shape.special {
        spec.special = special;
    }
    spec.validate(rlwe)?;
    Ok(spec)
}

/// The specs of a list, all for rings of the same parameters as `left`.
///
/// # Errors
/// `MismatchError` with the two that differ.
pub(crate) fn specs_for(
    rlwe: &Parameters,
    specs: &[PyRef<'_, PyKeySpec>],
    left: &'static str,
    right: &'static str,
) -> Result<Vec<KeySpec>, Failure> {
    specs
        .iter()
        .map(|spec| {
            rlwe.ring_like(spec.parameters.rlwe(), left, right)?;
            Ok(spec.spec.clone())
        })
        .collect()
}

/// Galois element of a rotation.
pub(crate) fn rotation(rlwe: &Parameters, steps: i64) -> KeyElement {
    KeyElement::Galois(rotation_element(rlwe.log_n(), steps))
}

/// Galois element of the conjugation.
pub(crate) fn conjugation(rlwe: &Parameters) -> KeyElement {
    KeyElement::Galois((2 << rlwe.log_n()) - 1)
}

impl PyKeySpec {
    pub(crate) fn make(
        parameters: &KeyParameters,
        element: KeyElement,
        shape: KeyShape,
    ) -> Result<Self, Failure> {
        let spec = spec(parameters.rlwe(), element, shape)?;
        Ok(Self { parameters: parameters.clone(), spec })
    }

    /// The spec of a key of one of the rings of some parameters.
    pub(crate) fn of(parameters: &KeyParameters, spec: KeySpec) -> Result<Self, Failure> {
        Ok(Self { parameters: parameters.ring_named(spec.subring)?, spec })
    }

    /// The spec in words.
    pub(crate) fn describe(&self) -> String {
        let what = match self.steps() {
            Some(steps) => format!("rotation by {steps}"),
            None if self.spec.element.source_ring().is_some() => self.spec.element.to_string(),
            None => self.kind().into(),
        };
        let ring = self.spec.subring.map_or(String::new(), |log_n| format!(" at N = 2^{log_n}"));
        let seeded = if self.spec.seeded { ", seeded" } else { "" };
        let special = self.spec.special.len();
        format!(
            "{what}{ring}, level {}, alpha {}, {special} special primes{seeded}",
            self.spec.level, self.spec.alpha
        )
    }
}

not_pickled!(PyKeySpec);

/// Constructors of specs: documentation, name and own arguments of each, before the common ones or, with a default,
/// after them, and its result.
macro_rules! constructors {
    ($parameters:ident, $shape:ident; $($(#[$doc:meta])*
        $name:ident($($own:ident: $type:ty),* $(; $last:ident: $last_type:ty)?) -> $made:ty = $make:expr;
    )*) => {
        #[integers]
        #[pymethods]
        impl PyKeySpec {$(
            $(#[$doc])*
            #[staticmethod]
            #[pyo3(signature = (parameters, $($own,)* level=None, alpha=None, seeded=true, special=None $(, $last=None)?))]
            fn $name(
                parameters: KeyParameters,
                $($own: $type,)*
                level: Option<usize>,
                alpha: Option<usize>,
                seeded: bool,
                special: Option<Vec<usize>>,
                $($last: $last_type,)?
            ) -> Result<$made, Failure> {
                let ($parameters, $shape) = (parameters, KeyShape { level, alpha, seeded, special });
                $make
            }
        )*}
    };
}

constructors! { parameters, shape;
    /// A rotation by a number of steps to the left: numpy.roll(slots, -steps).
    rotation(steps: i64) -> Self = Self::make(&parameters, rotation(parameters.rlwe(), steps), shape);
    /// The complex conjugation of all slots.
    conjugation() -> Self = Self::make(&parameters, conjugation(parameters.rlwe()), shape);
    /// The relinearization of products.
    relinearization() -> Self = Self::make(&parameters, KeyElement::Relinearization, shape);
    /// The automorphism X -> X^element, for odd elements below 2N.
    galois(element: u64) -> Self = {
        let two_n = 2 * parameters.rlwe().n() as u64;
        if element.is_multiple_of(2) || element >= two_n {
            return Err(keywright_ring::RingError::GaloisElement { element, two_n }.into());
        }
        Self::make(&parameters, KeyElement::Galois(element), shape)
    };
    /// The keys with which `Evaluator.switch_ring` switches down to a smaller ring: one for each of the 2^(source -
    /// log_n) parts of the larger ring's secret. All are required, and have one shape.
    ///
    /// Args:
    ///     parameters: with the subring.
    ///     log_n: log2 of the degree of the smaller ring, the keys' own: level and special are those of that ring.
    ///     source: log2 of the degree of the larger ring; that of the parameters by default.
    ///
    /// Raises:
    ///     ParameterError: the parameters have no such ring, or it is not smaller.
    ring_down(log_n: u32; source: Option<u32>) -> Vec<Self> = {
        let from = parameters.ring_of_degree(source.unwrap_or(parameters.rlwe().log_n()))?.rlwe().log_n();
        let ring = parameters.ring_of_degree(log_n)?;
        let first = Self::make(&ring, KeyElement::RingDown { from, part: 0 }, shape)?;
        let part = |element| Self { spec: KeySpec { element, ..first.spec.clone() }, ..first.clone() };
        Ok(KeyElement::ring_down(from, log_n).map(part).collect())
    };
    /// The key with which `Evaluator.switch_ring` switches up to a larger ring.
    ///
    /// Args:
    ///     parameters: with the subring.
    ///     source: log2 of the degree of the smaller ring.
    ///     log_n: log2 of the degree of the larger ring, the key's own; that of the parameters by default.
    ///
    /// Raises:
    ///     ParameterError: the parameters have no such ring, or it is not larger.
    ring_up(source: u32; log_n: Option<u32>) -> Self = {
        let from = parameters.ring_of_degree(source)?;
        let ring = parameters.ring_of_degree(log_n.unwrap_or(parameters.rlwe().log_n()))?;
        let level = Some(shape.level.unwrap_or(from.rlwe().max_level()));
        Self::make(&ring, KeyElement::RingUp { from: source }, KeyShape { level, ..shape })
    };
}

#[pymethods]
impl PyKeySpec {
    /// "rotation", "conjugation", "galois", "relinearization", "secret", "dense_to_sparse", "sparse_to_dense",
    /// "sparse_to_dense_galois", "ring_down", "ring_up" or "ring_up_to_sparse".
    #[getter]
    pub(crate) fn kind(&self) -> &'static str {
        match self.spec.element {
            KeyElement::Relinearization => "relinearization",
            KeyElement::Secret(_) => "secret",
            KeyElement::DenseToSparse(_) => "dense_to_sparse",
            KeyElement::SparseToDense(_) => "sparse_to_dense",
            KeyElement::SparseToDenseGalois { .. } => "sparse_to_dense_galois",
            KeyElement::RingDown { .. } => "ring_down",
            KeyElement::RingUp { .. } => "ring_up",
            KeyElement::RingUpToSparse { .. } => "ring_up_to_sparse",
            element if element == conjugation(self.parameters.rlwe()) => "conjugation",
            _ if self.steps().is_some() => "rotation",
            KeyElement::Galois(_) => "galois",
        }
    }

    /// Galois element; None if it is not an automorphism.
    #[getter]
    fn galois_element(&self) -> Option<u64> {
        match self.spec.element {
            KeyElement::Galois(g) | KeyElement::SparseToDenseGalois { galois: g, .. } => Some(g),
            _ => None,
        }
    }

    /// The part of the larger ring's secret for a "ring_down" key; None for others.
    #[getter]
    fn part(&self) -> Option<usize> {
        match self.spec.element {
            KeyElement::RingDown { part, .. } => Some(part),
            _ => None,
        }
    }

    /// The primes of each digit, as ranges (first, one past the last).
    #[getter]
    fn digits(&self) -> Result<Vec<(usize, usize)>, Failure> {
        let digits = self.spec.validate(self.parameters.rlwe())?;
        Ok(digits.into_iter().map(|digit| (digit.start, digit.end)).collect())
    }

    /// Bytes of the same key with both halves stored.
    #[getter]
    fn unseeded_bytes(&self) -> Result<usize, Failure> {
        let spec = keywright_rlwe::KeySpec { seeded: false, ..self.spec.clone() };
        Ok(spec.bytes(self.parameters.rlwe())?)
    }

    fn __repr__(&self) -> String {
        format!("KeySpec({})", self.describe())
    }
}

getters! { PyKeySpec, self;
    /// The parameters of the key's ring.
    parameters: KeyParameters = self.parameters.clone();
    /// Steps of the rotation, from -N/4+1 to N/4; None if it is not a rotation.
    steps: Option<i64> = self.spec.element.rotation_steps(self.parameters.rlwe().log_n());
    /// log2 of the degree of its ring.
    log_n: u32 = self.parameters.rlwe().log_n();
    /// log2 of the degree of the other ring, for a key between rings; None for others.
    source_log_n: Option<u32> = self.spec.element.source_ring();
    /// Highest ciphertext level of its use.
    level: usize = self.spec.level;
    /// Most primes per digit.
    alpha: usize = self.spec.alpha;
    /// Indices of its special primes, counted through q_0 .. q_L, p_0, ...
    special: Vec<usize> = self.spec.special.clone();
    /// Whether the uniform half is a 32-byte seed.
    seeded: bool = self.spec.seeded;
    /// Bytes of the key in memory: residues, and the seed of a seeded one.
    bytes: Result<usize, Failure> = Ok(self.spec.bytes(self.parameters.rlwe())?);
}
