//! A line of `vectors/client.txt`, for the tests of the C interfaces as well.

use keywright_client::{ClientLiteral, ClientParameters, Layout};
use keywright_rlwe::SecretDistribution;

/// The numbers of each line, as vectors/README.md names them.
pub(crate) fn lines() -> Vec<Vec<u64>> {
    let lines = include_str!("../../../../vectors/client.txt").lines();
    lines.map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect()
}

/// The parameters of a line's client.
pub(crate) fn parameters(fields: &[u64]) -> ClientParameters {
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
    .unwrap()
}
