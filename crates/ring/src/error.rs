use thiserror::Error;

use crate::modulus::{MAX_BITS, MIN_BITS};

/// What can be wrong with the parameters of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RingError {
    /// The ring degree is not supported.
    #[error("log_n = {0} is outside {min}..={max}", min = crate::MIN_LOG_N, max = crate::MAX_LOG_N)]
    Degree(u32),
    /// The modulus is outside the widths that the kernels support.
    #[error("modulus {0} is outside 3..2^61 or even")]
    ModulusRange(u64),
    /// Primes of a width that the kernels do not support.
    #[error("a prime cannot have {bits} bits; use {min} to {max}", min = MIN_BITS, max = MAX_BITS)]
    Width { bits: u32 },
    /// The modulus is not prime.
    #[error("modulus {0} is not a prime")]
    NotPrime(u64),
    /// The prime has no primitive 2N-th root of unity.
    #[error("prime {prime} is not 1 modulo 2N = {two_n}")]
    NoRoot { prime: u64, two_n: u64 },
    /// There are fewer primes of that width than were requested.
    #[error(
        "only {found} primes of {bits} bits are 1 modulo 2^{two_n_log}, fewer than the {required} needed; use another width"
    )]
    NotEnoughPrimes { bits: u32, two_n_log: u32, found: usize, required: usize },
    /// One prime appears twice in a basis.
    #[error("prime {0} appears twice in the basis")]
    Repeated(u64),
    /// A Galois element is even or not reduced.
    #[error("Galois element {element} is not odd and below 2N = {two_n}")]
    GaloisElement { element: u64, two_n: u64 },
    /// This CPU cannot run the requested back end.
    #[error("back end `{0}` is not available on this CPU; available: {1}")]
    BackendUnavailable(alloc::string::String, alloc::string::String),
    /// A Hamming weight exceeds the ring degree.
    #[error("Hamming weight {weight} is above the ring degree {n}")]
    HammingWeight { weight: usize, n: usize },
    /// The operating system returned no random bytes.
    #[error("the operating system returned no random bytes: {0}")]
    Randomness(alloc::string::String),
    /// A forked child holds a copy of a generator that was made from given entropy, or was forked during an operation
    /// of its parent.
    #[error(
        "the randomness of this object or operation belongs to process {owner}, and its forked child {process} would repeat \
         it; make the object, and begin the operation, in every process"
    )]
    Forked { owner: u32, process: u32 },
    /// A forked child holds a copy of an object whose threads run in its parent.
    #[error(
        "{what} belongs to process {owner}, and its forked child {process} has none of its threads; make one in every process"
    )]
    OtherProcess { what: &'static str, owner: u32, process: u32 },
}
