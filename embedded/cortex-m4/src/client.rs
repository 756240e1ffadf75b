//! The needs of a thin client: memory for the largest ring, and parameters for as many numbers as a ring holds.

use keywright_client::{ClientError, ClientLiteral, ClientParameters, Layout};
use keywright_rlwe::SecretDistribution;

use crate::singleton;

/// Degree of the largest ring.
pub const MAX_N: usize = 1 << 16;
/// Bits of a number after the point.
pub const FRACTION_BITS: u32 = 16;

/// Residues of the largest ring.
pub type Polynomial = &'static mut [u32; MAX_N];

/// The memory of all polynomials at once; an encryption with a public key in flash memory needs only the last two.
pub struct Memory {
    /// The secret, two bits per coefficient.
    pub packed: &'static mut [u8; MAX_N / 4],
    /// The public key's first half.
    pub public: Polynomial,
    /// The mask of an encryption, and before it the secret's residues.
    pub mask: Polynomial,
    /// The half of a ciphertext that is written next.
    pub limb: Polynomial,
}

impl Memory {
    /// All of it, once: `None` from the second call on.
    pub fn take() -> Option<Self> {
        Some(Self {
            packed: singleton!(: [u8; MAX_N / 4] = [0; MAX_N / 4])?,
            public: singleton!(: [u32; MAX_N] = [0; MAX_N])?,
            mask: singleton!(: [u32; MAX_N] = [0; MAX_N])?,
            limb: singleton!(: [u32; MAX_N] = [0; MAX_N])?,
        })
    }
}

/// Parameters of a client that puts `N` numbers up to 1 into the slots of a ring of degree `2^log_n`.
///
/// # Errors
///
/// The errors of [`ClientParameters::new`].
pub fn parameters(log_n: u32, modulus: u64) -> Result<ClientParameters, ClientError> {
    let mut identity = [0; 20];
    identity[0] = log_n as u8;
    ClientParameters::new(ClientLiteral {
        log_n,
        modulus,
        secret: SecretDistribution::Ternary,
        scale: 1 << 20,
        fraction_bits: FRACTION_BITS,
        max: 1 << FRACTION_BITS,
        layout: Layout::Slots { log_slots: log_n - 1, complex: true },
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })
}
