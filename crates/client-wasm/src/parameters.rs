use keywright_ckks::CkksLiteral;
use keywright_client::{ClientLiteral, ClientParameters, Identity, Layout};
use keywright_ring::sampling::SIGMA;
use keywright_rlwe::{Parameters, ParametersLiteral, noise};
use keywright_wire::Wire;

use crate::errors::Failure;

/// Bits of a number after the point: more than decryption at the scales of thin clients has.
const FRACTION_BITS: u32 = 24;

/// Parameters of both halves of a browser's client.
pub(crate) struct Both {
    /// Those of the keys, with the tables of every prime.
    pub(crate) full: Parameters,
    /// Those of ciphertexts at `q_0`, with their numbers in coefficients.
    pub(crate) thin: ClientParameters,
}

/// Which parameters an object belongs to: bytes 12 to 31 of its header (`docs/format.md`).
fn identity(literal: &ParametersLiteral) -> Result<Identity, Failure> {
    let bytes = literal.to_bytes(&())?;
    bytes
        .get(12..32)
        .and_then(|identity| identity.try_into().ok())
        .ok_or(Failure::new("format", "parameters without a header"))
}

impl Both {
    /// From the parameters' object and the scale that a server's manifest names.
    pub(crate) fn read(parameters: &[u8], scale: u64) -> Result<Self, Failure> {
        let literal = CkksLiteral::from_bytes(parameters, &())?.rlwe;
        let full = Parameters::new(literal.clone())?;
        let entry = ParametersLiteral { q: literal.q[..1].to_vec(), p: Vec::new(), ..literal.clone() };
        let deviation = |variance: f64| ((variance + 1.0 / 12.0).sqrt() / scale as f64).to_bits();
        let thin = ClientParameters::new(ClientLiteral {
            log_n: literal.log_n,
            modulus: literal.q[0],
            secret: literal.secret,
            scale,
            fraction_bits: FRACTION_BITS,
            max: 1 << FRACTION_BITS,
            layout: Layout::Coefficients,
            identity: identity(&literal)?,
            entry_identity: identity(&entry)?,
            estimate: [deviation(noise::fresh_public(&full)), deviation(SIGMA * SIGMA), 1f64.to_bits()],
        })?;
        Ok(Self { full, thin })
    }
}
