//! Operations with numbers, which are encoded to match the ciphertext.

use keywright_ckks::{Ciphertext, CkksError, Complex64, Evaluator, Packing, Plaintext};

use crate::array::Numbers;
use crate::errors::{Failure, Refusal};

/// A vector or a complex scalar at the level of `a`, in its packing, at a scale.
fn encode(a: &Ciphertext, numbers: &Numbers, scale: f64) -> Result<Plaintext, Failure> {
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
    match numbers {
        Numbers::Real(values) => Ok(a.parameters.encode_real(values, a.packing, a.level(), scale)?),
        Numbers::Complex(values) => complex(values),
        Numbers::ComplexScalar(value) => everywhere(*value),
        Numbers::Scalar(value) => everywhere(Complex64::new(*value, 0.0)),
        Numbers::Integer(value) => everywhere(Complex64::new(*value as f64, 0.0)),
    }
}

/// `a + numbers`.
pub(crate) fn add(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
) -> Result<Ciphertext, Failure> {
    match numbers {
        Numbers::Integer(value) => Ok(evaluator.add_constant(a, *value as f64)?),
        Numbers::Scalar(value) => Ok(evaluator.add_constant(a, *value)?),
        vector => Ok(evaluator.add_plain(a, &encode(a, vector, a.scale)?)?),
    }
}

/// `a - numbers`.
pub(crate) fn sub(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
) -> Result<Ciphertext, Failure> {
    match numbers {
        Numbers::Integer(value) => Ok(evaluator.add_constant(a, -(*value as f64))?),
        Numbers::Scalar(value) => Ok(evaluator.add_constant(a, -value)?),
        vector => Ok(evaluator.sub_plain(a, &encode(a, vector, a.scale)?)?),
    }
}

/// `a numbers` at the scale of `a`: an integer consumes no level, anything else one.
pub(crate) fn multiply(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
) -> Result<Ciphertext, Failure> {
    match numbers {
        Numbers::Integer(value) => Ok(evaluator.mul_integer(a, *value)?),
        Numbers::Scalar(value) => Ok(evaluator.mul_constant(a, *value)?),
        Numbers::Real(values) => Ok(evaluator.multiply_values(a, values)?),
        complex => {
            if a.level() == 0 {
                return Err(
                    CkksError::LevelsExhausted { operation: "multiply", needed: 1, available: 0 }.into()
                );
            }
            let product = multiply_lazy(evaluator, a, complex)?;
            Ok(Ciphertext { scale: a.scale, ..evaluator.rescale(&product)? })
        }
    }
}

/// `a numbers`, encoded at the prime that the next rescaling divides by, and not rescaled.
pub(crate) fn multiply_lazy(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    numbers: &Numbers,
) -> Result<Ciphertext, Failure> {
    let q = a.parameters.rlwe().modulus(a.level()).value() as f64;
    Ok(evaluator.multiply_plain_lazy(a, &encode(a, numbers, q)?)?)
}
