use alloc::string::String;
use keywright_ring::RingError;
use thiserror::Error;

use crate::{KeyElement, KeyIdentity};

/// Errors of parameters, keys and key switching.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RlweError {
    /// The ring refused the primes.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The modulus is too large for the ring degree at 128 bits.
    #[error(
        "{object} has a modulus of {log_qp:.1} bits; 128-bit security at N = 2^{log_n} with {secret} allows at most \
         {bound}. Use fewer or smaller primes, a larger ring, or a lower level"
    )]
    Insecure {
        /// The insecure object: a key or the parameters.
        object: String,
        /// Its modulus, bits.
        log_qp: f64,
        /// log2 of the ring degree.
        log_n: u32,
        /// Secret distribution, in words.
        secret: String,
        /// Largest modulus allowed, bits.
        bound: u32,
    },
    /// No bound is known for this secret distribution at this degree.
    #[error(
        "no 128-bit bound is pinned for {secret} at N = 2^{log_n}; use a ternary secret, weight 192 at 2^15..2^17, or an \
         ephemeral secret of weight 32 at 2^15..2^17"
    )]
    NoBound {
        /// Secret distribution, in words.
        secret: String,
        /// log2 of the ring degree.
        log_n: u32,
    },
    /// A prime too small for basis conversion.
    #[error("prime {prime} is below 2^{bits}, the minimum for basis conversion; use a wider prime")]
    PrimeTooSmall {
        /// The offending prime.
        prime: u64,
        /// log2 of the bound.
        bits: u32,
    },
    /// A parameter list is empty or too long.
    #[error("{what}: {count} is outside {min}..={max}")]
    Count {
        /// Which list or number.
        what: &'static str,
        /// Offending count.
        count: usize,
        /// Smallest legal count.
        min: usize,
        /// Largest legal count.
        max: usize,
    },
    /// A level above what the object has.
    #[error("level {level} is above {max}, the highest level of {object}")]
    Level {
        /// Offending level.
        level: usize,
        /// Highest level.
        max: usize,
        /// The object with that highest level.
        object: &'static str,
    },
    /// A division by the last prime of level 0.
    #[error(
        "at level 0 one prime is left, and rescaling or switching the modulus divides by a prime; start at a higher \
         level, or bootstrap"
    )]
    LastPrime,
    /// A prime that cannot be a special prime.
    #[error("prime index {index} cannot be a special prime of a key at level {level}: {reason}")]
    SpecialPrime {
        /// Index among the parameters' primes.
        index: usize,
        /// Level of the key.
        level: usize,
        /// The reason.
        reason: &'static str,
    },
    /// A single ciphertext prime is larger than the special modulus.
    #[error(
        "prime q_{index} has {prime_bits:.1} bits, more than the special modulus of {special_bits:.1}; add special primes"
    )]
    SpecialTooSmall {
        /// Index of the ciphertext prime.
        index: usize,
        /// Its bits.
        prime_bits: f64,
        /// Bits of the special modulus.
        special_bits: f64,
    },
    /// No key serves this element at this level.
    #[error("no key for {element} (rotation by {rotation}) at level {level}; nearest keys: {nearest}")]
    MissingKey {
        /// The requested element.
        element: KeyElement,
        /// Rotation steps of the element, or a word for other elements.
        rotation: String,
        /// The requested level.
        level: usize,
        /// The nearest keys there are.
        nearest: String,
    },
    /// A key cannot be used in this way.
    #[error(
        "the key for {element} at level {key_level}, alpha {alpha}, cannot serve level {level} with {coalesce} rows per \
         digit: {reason}"
    )]
    KeyUse {
        /// Element of the key.
        element: KeyElement,
        /// Its level.
        key_level: usize,
        /// Its alpha.
        alpha: usize,
        /// The requested level.
        level: usize,
        /// The requested rows per coarse digit.
        coalesce: usize,
        /// The reason.
        reason: &'static str,
    },
    /// An invalid hop of a route.
    #[error("the hop to Galois element {child} at level {level} is refused: {reason}")]
    Route {
        /// Level of its group.
        level: usize,
        /// Galois element of its result.
        child: u64,
        /// The reason.
        reason: &'static str,
    },
    /// The routes of a key set serve other automorphisms.
    #[error(
        "no route makes {what} at level {level}: the keys were planned for another program, or for other levels; plan \
         them for this program"
    )]
    NotPlanned {
        /// Rotations, or the relinearization.
        what: String,
        /// The requested level.
        level: usize,
    },
    /// A key outside of memory could not be loaded.
    #[error("the key for {element} at level {level} cannot be read: {reason}")]
    KeySource {
        /// Its element.
        element: KeyElement,
        /// Its level.
        level: usize,
        /// The reason.
        reason: String,
    },
    /// A key does not fit the memory for keys.
    #[error(
        "with the key for {element} at level {level}, the keys in memory at once take {needed} bytes, above the budget of \
         {budget}; allow at least {needed} bytes of keys in memory"
    )]
    KeyMemory {
        /// Element of the key.
        element: KeyElement,
        /// Its level.
        level: usize,
        /// Bytes needed at once.
        needed: usize,
        /// Bytes allowed.
        budget: usize,
    },
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
    Underivable {
        /// Element of the key.
        element: KeyElement,
        /// The reason.
        reason: &'static str,
    },
    /// An invalid subring.
    #[error("the subring of N = 2^{log_n} to level {level} is refused: {reason}")]
    Subring {
        /// `log2` of its degree.
        log_n: u32,
        /// Its highest level.
        level: usize,
        /// The reason.
        reason: String,
    },
    /// The parameters have no ring of that degree.
    #[error("the parameters have no ring of N = 2^{log_n}, only of log_n {known}; add it to their subrings")]
    NoRing {
        /// `log2` of the degree.
        log_n: u32,
        /// Those of all rings.
        known: String,
    },
    /// An impossible switch between rings.
    #[error("a key for {element} cannot belong to the ring of N = 2^{log_n}: {reason}")]
    RingSwitch {
        /// Element of the key.
        element: KeyElement,
        /// `log2` of the degree of the key's ring.
        log_n: u32,
        /// The reason.
        reason: &'static str,
    },
    /// Objects of different rings were mixed.
    #[error(
        "{left} belongs to the ring of N = 2^{left_log_n}, {right} to that of N = 2^{right_log_n}; bring them into one \
         ring with switch_ring"
    )]
    MixedRings {
        /// One object.
        left: &'static str,
        /// The other.
        right: &'static str,
        /// `log2` of the degree of the one's ring.
        left_log_n: u32,
        /// `log2` of that of the other's.
        right_log_n: u32,
    },
    /// Objects of different owners were mixed.
    #[error(
        "{left} belongs to key {left_key}, {right} to key {right_key}: they were made with different secrets; use keys and \
         ciphertexts of one owner"
    )]
    KeyMismatch {
        /// One object.
        left: &'static str,
        /// The other.
        right: &'static str,
        /// Identity of the one's secret.
        left_key: KeyIdentity,
        /// Identity of the other's.
        right_key: KeyIdentity,
    },
    /// Objects of different parameters were mixed.
    #[error("{left} and {right} belong to different parameters")]
    MixedParameters {
        /// One object.
        left: &'static str,
        /// The other.
        right: &'static str,
    },
}
