use core::fmt;
use core::ops::RangeInclusive;

/// Distribution of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretDistribution {
    /// Coefficients independent and uniform in `{-1, 0, 1}`.
    Ternary,
    /// Exactly `weight` coefficients are `+-1`.
    Sparse {
        /// Hamming weight.
        weight: usize,
    },
}

impl SecretDistribution {
    /// Expected squared Euclidean norm in a ring of degree `n`.
    pub fn expected_norm2(self, n: usize) -> f64 {
        match self {
            Self::Ternary => 2.0 * n as f64 / 3.0,
            Self::Sparse { weight } => weight as f64,
        }
    }

    /// Whether a secret of degree `n` has at least 128 bits of entropy, so that a digest of it confirms no guess that
    /// anybody can make. There are `C(n, h) 2^h >= (2 n / h)^h` secrets of weight `h`, and at `h = n` still `2^n`.
    pub fn resists_guessing(self, n: usize) -> bool {
        match self {
            Self::Ternary => n >= 128,
            Self::Sparse { weight: 0 } => false,
            Self::Sparse { weight } => {
                let bits_each = (n / weight).checked_ilog2().map_or(0, |bits| bits as usize + 1);
                weight.saturating_mul(bits_each) >= 128
            }
        }
    }
}

impl SecretDistribution {
    /// Hamming weights of secrets in a ring of degree `n`. Those of uniform ternary secrets are binomial with mean
    /// `2n/3` and variance `2n/9`. They are outside ten deviations with a probability below `2^-70` (summed exactly for
    /// `2^10` and `2^16`), so a weight outside cannot come from sampling.
    pub fn weights(self, n: usize) -> RangeInclusive<usize> {
        match self {
            Self::Sparse { weight } => weight..=weight,
            Self::Ternary => {
                let (mean, ten_deviations) = (2 * n / 3, (200 * n / 9).isqrt());
                mean - ten_deviations..=mean + ten_deviations + 1
            }
        }
    }
}

impl fmt::Display for SecretDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ternary => f.write_str("a uniform ternary secret"),
            Self::Sparse { weight } => write!(f, "a ternary secret of weight {weight}"),
        }
    }
}
