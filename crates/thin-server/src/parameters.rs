//! The data that a server supplies to clients.

use keywright_circuits::bootstrapping::{BootstrapperPlan, Values};
use keywright_ckks::CkksParameters;
use keywright_client::{ClientLiteral, ClientParameters, IdentityBytes, Layout};
use keywright_rlwe::{Parameters, ParametersLiteral, noise};
use keywright_wire::{Identity, WireError};

use crate::ServerError;

/// The identity of parameters in the headers of their objects.
pub(crate) fn identity(literal: &ParametersLiteral) -> Result<IdentityBytes, ServerError> {
    Ok(Identity::of(literal).map_err(WireError::from)?.to_bytes())
}

/// The parameters with `q_0` alone: those of a client's public key.
pub fn entry_literal(parameters: &Parameters) -> ParametersLiteral {
    let literal = parameters.literal();
    ParametersLiteral { q: vec![literal.q[0]], p: Vec::new(), subrings: Vec::new(), ..literal.clone() }
}

/// The parameters for clients of a bootstrapping: numbers of at most 1, with `fraction_bits` after the point, at the
/// scale and in the places of the bootstrapping's input coefficients.
///
/// # Errors
/// [`ServerError::Client`] for more fraction bits than the scale has.
pub fn client_parameters(
    parameters: &CkksParameters,
    plan: &BootstrapperPlan,
    fraction_bits: u32,
) -> Result<ClientParameters, ServerError> {
    // A double has 53 bits: above 2^53 it is an integer.
    let scale = plan.coefficients_scale.round() as u64;
    let complex = plan.coeffs_to_slots.values == Values::Complex;
    let layout = Layout::Slots { log_slots: plan.slots_to_coeffs.dft.log_slots(), complex };
    parameters_at(parameters, scale, fraction_bits, layout)
}

/// The parameters for clients of a server: numbers of at most 1, with `fraction_bits` after the point, at a scale, in
/// the places of a layout.
///
/// # Errors
/// As [`ClientParameters::new`].
pub fn parameters_at(
    parameters: &CkksParameters,
    scale: u64,
    fraction_bits: u32,
    layout: Layout,
) -> Result<ClientParameters, ServerError> {
    let max = 1i64.checked_shl(fraction_bits).unwrap_or(0);
    one_prime(parameters.rlwe(), scale, fraction_bits, max, layout)
}

/// The parameters for clients of any scheme, which compute modulo the first prime, for numbers of at most `max` units.
///
/// # Errors
/// As [`ClientParameters::new`].
pub(crate) fn one_prime(
    rlwe: &Parameters,
    scale: u64,
    fraction_bits: u32,
    max: i64,
    layout: Layout,
) -> Result<ClientParameters, ServerError> {
    let deviation = |variance: f64| ((variance + 1.0 / 12.0).sqrt() / scale as f64).to_bits();
    Ok(ClientParameters::new(ClientLiteral {
        log_n: rlwe.log_n(),
        modulus: rlwe.modulus(0).value(),
        secret: rlwe.secret(),
        scale,
        fraction_bits,
        max,
        layout,
        identity: identity(rlwe.literal())?,
        entry_identity: identity(&entry_literal(rlwe))?,
        estimate: [deviation(noise::fresh_public(rlwe)), deviation(noise::fresh_symmetric()), 1f64.to_bits()],
    })?)
}
