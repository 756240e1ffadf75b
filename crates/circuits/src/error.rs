use keywright_ckks::CkksError;
use keywright_ckks::encoder::EncoderError;
use keywright_rlwe::RlweError;
use thiserror::Error;

use crate::bootstrapping::Stage;

/// What can go wrong in a circuit.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// Keys, levels, scales, packings, parameters.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// Keys of the right elements and levels, but over other special primes than the transform's diagonals.
    #[error(
        "the diagonals are encoded over the special primes {encoded:?}, but at level {level} there are: {found}; encode \
         the transform over the special primes of its keys, the same ones for all of them"
    )]
    SpecialPrimes {
        /// Special primes of the transform.
        encoded: Vec<usize>,
        /// Its level.
        level: usize,
        /// The keys that do not fit, with the special primes of each of their uses.
        found: String,
    },
    /// A stage of bootstrapping cannot do its work.
    #[error("{stage}, which takes ciphertexts at level {level}: {source}")]
    Stage {
        /// The stage.
        stage: Stage,
        /// Level at which it takes its input.
        level: usize,
        /// Why.
        source: Box<CircuitError>,
    },
    /// A baby-step count that makes no sense.
    #[error("{n1} baby steps for {slots} slots; use 1 to {slots}")]
    BabySteps {
        /// The count.
        n1: usize,
        /// Slots of the transform.
        slots: usize,
    },
    /// More slots than the ring has.
    #[error("2^{log_slots} slots; the parameters have 2^{max}")]
    LogSlots {
        /// `log2` of the number asked for.
        log_slots: u32,
        /// `log2` of the largest number.
        max: u32,
    },
    /// A diagonal of the wrong length.
    #[error("diagonal {index} has {found} values; it needs one per slot: {expected}")]
    DiagonalLength {
        /// The diagonal.
        index: usize,
        /// Its length.
        found: usize,
        /// The number of slots.
        expected: usize,
    },
    /// Layers of a Fourier transform that do not make one.
    #[error("the factors have {found} layers; a Fourier transform of 2^{log_slots} slots has {log_slots}")]
    DftLayers {
        /// Their sum.
        found: u64,
        /// `log2` of the number of slots.
        log_slots: u32,
    },
    /// Nothing to do.
    #[error("{0} is empty; give at least one")]
    Empty(&'static str),
    /// Transforms that are summed must agree in this.
    #[error("transforms that are summed differ in their {what}: {left} and {right}; encode them alike")]
    Mismatch {
        /// In what they differ.
        what: &'static str,
        /// Of the first transform.
        left: String,
        /// Of the other.
        right: String,
    },
    /// A coefficient or value that is not a finite number.
    #[error("{what} {index} is {value}, not a finite number")]
    NotFinite {
        /// What it is.
        what: &'static str,
        /// Which one.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// An interval without inside.
    #[error("[{a}, {b}] is not an interval; give finite a < b")]
    Interval {
        /// Lower end.
        a: f64,
        /// Upper end.
        b: f64,
    },
}

impl From<RlweError> for CircuitError {
    fn from(error: RlweError) -> Self {
        Self::Ckks(error.into())
    }
}

impl From<EncoderError> for CircuitError {
    fn from(error: EncoderError) -> Self {
        Self::Ckks(error.into())
    }
}
