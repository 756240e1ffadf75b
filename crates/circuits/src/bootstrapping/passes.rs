//! The passes of [`Iterations`]: the error of one pass is scaled up, bootstrapped, and added (Bae, Cheon, Cho, Kim and
//! Kim, *Meta-BTS: bootstrapping precision beyond the limit*, ePrint 2022/1167).
//!
//! Let a pass `B` turn an encryption of `m`, at the input's level and scale `S_0`, into one of `m + e` at the output's,
//! with `|e| <= 2^-b` for `|m| <= 1`. With the result lowered to the input's level,
//!
//! ```text
//! r_1 = B(m)                                          = m + e_1,
//! d_k = 2^(b k) (m - r_k)                             = -2^(b k) e_k,                |d_k| <= 1,
//! r_(k+1) = r_k + 2^(-b k) B(d_k)                     = m + e_(k+1),                 |e_(k+1)| <= 2^(-b (k+1)).
//! ```
//!
//! * *Levels.* The subtraction and the product with the integer `2^(b k)` are exact and consume no level. Nor does the
//!   quotient: `eval_mod` runs at the scale `2^(-b k) S`, at which the integers of `B(d_k)` are those of
//!   `2^(-b k) B(d_k)` at scale `S`. So the passes reserve no prime, unlike schemes in which a result has one scale
//!   only, and share the same keys.
//! * *`q_0`.* `d_k` is a message like any other, so the ratio of `q_0` to the scale is that of a single pass.
//! * *What is corrected.* All errors of the pass before, including that of `slots_to_coeffs` and the rounding of its
//!   result. If the input is in coefficients, the way back runs `slots_to_coeffs`, and its error stays.
//! * *What is left.* `2^(-b k)` times the error of a pass that ends at scale `2^(-b k) S`. The errors of all its steps
//!   but those near its end shrink by `2^(-b k)`. Its last rounding is that at scale `S`, which is the floor:
//!   `sqrt(N (1 + |s|^2) / 12) / S`.
//!
//! For real values only the real parts are bootstrapped, so the imaginary part of an error would stay. Every pass but
//! the last therefore ends with the sum of its result and the conjugate, at half the scale. This consumes no level, and
//! leaves a rounding of the imaginary part.
//!
//! `|d_k| <= 1` is derived, not assumed: the estimate of `r_k` bounds the error that its pass added to the decrypted
//! input.

use keywright_ckks::{Ciphertext, ErrorEstimate, Evaluator, PRODUCT_TAIL, SCALE_TOLERANCE};

use super::plan::{BootstrapperPlan, Iterations};
use super::stages::coeffs_to_slots::Values;
use crate::CircuitError;

/// The result of all passes over `input`.
///
/// `pass(c, scale)` bootstraps `c`, in the form of the input, to an output at that scale. `back(r, c)` brings a result
/// to the form, level and scale of `c`.
///
/// # Errors
/// [`CircuitError::Iteration`] if the bound on the error of a pass exceeds what the next one corrects; the errors of
/// `pass` and `back`.
pub(super) fn iterate(
    evaluator: &Evaluator<'_>,
    plan: &BootstrapperPlan,
    input: &Ciphertext,
    pass: impl Fn(&Ciphertext, f64) -> Result<Ciphertext, CircuitError>,
    back: impl Fn(&Ciphertext, &Ciphertext) -> Result<Ciphertext, CircuitError>,
) -> Result<Ciphertext, CircuitError> {
    let Some(iterations) = plan.iterations else { return pass(input, plan.scale) };
    // A plan is plain data: do not trust its numbers in shifts.
    iterations.require(plan.scale, plan.eval_mod.approximation.bits())?;
    let Iterations { count, log_precision } = iterations;
    // Errors are those that bootstrapping adds to the decrypted input.
    let reference = without_error(input);
    let first = pass(&reference, intermediate(plan, plan.scale))?;
    let (mut result, mut uncorrected) = finish(evaluator, plan, first)?;
    for iteration in 1..count {
        let bits = log_precision * iteration as u32;
        let gain = f64::from(bits).exp2();
        let returned = back(&without_error(&result), &reference)?;
        let lost = returned.estimate.deviation;
        let magnitude = gain * PRODUCT_TAIL * (result.estimate.deviation + lost);
        if magnitude > 1.0 {
            let found = f64::from(bits) - magnitude.log2();
            return Err(CircuitError::Iteration { iteration, bits, found });
        }
        let mut difference = evaluator.sub(&reference, &returned)?;
        drop(returned);
        evaluator.mul_integer_assign(&mut difference, 1i64 << bits)?;
        difference.estimate = ErrorEstimate { deviation: gain * lost, magnitude, ..difference.estimate };
        let scale = plan.scale / gain;
        let (mut correction, kept) = if iteration + 1 < count {
            finish(evaluator, plan, pass(&difference, intermediate(plan, scale))?)?
        } else {
            (pass(&difference, scale)?, 0.0)
        };
        // The same integers, 2^-bits times the values.
        correction.scale = result.scale;
        uncorrected += kept / gain;
        let deviation = correction.estimate.deviation / gain + uncorrected;
        let estimate = result.estimate;
        evaluator.add_assign(&mut result, &correction)?;
        result.estimate = ErrorEstimate { deviation, ..estimate };
    }
    result.estimate.deviation += input.estimate.deviation;
    Ok(result)
}

/// The scale of the result of a pass that another one corrects, for a final result at `scale`.
fn intermediate(plan: &BootstrapperPlan, scale: f64) -> f64 {
    if plan.coeffs_to_slots.values == Values::Real { scale / 2.0 } else { scale }
}

/// The result of a pass that another one corrects, at twice the scale if it is a real part, and the deviation that no
/// correction removes.
fn finish(
    evaluator: &Evaluator<'_>,
    plan: &BootstrapperPlan,
    mut result: Ciphertext,
) -> Result<(Ciphertext, f64), CircuitError> {
    if plan.coeffs_to_slots.values == Values::Complex {
        return Ok((result, 0.0));
    }
    let estimate = result.estimate;
    let conjugate = evaluator.conjugate(&without_error(&result))?;
    evaluator.add_assign(&mut result, &conjugate)?;
    // Twice the real part at a scale is the real part at twice the scale.
    result.scale *= 2.0;
    let kept = conjugate.estimate.deviation / 2.0;
    result.estimate = ErrorEstimate { deviation: estimate.deviation + kept, ..estimate };
    Ok((result, kept))
}

/// Treats the ciphertext as exact: its message is its decryption.
pub(super) fn without_error(ciphertext: &Ciphertext) -> Ciphertext {
    let estimate = ErrorEstimate { deviation: 0.0, ..ciphertext.estimate };
    Ciphertext { estimate, ..ciphertext.clone() }
}

/// A ciphertext at a lower level and a given scale. Costs a level unless it has that scale already.
///
/// # Errors
/// As [`Evaluator::set_scale`]; also for a ciphertext whose level is too low.
pub(super) fn lowered(
    evaluator: &Evaluator<'_>,
    ciphertext: &Ciphertext,
    level: usize,
    scale: f64,
) -> Result<Ciphertext, CircuitError> {
    if (ciphertext.scale / scale - 1.0).abs() <= SCALE_TOLERANCE {
        return Ok(evaluator.drop_to_level(ciphertext, level)?);
    }
    Ok(evaluator.set_scale(&evaluator.drop_to_level(ciphertext, level + 1)?, scale)?)
}
