use thiserror::Error;

/// What can be wrong with the parameters of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// The ring degree is not supported.
    #[error("log_n = {0} is outside {min}..={max}", min = crate::MIN_LOG_N, max = crate::MAX_LOG_N)]
    Degree(u32),
    /// The modulus is outside the widths that the kernels support.
    #[error("modulus {0} is outside 3..2^61 or even")]
    ModulusRange(u64),
    /// The modulus is not prime.
    #[error("modulus {0} is not a prime")]
    NotPrime(u64),
    /// The prime has no primitive 2N-th root of unity.
    #[error("prime {prime} is not 1 modulo 2N = {two_n}")]
    NoRoot {
        /// The offending prime.
        prime: u64,
        /// Twice the ring degree.
        two_n: u64,
    },
    /// There are not as many primes of that width as were asked for.
    #[error("only {found} primes of {bits} bits are 1 modulo 2^{two_n_log}; {wanted} were asked for")]
    NotEnoughPrimes {
        /// Width in bits.
        bits: u32,
        /// log2 of 2N.
        two_n_log: u32,
        /// Number of primes that exist.
        found: usize,
        /// Number of primes asked for.
        wanted: usize,
    },
    /// One prime appears twice in a basis.
    #[error("prime {0} appears twice in the basis")]
    Repeated(u64),
    /// A Galois element is even or not reduced.
    #[error("Galois element {element} is not odd and below 2N = {two_n}")]
    GaloisElement {
        /// The offending element.
        element: u64,
        /// Twice the ring degree.
        two_n: u64,
    },
    /// A back end was asked for that this CPU cannot run.
    #[error("back end `{0}` is not available on this CPU; available: {1}")]
    BackendUnavailable(alloc::string::String, alloc::string::String),
    /// A Hamming weight exceeds the ring degree.
    #[error("Hamming weight {weight} is above the ring degree {n}")]
    HammingWeight {
        /// The offending weight.
        weight: usize,
        /// The ring degree.
        n: usize,
    },
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Randomness(alloc::string::String),
    /// A forked child holds a copy of a generator that was made from given entropy, or is within an operation of its
    /// parent.
    #[error(
        "what was drawn, or is to be drawn from given entropy, belongs to process {owner}; process {process} is its child and would \
         use the same again. Make the object, and begin the operation, in every process"
    )]
    Forked {
        /// Where it was made.
        owner: u32,
        /// Where it is used.
        process: u32,
    },
    /// A forked child holds a copy of something whose threads are its parent's.
    #[error(
        "{what} belongs to process {owner}; process {process} is its child and has none of its threads. Make one in every process"
    )]
    OtherProcess {
        /// What it is.
        what: &'static str,
        /// Whose it is.
        owner: u32,
        /// Where it is used.
        process: u32,
    },
}
