use keywright_rlwe::{Parameters, ParametersLiteral, SecretDistribution, maximum_log_qp};

use crate::AggregationError;
use crate::error::in_range;
use crate::parameters::{MAX_INPUTS, MAX_MAGNITUDE};

/// Most parties: each sends every other one a share.
pub const MAX_PARTIES: u32 = 1 << 10;
/// `-log2` of the statistical distance that smudging leaves, over all coefficients of a sum and all sets of parties
/// that may be asked for it.
pub const STATISTICAL_BITS: u32 = 40;
/// Most sets of parties that one party answers for a sum.
pub const MAX_SETS: u32 = 8;
/// `-log2` of the probability that an error of a sum exceeds its bound.
const TAIL_BITS: u32 = 64;
/// Largest width of either prime.
const MAX_PRIME_BITS: u32 = 61;
/// Ring degrees that are tried.
const LOG_N: [u32; 2] = [12, 13];

/// Ring, modulus, scale and smudging for sums that `threshold` of `parties` decrypt together.
///
/// # Invariant
/// With `B = error_bound`, `w = smudging_bits`, `D = 2^noise_bits`: `8 V B <= 2^(w - 40)`, `2 (B + t 2^(w-1)) < D`,
/// `K M D + D / 2 <= (Q - 1) / 2 < 2^121`, `V` the number of coefficients of a sum.
#[derive(Clone, Debug)]
pub struct ThresholdParameters {
    rlwe: Parameters,
    parties: u32,
    threshold: u32,
    max_inputs: u32,
    magnitude: u64,
    max_values: u32,
    error_bound: u128,
    smudging_bits: u32,
    noise_bits: u32,
}

impl ThresholdParameters {
    /// Chooses the smallest ring and modulus.
    ///
    /// # Errors
    /// [`AggregationError::Range`] unless `2 <= threshold <= parties <=` [`MAX_PARTIES`] and the other numbers are
    /// within their bounds, [`AggregationError::NoModulus`] if the sums do not fit 122 bits with error and smudging.
    pub fn new(
        parties: u32,
        threshold: u32,
        max_inputs: u32,
        magnitude: u64,
        max_values: u32,
    ) -> Result<Self, AggregationError> {
        in_range("number of parties", parties.into(), 2, MAX_PARTIES.into())?;
        in_range("threshold", threshold.into(), 2, parties.into())?;
        in_range("number of updates of a sum", max_inputs.into(), 1, MAX_INPUTS.into())?;
        in_range("magnitude", magnitude, 1, MAX_MAGNITUDE)?;
        in_range("number of values", max_values.into(), 1, u32::MAX.into())?;
        let (n, inputs) = (u128::from(parties), u128::from(max_inputs));
        let mut bits = 0;
        for log_n in LOG_N {
            let degree = 1u128 << log_n;
            let coefficients = u128::from(max_values).next_multiple_of(degree);
            let error_bound = error_bound(degree, n, inputs, coefficients);
            // At most 2^3 * 2^33 * 2^32.
            let smudging_bits =
                STATISTICAL_BITS + ceil_log2(u128::from(MAX_SETS) * coefficients * error_bound);
            let noise_bits =
                ceil_log2(2 * (error_bound + (u128::from(threshold) << (smudging_bits - 1))) + 1);
            // 2 (K M D + D / 2) + 1 <= Q, in units of D rounded up.
            bits = noise_bits + ceil_log2(2 * inputs * u128::from(magnitude) + 2);
            // The largest primes of a width: together at most one bit short.
            let widths = [(bits + 1).div_ceil(2); 2];
            let log_q: u32 = widths.iter().sum();
            if log_q > maximum_log_qp(log_n, SecretDistribution::Ternary)? || widths[0] > MAX_PRIME_BITS {
                continue;
            }
            let rlwe = Parameters::new(ParametersLiteral::from_bits(log_n, &widths, &[])?)?;
            return Ok(Self {
                rlwe,
                parties,
                threshold,
                max_inputs,
                magnitude,
                max_values,
                error_bound,
                smudging_bits,
                noise_bits,
            });
        }
        let max = 2 * MAX_PRIME_BITS - 1;
        Err(AggregationError::NoModulus { max_inputs: max_inputs.into(), magnitude, bits, max })
    }

    /// Ring, modulus and their security.
    pub fn rlwe(&self) -> &Parameters {
        &self.rlwe
    }

    /// Number of parties of the set-up; they are numbered from 1.
    pub fn parties(&self) -> u32 {
        self.parties
    }

    /// Number of parties that decrypt together.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Most updates of one sum.
    pub fn max_inputs(&self) -> u32 {
        self.max_inputs
    }

    /// Largest absolute value of an integer of one update.
    pub fn magnitude(&self) -> u64 {
        self.magnitude
    }

    /// Most values of one update.
    pub fn max_values(&self) -> u32 {
        self.max_values
    }

    /// Bound on the error of a sum before smudging, for all values of a sum except with a probability of `2^-62`.
    pub fn error_bound(&self) -> u128 {
        self.error_bound
    }

    /// `log2` of the number of values that a smudging coefficient can take.
    pub fn smudging_bits(&self) -> u32 {
        self.smudging_bits
    }

    /// `log2` of the factor by which integers are scaled above error and smudging.
    pub fn noise_bits(&self) -> u32 {
        self.noise_bits
    }

    /// Number of ciphertexts of a vector of `count` values.
    pub fn chunks(&self, count: usize) -> usize {
        count.div_ceil(self.rlwe.n())
    }
}

/// A bound on the error of a sum of encryptions, `e = sum_k (v_k E + e_k0 + e_k1 S)` for the sums `E` of all parties'
/// errors and `S` of their secrets.
///
/// Ternary samples are subgaussian with variance proxy 2/3, errors with `sigma^2`. With a probability above `1 - 2^-63`
/// `|E|^2 <= n sigma^2 r` and `|S|^2 <= 2/3 n r`, `r = N + 2 sqrt(N x) + 2 x`, `x = 64 ln 2` (Hsu, Kakade and Zhang, *A
/// tail inequality for quadratic forms of subgaussian random vectors*, 2012). Given both, a coefficient of `e` is
/// subgaussian with proxy `K (2/3 |E|^2 + sigma^2 + sigma^2 |S|^2) <= K sigma^2 (4/3 n r + 1)`, and one of `V`
/// coefficients is above `sqrt(2 proxy ln(2 V 2^64))` with a probability of at most `2^-64`.
///
/// In integers, so that every machine computes the same bound.
fn error_bound(degree: u128, parties: u128, inputs: u128, coefficients: u128) -> u128 {
    // Rounded up: x, sigma^2 = 10.1761 in thousandths, ln 2 in ten thousandths.
    let (x, sigma2, ln2) = (45, 10_177, 6_932);
    let norm2 = degree + 2 * ((degree * x).isqrt() + 1) + 2 * x;
    let tail = u128::from(TAIL_BITS + 1 + ceil_log2(coefficients)) * ln2;
    // Thirds of thousandths: at most 2^20 * 2^14 * 2^27 * 2^20.
    let proxy = inputs * sigma2 * (4 * parties * norm2 + 3);
    (2 * proxy * tail).div_ceil(3 * 1_000 * 10_000).isqrt() + 1
}

fn ceil_log2(value: u128) -> u32 {
    128 - (value - 1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invariant_holds_over_the_range() {
        let mut rings = std::collections::BTreeSet::new();
        for (parties, threshold) in [(2, 2), (5, 3), (30, 20), (100, 51), (MAX_PARTIES, 700)] {
            for (inputs, bits, values) in
                [(2, 8, 10), (15, 24, 21_840), (30, 20, 1 << 20), (1000, 24, 1 << 24)]
            {
                let p = ThresholdParameters::new(parties, threshold, inputs, (1 << bits) - 1, values);
                let Ok(p) = p else { continue };
                let q: u128 = p.rlwe().literal().q.iter().map(|&q| u128::from(q)).product();
                let (b, d) = (p.error_bound(), 1u128 << p.noise_bits());
                let degree = p.rlwe().n() as u128;
                let coefficients = p.chunks(values as usize) as u128 * degree;
                assert!(8 * coefficients * b <= 1 << (p.smudging_bits() - 40));
                assert!(2 * (b + (u128::from(threshold) << (p.smudging_bits() - 1))) < d);
                assert!(u128::from(inputs) * u128::from(p.magnitude()) * d + d / 2 <= (q - 1) / 2);
                assert!((q - 1) / 2 < 1 << 121);
                rings.insert(p.rlwe().log_n());
            }
        }
        assert_eq!(rings.into_iter().collect::<Vec<_>>(), [12, 13]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (parties, threshold) in [(1, 1), (2, 1), (2, 3), (MAX_PARTIES + 1, 2)] {
            let refused = ThresholdParameters::new(parties, threshold, 2, 100, 10);
            assert!(matches!(refused, Err(AggregationError::Range { .. })), "{refused:?}");
        }
        let refused = ThresholdParameters::new(30, 20, 1000, 1 << 40, 1 << 24);
        assert!(matches!(refused, Err(AggregationError::NoModulus { max: 121, .. })), "{refused:?}");
    }
}
