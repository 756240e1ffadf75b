//! The client of a line of `vectors/client.txt`, for programs without an allocator as well.

use keywright_client::{ClientError, ClientLiteral, ClientParameters, Layout};
use keywright_rlwe::SecretDistribution;

/// The parameters of a line's client.
///
/// # Errors
/// The errors of [`ClientParameters::new`].
pub(crate) fn parameters(fields: &[u64]) -> Result<ClientParameters, ClientError> {
    let mut identity = [0xA5; 20];
    identity[..4].copy_from_slice(&[fields[0] as u8, 1, 0, 1]);
    ClientParameters::new(ClientLiteral {
        log_n: fields[0] as u32,
        modulus: fields[1],
        secret: SecretDistribution::Ternary,
        scale: fields[2],
        fraction_bits: fields[3] as u32,
        max: 1 << fields[3],
        layout: match fields[4] {
            0 => Layout::Coefficients,
            form => Layout::Slots { log_slots: fields[5] as u32, complex: form == 2 },
        },
        identity,
        entry_identity: identity,
        estimate: [1f64, 2.0, 3.0].map(f64::to_bits),
    })
}
