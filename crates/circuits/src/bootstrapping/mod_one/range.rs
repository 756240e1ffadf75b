//! The size of the multiples of `q_0` that ModRaise adds.
//!
//! A ciphertext modulo `q_0`, read as integers `|c_0|, |c_1| <= q_0 / 2`, decrypts to `c_0 + c_1 s = m + q_0 I`.
//! With `u = c_1 s / q_0` and `m / q_0 = mu`, the equation `c_0 / q_0 = mu + I - u` and `|c_0| <= q_0 / 2` give
//!
//! ```text
//! |I| > K   =>   |u| >= K + 1/2 - |mu|.
//! ```
//!
//! `c_1` is computationally indistinguishable from uniform and independent of `s`. Each coefficient of `u` is therefore
//! a sum of `h` independent uniform variables on `[-1/2, 1/2]`, with `h` the Hamming weight of `s`: an Irwin-Hall
//! variable. Bossuat, Troncoso-Pastoriza and Hubaux (ePrint 2022/024, equation 1) bound `I + mu` by a sum of `h + 1`
//! variables, one of them for the rounding of `c_0`. Given the message, which is small, that variable is determined,
//! and the tail is the one above.
//!
//! `P(S_h <= x)` for the sum `S_h` of `h` uniform variables on `[0, 1]` is `sum_j B_(h+1)(x - j)`. Here `B_m` is the
//! density of `S_m`, a cardinal B-spline, computed from `B_1 = 1` on `[0, 1)` and
//!
//! ```text
//! (m - 1) B_m(x) = x B_(m-1)(x) + (m - x) B_(m-1)(x - 1),
//! ```
//!
//! a sum of nonnegative terms. Tails of any size therefore have a relative error of about `h 2^-52`.
//!
//! For messages up to 1/64:
//!
//! | h | failure per bootstrap of `2^16` coefficients | K |
//! |---|---|---|
//! | 32 | `2^-40` | 12 |
//! | 32 | `2^-128` | 15 |
//! | 32 | 0 | 16 |
//! | 192 | `2^-40` | 34 |

use crate::CircuitError;

/// `log2` of the probability that one coefficient has `|I| > k`, for a secret of Hamming weight `weight` and messages
/// with `|mu| <= message`, in units of `q_0`. Minus infinity if that is impossible.
pub fn log2_tail(weight: usize, k: usize, message: f64) -> f64 {
    let x = weight as f64 / 2.0 - (k as f64 + 0.5 - message);
    if x <= 0.0 {
        return f64::NEG_INFINITY;
    }
    // densities[j] = B_m(x - j): zero beyond x.
    let count = x.floor() as usize + 1;
    let mut densities = vec![0.0; count + 1];
    // B_1.
    densities[count - 1] = 1.0;
    for m in 2..=weight + 1 {
        for j in 0..count {
            let (point, m) = (x - j as f64, m as f64);
            densities[j] = (point * densities[j] + (m - point).max(0.0) * densities[j + 1]) / (m - 1.0);
        }
    }
    1.0 + densities.iter().sum::<f64>().log2()
}

/// The smallest `K` that bounds `|I|` in all `2^log_coefficients` coefficients of one bootstrap, except with
/// probability below `2^log2_failure`, for messages with `|mu| <= message`, in units of `q_0`.
///
/// # Errors
/// [`CircuitError::FailureProbability`] unless `log2_failure` is below 0; [`CircuitError::Count`] for a weight of 0 or
/// above [`MAX_WEIGHT`]. Dense secrets make `I` too large: switch to an ephemeral sparse secret first.
pub fn integer_part_bound(
    weight: usize,
    log_coefficients: u32,
    log2_failure: f64,
    message: f64,
) -> Result<usize, CircuitError> {
    if !(1..=MAX_WEIGHT).contains(&weight) {
        let what = "Hamming weight of the secret whose modulus is raised";
        return Err(CircuitError::Count { what, count: weight, min: 1, max: MAX_WEIGHT });
    }
    if log2_failure.is_nan() || log2_failure >= 0.0 {
        return Err(CircuitError::FailureProbability { log2: log2_failure });
    }
    let fails = |k: &usize| log2_tail(weight, *k, message) + f64::from(log_coefficients) >= log2_failure;
    Ok((0..weight).take_while(fails).count())
}

/// Largest weight that [`integer_part_bound`] accepts.
pub const MAX_WEIGHT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_few_variables_are_exact() {
        // One variable never reaches 1/2 with k = 0 and no message; with a message of 1/4 it does half of the time.
        assert_eq!(log2_tail(1, 0, 0.0), f64::NEG_INFINITY);
        assert!((log2_tail(1, 0, 0.25) + 1.0).abs() < 1e-14);
        // Two: P(|u| > 3/4) = (1/4)^2.
        assert!((log2_tail(2, 0, -0.25) + 4.0).abs() < 1e-14);
        // The Irwin-Hall formula at a point where it has one term: 2 x^h / h!, x = 1/2.
        let factorial: f64 = (1..=32).map(f64::from).map(f64::log2).sum();
        assert!((log2_tail(32, 15, 0.0) - (1.0 - 32.0 - factorial)).abs() < 1e-9);
        assert_eq!(log2_tail(32, 16, 0.25), f64::NEG_INFINITY);
    }

    #[test]
    fn tails_of_many_variables_are_normal_near_the_middle() {
        // P(|u| > 10.5) for 192 variables of variance 1/12 each: 10.5 / 4 deviations, 2 Q(2.625) = 0.008664.
        let tail = log2_tail(192, 10, 0.0).exp2();
        assert!((tail / 0.008_664 - 1.0).abs() < 0.01, "{tail}");
    }

    #[test]
    fn bounds_of_the_documentation() {
        for (weight, failure, k) in [(32, -40.0, 12), (32, -128.0, 15), (32, -1e9, 16), (192, -40.0, 34)] {
            assert_eq!(integer_part_bound(weight, 16, failure, 1.0 / 64.0).unwrap(), k, "{weight} {failure}");
        }
        assert!(matches!(integer_part_bound(0, 16, -40.0, 0.0), Err(CircuitError::Count { count: 0, .. })));
        assert!(matches!(integer_part_bound(1 << 15, 16, -40.0, 0.0), Err(CircuitError::Count { .. })));
        for log2 in [0.0, 1.0, f64::NAN] {
            let error = integer_part_bound(32, 16, log2, 0.0);
            assert!(matches!(error, Err(CircuitError::FailureProbability { .. })), "{log2}");
        }
    }
}
