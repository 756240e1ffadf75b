use alloc::string::String;
use keywright_ring::RingError;
use thiserror::Error;

use crate::{KeyElement, KeyIdentity};

/// Errors of parameters, keys and key switching.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RlweError {
    /// The ring refused the primes.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The modulus is too large for the ring degree at 128 bits.
    #[error(
        "{object} has a modulus of {log_qp:.1} bits, but 128-bit security at N = 2^{log_n} with {secret} allows at most \
         {bound}; use fewer or smaller primes, a larger ring, or a lower level"
    )]
    Insecure { object: String, log_qp: f64, log_n: u32, secret: String, bound: u32 },
    /// No bound is known for this secret distribution at this degree.
    #[error(
        "no 128-bit bound is known for {secret} at N = 2^{log_n}; use a ternary secret, weight 192 at 2^15..2^17, or an \
         ephemeral secret of weight 32 at 2^15..2^17 or 24 at 2^16..2^17"
    )]
    NoBound { secret: String, log_n: u32 },
    /// A prime too small for basis conversion.
    #[error("prime {prime} is below 2^{bits}, the minimum for basis conversion; use a wider prime")]
    PrimeTooSmall { prime: u64, bits: u32 },
    /// A parameter list is empty or too long.
    #[error("{what}: {count} is outside {min}..={max}")]
    Count { what: &'static str, count: usize, min: usize, max: usize },
    /// A level above what the object has.
    #[error("level {level} is above {max}, the highest level of {object}; use a lower one")]
    Level { level: usize, max: usize, object: &'static str },
    /// A division by the last prime of level 0.
    #[error(
        "at level 0 one prime is left, and rescaling divides by a prime; start at a higher level, or bootstrap"
    )]
    LastPrime,
    /// A key for the automorphism that moves nothing.
    #[error("a rotation by 0 steps moves nothing and takes no key; leave it out")]
    Unmoved,
    /// A prime that cannot be a special prime.
    #[error("prime index {index} cannot be a special prime of a key at level {level}: {reason}")]
    SpecialPrime { index: usize, level: usize, reason: &'static str },
    /// A single ciphertext prime is larger than the special modulus.
    #[error(
        "prime q_{index} has {prime_bits:.1} bits, more than the special modulus of {special_bits:.1}; add special primes"
    )]
    SpecialTooSmall { index: usize, prime_bits: f64, special_bits: f64 },
    /// No key serves this element at this level.
    #[error("no key for {element} (rotation by {rotation}) at level {level}; nearest keys: {nearest}")]
    MissingKey {
        element: KeyElement,
        /// Rotation steps of the element, or a word for other elements.
        rotation: String,
        level: usize,
        nearest: String,
    },
    /// A key cannot be used in this way.
    #[error(
        "the key for {element} at level {key_level}, alpha {alpha}, cannot serve level {level} with {coalesce} rows per \
         digit: {reason}"
    )]
    KeyUse {
        element: KeyElement,
        key_level: usize,
        alpha: usize,
        level: usize,
        coalesce: usize,
        reason: &'static str,
    },
    /// An invalid hop of a route.
    #[error("the hop to Galois element {child} at level {level} is refused: {reason}")]
    Route { level: usize, child: u64, reason: &'static str },
    /// The routes of a key set serve other automorphisms.
    #[error(
        "no route makes {what} at level {level}: the keys were planned for another program, or for other levels; plan \
         them for this program"
    )]
    NotPlanned { what: String, level: usize },
    /// A key outside of memory could not be loaded.
    #[error("the key for {element} at level {level} cannot be read: {reason}")]
    KeySource { element: KeyElement, level: usize, reason: String },
    /// A key does not fit the memory for keys.
    #[error(
        "with the key for {element} at level {level}, the keys in memory at once take {needed} bytes, above the budget of \
         {budget}; allow at least {needed} bytes of keys in memory"
    )]
    KeyMemory { element: KeyElement, level: usize, needed: usize, budget: usize },
    /// The caller gave up the work.
    #[error("the operation was interrupted")]
    Interrupted,
    /// The system refused to start a thread.
    #[error("no thread can be started: {0}")]
    Thread(String),
    /// A key from another secret was requested without that secret.
    #[error("a key from secret {0} needs that secret; make it with switching_key_from")]
    SourceSecret(u64),
    /// A request for one of a pair of ephemeral keys, or for a pair that does not match.
    #[error(
        "{0} and its counterpart share an ephemeral secret; make both together, one key to each weight and one back"
    )]
    EphemeralSecret(KeyElement),
    /// A second key to or from an ephemeral secret of one weight: it belongs to another secret, and results under both
    /// are garbage.
    #[error(
        "the key set already has a key for {0}, and a second one belongs to another ephemeral secret; keep one pair per \
         weight, at the highest level where it is used"
    )]
    EphemeralRepeated(KeyElement),
    /// Only Galois keys are derived, and only they are master keys.
    #[error("the key for {0} is not a Galois key, so it cannot be derived; its owner must make it")]
    NotGalois(KeyElement),
    /// The master keys do not reach a key.
    #[error("the key for {element} cannot be derived: {reason}")]
    Underivable { element: KeyElement, reason: &'static str },
    /// An invalid subring.
    #[error("the subring of N = 2^{log_n} to level {level} is refused: {reason}")]
    Subring { log_n: u32, level: usize, reason: String },
    /// The parameters have no ring of that degree.
    #[error("the parameters have no ring of N = 2^{log_n}, only of log_n {known}; add it to their subrings")]
    NoRing { log_n: u32, known: String },
    /// An impossible switch between rings.
    #[error("a key for {element} cannot belong to the ring of N = 2^{log_n}: {reason}")]
    RingSwitch { element: KeyElement, log_n: u32, reason: &'static str },
    /// Objects of different rings were mixed.
    #[error(
        "{left} belongs to the ring of N = 2^{left_log_n}, {right} to that of N = 2^{right_log_n}; bring them into one \
         ring with switch_ring"
    )]
    MixedRings { left: &'static str, right: &'static str, left_log_n: u32, right_log_n: u32 },
    /// Objects of different owners were mixed.
    #[error(
        "{left} belongs to key {left_key}, {right} to key {right_key}: they were made with different secrets; use keys and \
         ciphertexts of one owner"
    )]
    KeyMismatch { left: &'static str, right: &'static str, left_key: KeyIdentity, right_key: KeyIdentity },
    /// Objects of different parameters were mixed.
    #[error("{left} and {right} belong to different parameters; use objects of one parameter set")]
    MixedParameters { left: &'static str, right: &'static str },
}
