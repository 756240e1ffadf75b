//! Operations with numbers, which are encoded to match the ciphertext. The result states their largest absolute value,
//! or the magnitude that was declared for them.

use keywright_ckks::{Ciphertext, CkksError, Complex64, Evaluator, Magnitude, Packing, Plaintext};

use crate::arguments::array::Numbers;
use crate::errors::{Failure, Refusal};

/// A vector or a scalar at the level of `a`, in its packing, at a scale, with the declared magnitude if there is one.
fn encode(
    a: &Ciphertext,
    numbers: &Numbers,
    scale: f64,
    magnitude: Option<Magnitude>,
) -> Result<Plaintext, Failure> {
    let plaintext = encode_numbers(a, numbers, scale)?;
    Ok(match magnitude {
        Some(magnitude) => plaintext.declared(magnitude)?,
        None => plaintext,
    })
}

fn encode_numbers(a: &Ciphertext, numbers: &Numbers, scale: f64) -> Result<Plaintext, Failure> {
    let complex = |values: &[Complex64]| match a.packing {
        Packing::Slots { log_slots } => Ok(a.parameters.encode(values, log_slots, a.level(), scale)?),
        Packing::Coefficients => Err(Refusal::Values(
            "values are complex; coefficients need real ones, for instance values.real".into(),
        )
        .into()),
    };
    let everywhere = |value: Complex64| match a.packing {
        Packing::Slots { log_slots } => complex(&vec![value; 1 << log_slots]),
        Packing::Coefficients => complex(&[value]),
    };
    let everywhere_real = |value: f64| {
        let count = match a.packing {
            Packing::Slots { log_slots } => 1 << log_slots,
            Packing::Coefficients => 1,
        };
        Ok(a.parameters.encode_real(&vec![value; count], a.packing, a.level(), scale)?)
    };
    match numbers {
        Numbers::Real(values) => Ok(a.parameters.encode_real(values, a.packing, a.level(), scale)?),
        Numbers::Complex(values) => complex(values),
        Numbers::ComplexScalar(value) => everywhere(*value),
        Numbers::Scalar(value) => everywhere_real(*value),
        Numbers::Integer(value) => everywhere_real(*value as f64),
    }
}

/// The sign of numbers that are added.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
}

/// `a + numbers` or `a - numbers`.
fn sum(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
    magnitude: Option<Magnitude>,
    sign: Sign,
) -> Result<Ciphertext, Failure> {
    let constant = match numbers {
        // A constant states its size in the result, so one with a declaration is encoded as a vector.
        _ if magnitude.is_some() => None,
        Numbers::Integer(value) => Some(*value as f64),
        Numbers::Scalar(value) => Some(*value),
        _ => None,
    };
    Ok(match (constant, sign) {
        (Some(value), Sign::Plus) => evaluator.add_constant(a, value)?,
        (Some(value), Sign::Minus) => evaluator.add_constant(a, -value)?,
        (None, Sign::Plus) => evaluator.add_plain(a, &encode(a, numbers, a.scale, magnitude)?)?,
        (None, Sign::Minus) => evaluator.sub_plain(a, &encode(a, numbers, a.scale, magnitude)?)?,
    })
}

/// `a + numbers`.
pub(crate) fn add(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
    magnitude: Option<Magnitude>,
) -> Result<Ciphertext, Failure> {
    sum(evaluator, a, numbers, magnitude, Sign::Plus)
}

/// `a - numbers`.
pub(crate) fn sub(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
    magnitude: Option<Magnitude>,
) -> Result<Ciphertext, Failure> {
    sum(evaluator, a, numbers, magnitude, Sign::Minus)
}

/// `a numbers` at the scale of `a`: an integer without a declaration consumes no level, anything else one.
pub(crate) fn multiply(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
    magnitude: Option<Magnitude>,
) -> Result<Ciphertext, Failure> {
    match numbers {
        Numbers::Integer(value) if magnitude.is_none() => Ok(evaluator.mul_integer(a, *value)?),
        Numbers::Scalar(value) if magnitude.is_none() => Ok(evaluator.mul_constant(a, *value)?),
        Numbers::Real(values) if magnitude.is_none() => Ok(evaluator.multiply_values(a, values)?),
        vector => multiply_to_scale(evaluator, a, vector, magnitude, a.scale),
    }
}

/// `a numbers` at a scale: one level less. The numbers are encoded at `q_level scale / a.scale`.
pub(crate) fn multiply_to_scale(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
    magnitude: Option<Magnitude>,
    scale: f64,
) -> Result<Ciphertext, Failure> {
    if a.level() == 0 {
        return Err(CkksError::LevelsExhausted { operation: "multiply", needed: 1, available: 0 }.into());
    }
    let ratio = scale / a.scale;
    if !(0.5..=2.0).contains(&ratio) {
        return Err(CkksError::ScaleMismatch { left: a.scale.log2(), right: scale.log2() }.into());
    }
    let q = a.parameters.rlwe().modulus(a.level()).value() as f64;
    let product = evaluator.multiply_plain_lazy(a, &encode(a, numbers, q * ratio, magnitude)?)?;
    Ok(Ciphertext { scale, ..evaluator.rescale(&product)? })
}

/// `a numbers`, encoded at the prime that the next rescaling divides by, and not rescaled.
pub(crate) fn multiply_lazy(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
    magnitude: Option<Magnitude>,
) -> Result<Ciphertext, Failure> {
    let q = a.parameters.rlwe().modulus(a.level()).value() as f64;
    Ok(evaluator.multiply_plain_lazy(a, &encode(a, numbers, q, magnitude)?)?)
}
