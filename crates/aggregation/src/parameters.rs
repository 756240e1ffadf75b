use keywright_ring::Modulus;
use keywright_ring::sampling::GAUSSIAN_BOUND;
use keywright_rlwe::{Parameters, ParametersLiteral, SecretDistribution, maximum_log_qp};

use crate::AggregationError;
use crate::error::in_range;

/// Most updates of one sum.
pub const MAX_INPUTS: u32 = 1 << 20;
/// Largest magnitude that can be declared.
pub const MAX_MAGNITUDE: u64 = 1 << 48;
/// Widths of the modulus: whole bytes, so that residues are stored without waste and without shifts.
const WIDTHS: [u32; 4] = [32, 40, 48, 56];
/// Smallest ring degree in use.
const MIN_LOG_N: u32 = 11;

/// Ring, modulus and scale for sums of up to [`Self::capacity`] vectors of integers up to [`Self::magnitude`].
///
/// # Invariant
/// `2 K B < 2^noise_bits` and `K (M 2^noise_bits + B) <= (q - 1) / 2` for `K = capacity >= max_inputs`, `M = magnitude`
/// and `B` the bound of one error.
#[derive(Clone, Debug)]
pub struct SumParameters {
    rlwe: Parameters,
    max_inputs: u32,
    magnitude: u64,
    noise_bits: u32,
    capacity: u32,
}

impl SumParameters {
    /// Chooses the smallest modulus, and for it the smallest ring of 128-bit security.
    ///
    /// # Errors
    /// [`AggregationError::Range`] for no or too many inputs or a magnitude outside `1..=`[`MAX_MAGNITUDE`],
    /// [`AggregationError::NoModulus`] if their sums do not fit 56 bits with the error.
    pub fn new(max_inputs: u32, magnitude: u64) -> Result<Self, AggregationError> {
        in_range("number of updates of a sum", max_inputs.into(), 1, MAX_INPUTS.into())?;
        in_range("magnitude", magnitude, 1, MAX_MAGNITUDE)?;
        let bound = u128::from(GAUSSIAN_BOUND.unsigned_abs());
        // The smallest power of two above twice the error of the sum.
        let noise_bits = 128 - (2 * u128::from(max_inputs) * bound).leading_zeros();
        let one = (u128::from(magnitude) << noise_bits) + bound;
        let needed = 2 * u128::from(max_inputs) * one + 1;
        for width in WIDTHS {
            if needed >> width != 0 {
                continue;
            }
            let literal = smallest_ring(width)?;
            let q = u128::from(literal.q[0]);
            if needed > q {
                continue;
            }
            let by_modulus = (q - 1) / 2 / one;
            let by_noise = ((1 << noise_bits) - 1) / (2 * bound);
            let capacity = by_modulus.min(by_noise).min(MAX_INPUTS.into()) as u32;
            let rlwe = Parameters::new(literal)?;
            return Ok(Self { rlwe, max_inputs, magnitude, noise_bits, capacity });
        }
        let bits = 128 - needed.leading_zeros();
        let max = WIDTHS[WIDTHS.len() - 1];
        Err(AggregationError::NoModulus { max_inputs: max_inputs.into(), magnitude, bits, max })
    }

    /// Ring, modulus and their security.
    pub fn rlwe(&self) -> &Parameters {
        &self.rlwe
    }

    /// The modulus.
    pub fn modulus(&self) -> &Modulus {
        self.rlwe.modulus(0)
    }

    /// Requested number of updates.
    pub fn max_inputs(&self) -> u32 {
        self.max_inputs
    }

    /// Number of updates that the modulus can hold: at least [`Self::max_inputs`].
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Largest absolute value of an integer of one update.
    pub fn magnitude(&self) -> u64 {
        self.magnitude
    }

    /// `log2` of the factor by which integers are scaled above the error.
    pub fn noise_bits(&self) -> u32 {
        self.noise_bits
    }

    /// Bytes of one encrypted integer.
    pub fn value_bytes(&self) -> usize {
        self.modulus().bits().div_ceil(8) as usize
    }

    /// Whether two objects belong to the same parameters.
    pub fn same(&self, other: &Self) -> bool {
        (self.max_inputs, self.magnitude) == (other.max_inputs, other.magnitude)
    }
}

/// The largest prime of a width in the smallest ring whose 128-bit bound admits it.
fn smallest_ring(width: u32) -> Result<ParametersLiteral, AggregationError> {
    let secret = SecretDistribution::Ternary;
    let mut log_n = MIN_LOG_N;
    while maximum_log_qp(log_n, secret)? < width {
        log_n += 1;
    }
    Ok(ParametersLiteral::from_bits(log_n, &[width], &[])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The invariant, over the edges of every width.
    #[test]
    fn sums_fit_exactly_up_to_the_capacity() {
        let mut widths = std::collections::BTreeSet::new();
        for inputs in [1, 2, 15, 30, 1000, 1 << 16, MAX_INPUTS] {
            for bits in 1..44 {
                let Ok(p) = SumParameters::new(inputs, (1 << bits) - 1) else { continue };
                let q = u128::from(p.modulus().value());
                let holds = |k: u128| {
                    2 * k * 29 < 1 << p.noise_bits()
                        && k * ((u128::from(p.magnitude()) << p.noise_bits()) + 29) <= (q - 1) / 2
                };
                assert!(p.capacity() >= inputs && holds(p.capacity().into()));
                assert!(p.capacity() == MAX_INPUTS || !holds(u128::from(p.capacity()) + 1));
                assert_eq!(p.modulus().bits() % 8, 0);
                widths.insert((p.modulus().bits(), p.rlwe().log_n()));
            }
        }
        assert_eq!(widths.into_iter().collect::<Vec<_>>(), [(32, 11), (40, 11), (48, 11), (56, 12)]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_bound() {
        assert!(matches!(SumParameters::new(0, 1), Err(AggregationError::Range { value: 0, .. })));
        assert!(matches!(SumParameters::new(1, 0), Err(AggregationError::Range { .. })));
        assert!(matches!(SumParameters::new(MAX_INPUTS + 1, 1), Err(AggregationError::Range { .. })));
        assert!(matches!(
            SumParameters::new(30, MAX_MAGNITUDE),
            Err(AggregationError::NoModulus { bits: 65, max: 56, .. })
        ));
    }
}
