//! Bounds on secure moduli. Every key is checked on its own.

use alloc::string::{String, ToString};

use crate::{RlweError, SecretDistribution};

/// Largest `log2(QP)` for 128-bit classical security with a uniform ternary secret and error of deviation 3.19, as
/// `(log_n, bits)`: Bossuat et al., *Security Guidelines for Implementing Homomorphic Encryption* (ePrint 2024/463),
/// table 5.2. Its 3523 at `2^17` has 127.9 bits by the estimate of `keywright.security`, and by the current version of
/// the lattice estimator that made the table; the value here has 128.
const TERNARY: [(u32, u32); 8] =
    [(10, 26), (11, 53), (12, 106), (13, 214), (14, 430), (15, 868), (16, 1747), (17, 3520)];

/// The same for secrets of Hamming weight 192. These are the largest moduli at which every attack that
/// `keywright.security` estimates takes at least `2^128`, where one reduced lattice serves all rotations of the secret.
const WEIGHT_192: [(u32, u32); 3] = [(15, 733), (16, 1474), (17, 2968)];

/// The same for ephemeral secrets of Hamming weight 32, on which only the key that switches to them depends. These are
/// the moduli of that key in the parameter sets of Bossuat, Troncoso-Pastoriza and Hubaux (ACNS 2022, ePrint 2022/024),
/// 40 + 56 bits at `2^15` and 60 + 61 bits at `2^16`. A larger ring with the same modulus is at least as strong. By the
/// estimate of `keywright.security` they have 141, 159 and 183 bits.
const WEIGHT_32: [(u32, u32); 3] = [(15, 96), (16, 121), (17, 121)];

/// The same for ephemeral secrets of Hamming weight 24: the modulus of that key with two primes of 50 bits, at which
/// `keywright.security` estimates 129 and 140 bits. The cheapest attack searches for the secret alone, by
/// representations, whatever the modulus: among all rotations of the secret it hopes for one within a window.
const WEIGHT_24: [(u32, u32); 2] = [(16, 100), (17, 100)];

/// Largest `log2(QP)` that keeps 128 bits of classical security.
///
/// # Errors
/// [`RlweError::NoBound`] if none is pinned for this distribution and degree.
pub fn maximum_log_qp(log_n: u32, secret: SecretDistribution) -> Result<u32, RlweError> {
    let table: &[(u32, u32)] = match secret {
        SecretDistribution::Ternary => &TERNARY,
        // More nonzero coefficients are not easier to find.
        SecretDistribution::Sparse { weight } if weight >= 192 => &WEIGHT_192,
        SecretDistribution::Sparse { weight } if weight >= 32 => &WEIGHT_32,
        SecretDistribution::Sparse { weight } if weight >= 24 => &WEIGHT_24,
        SecretDistribution::Sparse { .. } => &[],
    };
    table
        .iter()
        .find(|entry| entry.0 == log_n)
        .map(|entry| entry.1)
        .ok_or_else(|| RlweError::NoBound { secret: secret.to_string(), log_n })
}

/// Refuses a modulus above the bound.
///
/// # Errors
/// [`RlweError::Insecure`] naming `object`, the modulus and the bound, [`RlweError::NoBound`] if there is none.
pub fn require_secure(
    object: impl FnOnce() -> String,
    log_n: u32,
    log_qp: f64,
    secret: SecretDistribution,
) -> Result<(), RlweError> {
    let bound = maximum_log_qp(log_n, secret)?;
    // The table counts whole bits of a product; a modulus a hair above 2^bound is refused.
    if log_qp > f64::from(bound) {
        return Err(RlweError::Insecure {
            object: object(),
            log_qp,
            log_n,
            secret: secret.to_string(),
            bound,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_is_inclusive_and_named() {
        let check = |bits| require_secure(|| "a key".into(), 13, bits, SecretDistribution::Ternary);
        assert!(check(214.0).is_ok());
        let error = check(214.5).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("214.5") && text.contains("at most 214"), "{text}");
        assert!(matches!(
            maximum_log_qp(13, SecretDistribution::Sparse { weight: 192 }),
            Err(RlweError::NoBound { .. })
        ));
        assert!(matches!(
            maximum_log_qp(16, SecretDistribution::Sparse { weight: 23 }),
            Err(RlweError::NoBound { .. })
        ));
        assert!(matches!(
            maximum_log_qp(15, SecretDistribution::Sparse { weight: 31 }),
            Err(RlweError::NoBound { .. })
        ));
        assert_eq!(maximum_log_qp(16, SecretDistribution::Sparse { weight: 31 }), Ok(100));
        assert_eq!(maximum_log_qp(16, SecretDistribution::Sparse { weight: 64 }), Ok(121));
        assert_eq!(maximum_log_qp(16, SecretDistribution::Sparse { weight: 192 }), Ok(1474));
    }
}
