//! The error from dropping low bits of a ciphertext's coefficients.

use keywright_ckks::Ciphertext;
use keywright_client::Dropped;
use keywright_rlwe::Parameters;

use crate::ServerError;

/// Variance of the coefficients that dropping bits adds.
pub(crate) fn dropped_variance(rlwe: &Parameters, dropped: Dropped) -> f64 {
    let norm2 = rlwe.secret().expected_norm2(rlwe.n());
    let one = |bits: u32| if bits == 0 { 0.0 } else { (2.0 * f64::from(bits)).exp2() / 12.0 };
    one(dropped[0]) + norm2 * one(dropped[1])
}

/// The most low bits of a ciphertext's coefficients that can be dropped while its error grows at most by the factor
/// `growth`, with half of the added variance from each half of the ciphertext.
///
/// # Errors
/// [`ServerError::Growth`].
pub fn droppable(ciphertext: &Ciphertext, growth: f64) -> Result<Dropped, ServerError> {
    if !(growth > 1.0 && growth.is_finite()) {
        return Err(ServerError::Growth(growth));
    }
    let rlwe = ciphertext.parameters.rlwe();
    let existing = (ciphertext.estimate.deviation * ciphertext.scale).powi(2);
    let share = existing * (growth * growth - 1.0) / 2.0;
    let most = rlwe.modulus(0).bits().saturating_sub(12);
    let largest = |dropped: &dyn Fn(u32) -> Dropped| {
        (0..=most).take_while(|&bits| dropped_variance(rlwe, dropped(bits)) <= share).last().unwrap_or(0)
    };
    Ok([largest(&|bits| [bits, 0]), largest(&|bits| [0, bits])])
}
