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
    /// The stages of a bootstrapping do not fit the levels that there are.
    #[error(
        "after raising the modulus {needed} levels are used, so that a result at level {output_level} needs {}, and the \
         parameters have {available}; ciphertexts are bootstrapped at level {input_level}, so the result must not be below \
         it: use more ciphertext primes, fewer levels for a stage, or another output level",
        needed.saturating_add(*output_level)
    )]
    BootstrapLevels {
        /// Levels of the stages after `mod_raise`.
        needed: usize,
        /// Level of the input.
        input_level: usize,
        /// Level of the result.
        output_level: usize,
        /// Highest level of the parameters.
        available: usize,
    },
    /// A modulus that is raised under the main secret.
    #[error("the plan has no ephemeral secret; give its bootstrapping an ephemeral weight")]
    NoEphemeralSecret,
    /// Inputs of a subring where they do not begin with slots to coefficients, or come back.
    #[error(
        "inputs of a subring are for bootstraps of one pass in which slots_to_coeffs comes first; switch them up before, or leave out \
         the input ring"
    )]
    InputRing,
    /// A stage that is one with the stage before.
    #[error(
        "the plan makes the switch back from the ephemeral secret one with the first rotations of coeffs_to_slots: bootstrap as a whole, \
         or plan with stages apart"
    )]
    StagesFused,
    /// Fewer bytes of keys than any way to bootstrap needs.
    #[error("keys of at most {budget} bytes; the fewest that there can be have {minimum}")]
    KeyBudget {
        /// Bytes asked for.
        budget: usize,
        /// The fewest.
        minimum: usize,
    },
    /// A pass of an iterated bootstrapping may leave more than the next one can correct.
    #[error(
        "pass {iteration} of an iterated bootstrapping leaves an error whose bound has {found:.1} bits, and the next one corrects it if there are \
         {bits}: use a log_precision of {:.0} or less, or a more precise pass",
        (*found / *iteration as f64).floor()
    )]
    Iteration {
        /// The pass, counted from 1.
        iteration: usize,
        /// Bits after the point that the bound must have.
        bits: u32,
        /// Bits that it has.
        found: f64,
    },
    /// A failure probability that is none.
    #[error("2^{log2} is no probability of failure: log2 must be below 0, such as -40")]
    FailureProbability {
        /// Its `log2`.
        log2: f64,
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
    /// A matrix that does not multiply the slots.
    #[error(
        "a matrix of {rows} x {columns} does not multiply {slots} slots; give one of 1 to {slots} rows and columns, or more slots"
    )]
    MatrixShape {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// The number of slots.
        slots: usize,
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
    /// Rows that are no diagonals.
    #[error(
        "diagonals with a period of {period} values; give a power of two up to the number of slots, {slots}"
    )]
    DiagonalPeriod {
        /// Values of a row.
        period: usize,
        /// The number of slots.
        slots: usize,
    },
    /// A coefficient that is no word.
    #[error(
        "diagonal {index} has coefficients of {bits:.1} bits, and below 62 can be kept as coefficients; keep the transform encoded, or use \
         a smaller prime at its level"
    )]
    CoefficientWidth {
        /// The diagonal.
        index: usize,
        /// `log2` of the largest magnitude.
        bits: f64,
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
    /// A number outside what makes sense.
    #[error("{what}: {count} is outside {min}..={max}")]
    Count {
        /// What it counts.
        what: &'static str,
        /// Its value.
        count: usize,
        /// Smallest legal value.
        min: usize,
        /// Largest legal value.
        max: usize,
    },
    /// A stage of bootstrapping was given a ciphertext at another level than its plan's.
    #[error(
        "{stage} takes a ciphertext at level {expected}, this one is at {found}; use drop_to_level, or another plan"
    )]
    StageLevel {
        /// The stage.
        stage: &'static str,
        /// Level of the ciphertext.
        found: usize,
        /// Level that the stage takes.
        expected: usize,
    },
    /// No approximation of the modular reduction is as good as asked for.
    #[error(
        "no reduction modulo 1 on [-{k}, {k}] of messages up to {message:e} has {bits:.1} bits; the best found has \
         {best:.1}: ask for fewer bits or use a larger ratio of q_0 to the message"
    )]
    Precision {
        /// Bound on the integer part.
        k: usize,
        /// Bound on the message in units of `q_0`.
        message: f64,
        /// Bits asked for, relative to the message.
        bits: f64,
        /// Bits of the best.
        best: f64,
    },
    /// A value that modular reduction was not built for.
    #[error(
        "the value {value} in slot {slot} is not within {message:e} of an integer in [-{k}, {k}]: the message is too large \
         for its ratio to q_0, or the secret has more than the planned Hamming weight"
    )]
    OutOfRange {
        /// The slot.
        slot: usize,
        /// Its value in units of `q_0`.
        value: f64,
        /// Bound on the integer part.
        k: usize,
        /// Bound on the message in units of `q_0`.
        message: f64,
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

impl Stage {
    /// An error of the stage, whose input is at `level`. One that names its stage stays as it is.
    pub(crate) fn error(self, level: usize, source: impl Into<CircuitError>) -> CircuitError {
        match source.into() {
            named @ CircuitError::Stage { .. } => named,
            source => CircuitError::Stage { stage: self, level, source: Box::new(source) },
        }
    }
}
