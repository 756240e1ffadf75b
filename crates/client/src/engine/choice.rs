use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::ClientError;
use crate::engine::Engine;
use crate::engine::SmallEngine;
use crate::reduction::{Montgomery, ShiftAdd30, ShiftAdd60};

/// The engine to use. All give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineChoice {
    /// The fastest available. With the `std` feature these are the kernels of `keywright-ring`, except for primes below
    /// `2^30` on a 32-bit machine. Otherwise it is the shift-and-add reduction if the prime has one, or Montgomery's.
    Fastest,
    /// The kernels of `keywright-ring`.
    #[cfg(feature = "std")]
    Ring,
    /// Shifts and additions, for `2^30 - 2^18 + 1` and `2^60 - 2^18 + 1`.
    ShiftAdd,
    /// Montgomery's reduction, in words of 32 bits for primes below `2^30`, of 64 bits above.
    Montgomery,
}

/// An engine with the working memory of one encryption.
pub(crate) struct Working<E: Engine> {
    pub(crate) engine: E,
    pub(crate) mask: Zeroizing<Vec<E::Word>>,
    pub(crate) limb: Zeroizing<Vec<E::Word>>,
}

impl<E: Engine> Working<E> {
    fn new(engine: E) -> Self {
        let words = |n| Zeroizing::new(vec![E::Word::default(); n]);
        Self { mask: words(engine.n()), limb: words(engine.n()), engine }
    }
}

/// Keys in the words of an engine.
pub(crate) struct Keys<W: zeroize::Zeroize> {
    pub(crate) secret: Zeroizing<Vec<W>>,
    /// Both halves of the public key, if there is one.
    pub(crate) public: Option<[Vec<W>; 2]>,
}

/// The chosen engine, with the keys of its owner.
pub(crate) enum ChosenEngine {
    #[cfg(feature = "std")]
    Ring(Working<crate::RingEngine>, Keys<u64>),
    ShiftAdd30(Working<SmallEngine<ShiftAdd30>>, Keys<u32>),
    ShiftAdd60(Working<SmallEngine<ShiftAdd60>>, Keys<u64>),
    Montgomery32(Working<SmallEngine<Montgomery<u32>>>, Keys<u32>),
    Montgomery64(Working<SmallEngine<Montgomery<u64>>>, Keys<u64>),
}

/// The same expression for every engine.
macro_rules! on_engine {
    ($chosen:expr, $working:ident, $keys:ident, $body:expr) => {
        match $chosen {
            #[cfg(feature = "std")]
            ChosenEngine::Ring($working, $keys) => $body,
            ChosenEngine::ShiftAdd30($working, $keys) => $body,
            ChosenEngine::ShiftAdd60($working, $keys) => $body,
            ChosenEngine::Montgomery32($working, $keys) => $body,
            ChosenEngine::Montgomery64($working, $keys) => $body,
        }
    };
}
pub(crate) use on_engine;

/// Residues of primes of at most this many bits fit words of 32 bits, as four times the prime does.
const MONTGOMERY32_BITS: u32 = 30;

impl ChosenEngine {
    pub(crate) fn new(log_n: u32, q: u64, choice: EngineChoice) -> Result<Self, ClientError> {
        fn keys<W: zeroize::Zeroize>() -> Keys<W> {
            Keys { secret: Zeroizing::new(Vec::new()), public: None }
        }
        macro_rules! chosen {
            ($variant:ident, $engine:expr) => {
                Self::$variant(Working::new($engine), keys())
            };
        }
        let small = |shift_add: bool| {
            Ok(match q {
                ShiftAdd30::MODULUS if shift_add => chosen!(ShiftAdd30, SmallEngine::new(log_n, q)?),
                ShiftAdd60::MODULUS if shift_add => chosen!(ShiftAdd60, SmallEngine::new(log_n, q)?),
                _ if q >> MONTGOMERY32_BITS == 0 => chosen!(Montgomery32, SmallEngine::new(log_n, q)?),
                _ => chosen!(Montgomery64, SmallEngine::new(log_n, q)?),
            })
        };
        match choice {
            #[cfg(feature = "std")]
            EngineChoice::Ring => Ok(chosen!(Ring, crate::RingEngine::new(log_n, q)?)),
            // A 32-bit machine has words for narrow primes.
            #[cfg(feature = "std")]
            EngineChoice::Fastest if cfg!(target_pointer_width = "64") || q >> MONTGOMERY32_BITS != 0 => {
                Ok(chosen!(Ring, crate::RingEngine::new(log_n, q)?))
            }
            EngineChoice::Fastest => small(true),
            EngineChoice::Montgomery => small(false),
            EngineChoice::ShiftAdd if [ShiftAdd30::MODULUS, ShiftAdd60::MODULUS].contains(&q) => small(true),
            EngineChoice::ShiftAdd => Err(ClientError::Range {
                what: "modulus of the shift-and-add reduction",
                value: q,
                min: ShiftAdd30::MODULUS,
                max: ShiftAdd60::MODULUS,
            }),
        }
    }
}
