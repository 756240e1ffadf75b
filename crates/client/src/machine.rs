use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::compact::Compact;
use crate::engine::Engine;
use crate::reduction::{Montgomery, ShiftAdd30, ShiftAdd60};
use crate::{ClientError, ClientParameters};

/// Which arithmetic computes. All give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// The fastest there is: with the `std` feature `keywright-ring`'s kernels, but for primes below `2^30` on a machine of 32 bits; else the shift-and-add
    /// reduction where the prime has one, Montgomery's elsewhere.
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

/// One of the engines, with the keys of its owner.
pub(crate) enum Machine {
    #[cfg(feature = "std")]
    Ring(Working<crate::RingEngine>, Keys<u64>),
    ShiftAdd30(Working<Compact<ShiftAdd30>>, Keys<u32>),
    ShiftAdd60(Working<Compact<ShiftAdd60>>, Keys<u64>),
    Montgomery32(Working<Compact<Montgomery<u32>>>, Keys<u32>),
    Montgomery64(Working<Compact<Montgomery<u64>>>, Keys<u64>),
}

/// The same expression for every engine.
macro_rules! with_engine {
    ($machine:expr, $working:ident, $keys:ident, $body:expr) => {
        match $machine {
            #[cfg(feature = "std")]
            Machine::Ring($working, $keys) => $body,
            Machine::ShiftAdd30($working, $keys) => $body,
            Machine::ShiftAdd60($working, $keys) => $body,
            Machine::Montgomery32($working, $keys) => $body,
            Machine::Montgomery64($working, $keys) => $body,
        }
    };
}
pub(crate) use with_engine;

/// Primes below this have residues of 32 bits.
const NARROW_BITS: u32 = 30;

impl Machine {
    pub(crate) fn new(parameters: &ClientParameters, arithmetic: Arithmetic) -> Result<Self, ClientError> {
        let (log_n, q) = (parameters.log_n(), parameters.modulus().value());
        fn keys<W: zeroize::Zeroize>() -> Keys<W> {
            Keys { secret: Zeroizing::new(Vec::new()), public: None }
        }
        macro_rules! machine {
            ($variant:ident, $engine:expr) => {
                Self::$variant(Working::new($engine), keys())
            };
        }
        let compact = |shift_add: bool| {
            Ok(match q {
                ShiftAdd30::MODULUS if shift_add => machine!(ShiftAdd30, Compact::new(log_n, q)?),
                ShiftAdd60::MODULUS if shift_add => machine!(ShiftAdd60, Compact::new(log_n, q)?),
                _ if q >> NARROW_BITS == 0 => machine!(Montgomery32, Compact::new(log_n, q)?),
                _ => machine!(Montgomery64, Compact::new(log_n, q)?),
            })
        };
        match arithmetic {
            #[cfg(feature = "std")]
            Arithmetic::Ring => Ok(machine!(Ring, crate::RingEngine::new(log_n, q)?)),
            // A machine of 32 bits has words for narrow primes.
            #[cfg(feature = "std")]
            Arithmetic::Fastest if cfg!(target_pointer_width = "64") || q >> NARROW_BITS != 0 => {
                Ok(machine!(Ring, crate::RingEngine::new(log_n, q)?))
            }
            Arithmetic::Fastest => compact(true),
            Arithmetic::Montgomery => compact(false),
            Arithmetic::ShiftAdd if [ShiftAdd30::MODULUS, ShiftAdd60::MODULUS].contains(&q) => compact(true),
            Arithmetic::ShiftAdd => Err(ClientError::Range {
                what: "modulus of the shift-and-add reduction",
                value: q,
                min: ShiftAdd30::MODULUS,
                max: ShiftAdd60::MODULUS,
            }),
        }
    }
}
