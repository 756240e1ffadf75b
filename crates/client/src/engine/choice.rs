use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::engine::Engine;
use crate::engine::SmallEngine;
use crate::reduction::{Montgomery, ShiftAdd30, ShiftAdd60};
use crate::{ClientError, ClientParameters};

/// Which engine computes. All give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineChoice {
    /// The fastest there is. With the `std` feature the kernels of `keywright-ring`, but for primes below `2^30` on a
    /// machine of 32 bits. Else the shift-and-add reduction where the prime has one, Montgomery's elsewhere.
    Fastest,
    /// The kernels of `keywright-ring`.
    #[cfg(feature = "std")]
    Ring,
    /// Shifts and additions: `2^30 - 2^18 + 1` and `2^60 - 2^18 + 1`.
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

/// The engine of a choice, with the keys of its owner.
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

/// Primes of at most so many bits have residues in words of 32 bits: four times a prime fits such a word.
const MONTGOMERY32_BITS: u32 = 30;

impl ChosenEngine {
    pub(crate) fn new(parameters: &ClientParameters, choice: EngineChoice) -> Result<Self, ClientError> {
        let (log_n, q) = (parameters.log_n(), parameters.modulus().value());
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
            // A machine of 32 bits has words for narrow primes.
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
