//! What a server does for thin clients: parameters to hand out, ciphertexts in, answers out. It has no use for a secret, and reads none.

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, io, vec};

use keywright_circuits::bootstrapping::{BootstrapperPlan, Values};
use keywright_ckks::{Ciphertext, CkksParameters, ErrorEstimate, Packing, SymmetricCiphertext};
use keywright_ring::Poly;
use keywright_rlwe::{ParametersLiteral, RlweCiphertext, RlweError, noise};
use keywright_wire::{Identity, Kind, Wire, WireError};
use thiserror::Error;

use crate::compact_form::{CompactForm, Dropped, SecondHalf, write_compact};
use crate::engine::Engine;
use crate::{ClientError, ClientLiteral, ClientParameters, IdentityBytes, Layout, RingEngine};

/// Why a server refuses.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Bytes that are no ciphertext of these parameters.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Bytes in compact form that are none, or parameters that no client can have.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Objects of other parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A ciphertext that a client does not send.
    #[error("{what} of an uploaded ciphertext is {found}, must be {expected}")]
    Upload {
        /// Which property.
        what: &'static str,
        /// What was found.
        found: String,
        /// What there should be.
        expected: String,
    },
    /// An answer that is no longer one modulo `q_0`.
    #[error("values of up to 2^{log_size:.1} at this scale do not fit q_0 of {log_q:.1} bits")]
    TooLarge {
        /// `log2` of values and errors at their scale.
        log_size: f64,
        /// `log2(q_0)`.
        log_q: f64,
    },
    /// An answer whose values are not in coefficients.
    #[error("an answer has its values in coefficients, not in {0}: slots_to_coeffs comes first")]
    Packing(Packing),
    /// A factor by which an error may grow that is not above 1.
    #[error("an error cannot grow by a factor of {0}: it must be finite and above 1")]
    Growth(f64),
}

/// The identity of parameters in the headers of their objects.
fn identity(literal: &ParametersLiteral) -> Result<IdentityBytes, ServerError> {
    Ok(Identity::of(literal).map_err(WireError::from)?.to_bytes())
}

/// The parameters with `q_0` alone: those of a client's public key.
pub fn entry_literal(parameters: &CkksParameters) -> ParametersLiteral {
    let literal = parameters.rlwe().literal();
    ParametersLiteral { q: vec![literal.q[0]], p: Vec::new(), ..literal.clone() }
}

/// What clients of a bootstrapping have to know: numbers of at most 1, with `fraction_bits` after the point, at the scale and in the places from which
/// the bootstrapping takes coefficients.
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

/// What clients of a server have to know: numbers of at most 1, with `fraction_bits` after the point, at a scale, in the places of a layout.
///
/// # Errors
/// As [`ClientParameters::new`].
pub fn parameters_at(
    parameters: &CkksParameters,
    scale: u64,
    fraction_bits: u32,
    layout: Layout,
) -> Result<ClientParameters, ServerError> {
    let rlwe = parameters.rlwe();
    let deviation = |variance: f64| ((variance + 1.0 / 12.0).sqrt() / scale as f64).to_bits();
    Ok(ClientParameters::new(ClientLiteral {
        log_n: rlwe.log_n(),
        modulus: rlwe.modulus(0).value(),
        secret: rlwe.secret(),
        scale,
        fraction_bits,
        max: 1i64.checked_shl(fraction_bits).unwrap_or(0),
        layout,
        identity: identity(rlwe.literal())?,
        entry_identity: identity(&entry_literal(parameters))?,
        estimate: [deviation(noise::fresh_public(rlwe)), deviation(noise::fresh_symmetric()), 1f64.to_bits()],
    })?)
}

/// A ciphertext that a client of these parameters sent, in any of its forms. Scale, level and form are checked, every residue too; what it says of
/// its own error is replaced by what the server knows.
///
/// # Errors
/// [`ServerError::Wire`], [`ServerError::Client`]: damaged or foreign bytes, among them a secret key; [`ServerError::Upload`].
pub fn read_upload(
    bytes: &[u8],
    parameters: &CkksParameters,
    client: &ClientParameters,
) -> Result<Ciphertext, ServerError> {
    let rlwe = parameters.rlwe();
    let scale = client.literal().scale as f64;
    let kind = Kind::code_of(bytes).and_then(Kind::from_code);
    let (mut ciphertext, variance) = if kind == Some(Kind::CkksCompactCiphertext) {
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
        let out = Ciphertext {
            parameters: parameters.clone(),
            rlwe: RlweCiphertext { polys: vec![c0, c1] },
            scale: f64::from_bits(form.message[0]),
            packing: Packing::Coefficients,
            estimate: ErrorEstimate { deviation: 0.0, magnitude: 0.0 },
        };
        (out, fresh + dropped_variance(parameters, form.dropped))
    } else if kind == Some(Kind::CkksSeededCiphertext) {
        let seeded = SymmetricCiphertext::from_bytes(bytes, parameters)?;
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
    };
    Ok(ciphertext)
}

/// Variance of the coefficients that dropping bits adds.
fn dropped_variance(parameters: &CkksParameters, dropped: Dropped) -> f64 {
    let rlwe = parameters.rlwe();
    let norm2 = rlwe.secret().expected_norm2(rlwe.n());
    let one = |bits: u32| if bits == 0 { 0.0 } else { (2.0 * f64::from(bits)).exp2() / 12.0 };
    one(dropped[0]) + norm2 * one(dropped[1])
}

/// The most low bits of a ciphertext's coefficients that can be dropped so that its error grows at most by the factor `growth`, half of the added
/// variance from each half of the ciphertext.
///
/// # Errors
/// [`ServerError::Growth`].
pub fn droppable(ciphertext: &Ciphertext, growth: f64) -> Result<Dropped, ServerError> {
    if !(growth > 1.0 && growth.is_finite()) {
        return Err(ServerError::Growth(growth));
    }
    let parameters = &ciphertext.parameters;
    let existing = (ciphertext.estimate.deviation * ciphertext.scale).powi(2);
    let share = existing * (growth * growth - 1.0) / 2.0;
    let most = parameters.rlwe().modulus(0).bits().saturating_sub(12);
    let largest = |dropped: &dyn Fn(u32) -> Dropped| {
        (0..=most)
            .take_while(|&bits| dropped_variance(parameters, dropped(bits)) <= share)
            .last()
            .unwrap_or(0)
    };
    Ok([largest(&|bits| [bits, 0]), largest(&|bits| [0, bits])])
}

/// Writes an answer modulo `q_0`, of a ciphertext at any level whose values are in coefficients: the coefficients of `layout`, without low bits. Returns
/// the error estimate of what the client decrypts.
///
/// # Errors
/// [`ServerError::Packing`]; [`ServerError::TooLarge`] if values and error do not fit `q_0`; [`ServerError::Client`] for too many dropped bits.
pub fn write_answer(
    ciphertext: &Ciphertext,
    layout: Layout,
    dropped: Dropped,
    writer: &mut impl io::Write,
) -> Result<ErrorEstimate, ServerError> {
    let parameters = &ciphertext.parameters;
    let rlwe = parameters.rlwe();
    if ciphertext.packing != Packing::Coefficients {
        return Err(ServerError::Packing(ciphertext.packing));
    }
    let added = ciphertext.deviation_of(dropped_variance(parameters, dropped));
    let estimate = ciphertext.estimate.with_noise(added);
    let log_size = ((estimate.magnitude + estimate.bound()) * ciphertext.scale).log2();
    let log_q = rlwe.log2_q(0);
    if log_size.is_nan() || log_size > log_q - 1.0 {
        return Err(ServerError::TooLarge { log_size, log_q });
    }
    let engine = RingEngine::of(rlwe.ring());
    // Dropping to level 0 is forgetting the other primes.
    let halves: Vec<Vec<u64>> = ciphertext
        .rlwe
        .polys
        .iter()
        .map(|poly| {
            let mut limb = poly.limb(0).to_vec();
            engine.inverse(&mut limb);
            limb
        })
        .collect();
    let [c0, c1] = &halves[..] else {
        let (found, expected) = (ciphertext.degree().to_string(), "1".into());
        return Err(ServerError::Upload { what: "degree", found, expected });
    };
    let message = [ciphertext.scale, estimate.deviation, estimate.magnitude].map(f64::to_bits);
    let identity = identity(rlwe.literal())?;
    let mut sink = |bytes: &[u8]| {
        writer.write_all(bytes).map_err(|_| crate::SinkError("the writer of the answer failed"))
    };
    write_compact(&engine, &identity, layout, dropped, message, [c0, c1], &mut sink)?;
    Ok(estimate)
}

/// Whether bytes look like a secret, which a server refuses without reading further: an object whose kind has its top bit set.
pub fn is_secret(bytes: &[u8]) -> bool {
    Kind::code_of(bytes).is_some_and(Kind::is_secret_code)
}
