//! Uploaded ciphertexts.

use keywright_ckks::{Ciphertext, CkksParameters, ErrorEstimate, Packing, SeededCiphertext};
use keywright_client::{ClientParameters, CompactForm, Engine, RingEngine, SecondHalf};
use keywright_ring::Poly;
use keywright_rlwe::{Parameters, RlweCiphertext, RlweError, noise};
use keywright_wire::{Kind, Wire};

use crate::ServerError;
use crate::dropped::dropped_variance;
use crate::parameters::identity;

/// Reads a ciphertext from a client of these parameters, in any of its forms. Checks scale, level and form, and every
/// residue. Replaces its claims about its own error by the server's estimate.
///
/// # Errors
/// [`ServerError::Wire`], [`ServerError::Client`]: damaged or foreign bytes, among them a secret key;
/// [`ServerError::Rlwe`]: a client of other parameters; [`ServerError::Upload`].
pub fn read_upload(
    bytes: &[u8],
    parameters: &CkksParameters,
    client: &ClientParameters,
) -> Result<Ciphertext, ServerError> {
    let rlwe = parameters.rlwe();
    require_client(rlwe, client)?;
    let scale = client.literal().scale as f64;
    let kind = Kind::code_of(bytes).and_then(Kind::from_code);
    let (mut ciphertext, variance) = if kind == Some(Kind::CkksCompactCiphertext) {
        let (received, scale, variance) = read_compact(bytes, rlwe, client)?;
        let out = Ciphertext {
            parameters: parameters.clone(),
            rlwe: received,
            scale,
            packing: Packing::Coefficients,
            estimate: ErrorEstimate { deviation: 0.0, magnitude: 0.0, real: true },
        };
        (out, variance)
    } else if kind == Some(Kind::CkksSeededCiphertext) {
        let seeded = SeededCiphertext::from_bytes(bytes, parameters)?;
        (seeded.expand(), noise::fresh_symmetric())
    } else {
        (Ciphertext::from_bytes(bytes, parameters)?, noise::fresh_public(rlwe))
    };
    let refuse = |what, found: String, expected: String| Err(ServerError::Upload { what, found, expected });
    if ciphertext.level() != 0 {
        return refuse("level", ciphertext.level().to_string(), "0".into());
    }
    if ciphertext.degree() != 1 {
        return refuse("degree", ciphertext.degree().to_string(), "1".into());
    }
    if ciphertext.packing != Packing::Coefficients {
        return refuse("packing", ciphertext.packing.to_string(), Packing::Coefficients.to_string());
    }
    if ciphertext.scale != scale {
        return refuse("scale", ciphertext.scale.to_string(), scale.to_string());
    }
    let format = client.fixed_point();
    ciphertext.estimate = ErrorEstimate {
        deviation: ciphertext.deviation_of(variance + 1.0 / 12.0),
        magnitude: format.max() as f64 / (format.fraction_bits() as f64).exp2(),
        real: true,
    };
    Ok(ciphertext)
}

/// Refuses the parameters of a client of another server.
pub(crate) fn require_client(rlwe: &Parameters, client: &ClientParameters) -> Result<(), ServerError> {
    if identity(rlwe.literal())? == client.literal().identity {
        return Ok(());
    }
    let (left, right) = ("the parameters of the client", "those of the server");
    Err(RlweError::MixedParameters { left, right }.into())
}

/// Reads a ciphertext in compact form, with every residue. Returns its scale and the variance of its error, too.
///
/// # Errors
/// [`ServerError::Client`]; [`ServerError::Upload`] for another layout than the client's.
pub(crate) fn read_compact(
    bytes: &[u8],
    rlwe: &Parameters,
    client: &ClientParameters,
) -> Result<(RlweCiphertext, f64, f64), ServerError> {
    let engine = RingEngine::of(rlwe.ring());
    let width = rlwe.modulus(0).bits();
    let form = CompactForm::read(rlwe.log_n(), width, &client.literal().identity, bytes)?;
    if form.layout != client.layout() {
        let (found, expected) = (format!("{:?}", form.layout), format!("{:?}", client.layout()));
        return Err(ServerError::Upload { what: "layout", found, expected });
    }
    let (mut c0, mut c1) = (Poly::unspecified(rlwe.n(), 1), Poly::unspecified(rlwe.n(), 1));
    form.first_half(&engine, c0.limb_mut(0))?;
    engine.forward(c0.limb_mut(0));
    form.second_half(&engine, c1.limb_mut(0))?;
    let seeded = matches!(form.c1, SecondHalf::Seeded(_));
    let fresh = if seeded { noise::fresh_symmetric() } else { noise::fresh_public(rlwe) };
    let received = RlweCiphertext { polys: vec![c0, c1], key: form.key };
    Ok((received, f64::from_bits(form.message[0]), fresh + dropped_variance(rlwe, form.dropped)))
}

/// Whether bytes look like a secret, an object whose kind has its top bit set. A server refuses these without reading
/// further.
pub fn is_secret(bytes: &[u8]) -> bool {
    Kind::code_of(bytes).is_some_and(Kind::is_secret_code)
}
