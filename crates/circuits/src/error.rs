use keywright_ckks::CkksError;
use keywright_ckks::encoder::EncoderError;
use keywright_rlwe::RlweError;
use thiserror::Error;

use crate::bootstrapping::Stage;

/// Errors of a circuit.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CircuitError {
    /// An error of keys, levels, scales, packings or parameters.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// Keys have the right elements and levels, but other special primes than the transform's diagonals.
    #[error(
        "the diagonals are encoded over the special primes {encoded:?}, but the keys at level {level} are: {found}; encode \
         the transform over the special primes of its keys, the same ones for all of them"
    )]
    SpecialPrimes {
        encoded: Vec<usize>,
        level: usize,
        /// The keys that do not fit, with the special primes of each of their uses.
        found: String,
    },
    /// A stage of bootstrapping fails.
    #[error("{stage}, whose input is at level {level}: {source}")]
    Stage { stage: Stage, level: usize, source: Box<CircuitError> },
    /// The stages of a bootstrapping need more levels than there are.
    #[error(
        "a result at level {output_level} needs {} levels, since the stages after mod_raise use {needed}, but the \
         parameters have {available}, and a result below level {input_level} cannot be bootstrapped again; use more \
         ciphertext primes, fewer levels for a stage, or another output level",
        needed.saturating_add(*output_level)
    )]
    BootstrapLevels {
        /// Levels of the stages after `mod_raise`.
        needed: usize,
        input_level: usize,
        output_level: usize,
        available: usize,
    },
    /// The plan raises the modulus under the main secret.
    #[error("the plan has no ephemeral secret; give its bootstrapping an ephemeral weight")]
    NoEphemeralSecret,
    /// Inputs of a subring in a bootstrapping that does not begin with slots to coefficients, or runs several passes.
    #[error(
        "inputs of a subring need a bootstrap of one pass with slots_to_coeffs first; leave out the input ring, and \
         switch ciphertexts up before"
    )]
    InputRing,
    /// A plan that does not bootstrap two ciphertexts of real values at once.
    #[error(
        "two ciphertexts are bootstrapped at once by a plan for pairs, which are real values in all N/2 slots, bootstrapped \
         in one pass with slots_to_coeffs first; make such a plan, or bootstrap them one after the other"
    )]
    PairPlan,
    /// Values that may be complex, in a pair of ciphertexts of real values.
    #[error(
        "ciphertext {place} of the pair has complex values, and only real ones can be joined; encrypt real numbers, or \
         bootstrap it alone"
    )]
    PairValues { place: usize },
    /// A stage that is fused with the one before.
    #[error(
        "the plan fuses the switch back from the ephemeral secret with the first rotations of coeffs_to_slots; bootstrap \
         as a whole, or plan with stages apart"
    )]
    StagesFused,
    /// A budget below the key bytes of every way to bootstrap.
    #[error(
        "a key budget of {budget} bytes is below the smallest possible one, {minimum} bytes; raise the budget"
    )]
    KeyBudget { budget: usize, minimum: usize },
    /// A pass of an iterated bootstrapping may leave a larger error than the next one can correct.
    #[error(
        "the bound on the error of pass {iteration} has {found:.1} bits, and the next pass needs {bits} to correct it; use \
         a log_precision of at most {:.0}, or a more precise pass",
        (*found / *iteration as f64).floor()
    )]
    Iteration {
        /// The pass, counted from 1.
        iteration: usize,
        /// Bits after the point that the bound must have.
        bits: u32,
        found: f64,
    },
    /// Values that the reduction modulo the lowest prime confuses with others.
    #[error(
        "a bootstrap of values up to {largest:.4} would be off by up to {error:.3e}: its plan is for parts of at most 1; \
         divide the values before, declare the magnitude that they have (magnitude= of encrypt, Evaluator.declare), or use \
         a plan with a larger log_ratio"
    )]
    Magnitude {
        /// The largest part of a value by its declared magnitude.
        largest: f64,
        error: f64,
    },
    /// An invalid failure probability.
    #[error("2^{log2} is not a probability of failure; its log2 must be below 0, such as -40")]
    FailureProbability { log2: f64 },
    /// An invalid baby-step count.
    #[error("{n1} baby steps are outside 1..={slots}, the number of slots")]
    BabySteps { n1: usize, slots: usize },
    /// More slots than the ring has.
    #[error("2^{log_slots} slots are more than the 2^{max} of the parameters")]
    LogSlots { log_slots: u32, max: u32 },
    /// A matrix of the wrong size.
    #[error(
        "a matrix of {rows} x {columns} does not multiply {slots} slots; pass 1 to {slots} rows and columns, or use more \
         slots"
    )]
    MatrixShape { rows: usize, columns: usize, slots: usize },
    /// A diagonal of the wrong length.
    #[error("diagonal {index} has {found} values; it needs one per slot: {expected}")]
    DiagonalLength { index: usize, found: usize, expected: usize },
    /// Rows of the wrong length.
    #[error(
        "diagonals have a period of {period} values; it must be a power of two up to the number of slots, {slots}"
    )]
    DiagonalPeriod { period: usize, slots: usize },
    /// A coefficient that exceeds a word.
    #[error(
        "diagonal {index} has coefficients of {bits:.1} bits, and storage as coefficients needs fewer than 62; keep the \
         transform encoded, or use a smaller prime at its level"
    )]
    CoefficientWidth { index: usize, bits: f64 },
    /// Layers that do not make a Fourier transform.
    #[error("the factors have {found} layers; a Fourier transform of 2^{log_slots} slots has {log_slots}")]
    DftLayers { found: u64, log_slots: u32 },
    /// An empty list.
    #[error("{0} is empty; pass at least one element")]
    Empty(&'static str),
    /// Transforms in a sum disagree in this.
    #[error("transforms in a sum differ in their {what}: {left} and {right}; encode them alike")]
    Mismatch { what: &'static str, left: String, right: String },
    /// A coefficient or value that is not a finite number.
    #[error("{what} {index} is {value}, not a finite number")]
    NotFinite { what: &'static str, index: usize, value: f64 },
    /// A number outside its range.
    #[error("{what}: {count} is outside {min}..={max}")]
    Count { what: &'static str, count: usize, min: usize, max: usize },
    /// A ciphertext at another level than that of the stage's plan.
    #[error(
        "{stage} takes a ciphertext at level {expected}, this one is at {found}; use drop_to_level, or another plan"
    )]
    StageLevel { stage: &'static str, found: usize, expected: usize },
    /// No approximation of the modular reduction is as precise as requested.
    #[error(
        "no reduction modulo 1 on [-{k}, {k}] of messages up to {message:e} has {bits:.1} bits; the best found has \
         {best:.1}; request fewer bits, or use a larger ratio of q_0 to the message"
    )]
    Precision {
        k: usize,
        /// Bound on the message in units of `q_0`.
        message: f64,
        bits: f64,
        best: f64,
    },
    /// A value outside the range of the modular reduction.
    #[error(
        "the value {value} in slot {slot} is not within {message:e} of an integer in [-{k}, {k}]: the message is too large \
         for its ratio to q_0, or the secret has more than the planned Hamming weight"
    )]
    OutOfRange {
        slot: usize,
        /// Its value in units of `q_0`.
        value: f64,
        k: usize,
        /// Bound on the message in units of `q_0`.
        message: f64,
    },
    /// An empty interval.
    #[error("[{a}, {b}] is not an interval; pass finite a < b")]
    Interval { a: f64, b: f64 },
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
    /// The error of the stage, whose input is at `level`. An error that names its stage stays as it is.
    pub(crate) fn error(self, level: usize, source: impl Into<CircuitError>) -> CircuitError {
        match source.into() {
            named @ CircuitError::Stage { .. } => named,
            source => CircuitError::Stage { stage: self, level, source: Box::new(source) },
        }
    }
}
