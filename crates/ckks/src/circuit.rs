//! Parameters from the needs of a circuit.

use keywright_rlwe::{RlweError, SecretDistribution, noise, require_secure};

use crate::{CkksError, CkksLiteral, CkksParameters, ErrorEstimate, Packing};

/// Base-2 logarithms of the ring degrees that are tried.
const RINGS: std::ops::RangeInclusive<u32> = 12..=17;
/// Bits of the widest primes, including the special prime.
const WIDEST: u32 = 60;
/// Smallest scale in bits: below it there are too few primes.
const NARROWEST: u32 = 24;
/// The scale in bits at which the error of an encryption is looked up; it is the same at any other.
const PROBE: u32 = 40;
/// Bits above the largest result: for its sign, and for intermediate sums.
const ROOM: u32 = 2;

/// The needs of a circuit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circuit {
    /// Multiplicative depth: successive products, matrices and polynomials.
    pub depth: usize,
    /// Bits after the point of a fresh encryption, in all slots at once except with probability below `2^-40`.
    pub precision: u32,
    /// Values in a ciphertext.
    pub slots: usize,
    /// Largest absolute value of a result.
    pub magnitude: f64,
}

impl CkksParameters {
    /// The parameters of the smallest ring with this many levels, slots and bits at 128 bits of security, with one
    /// special prime.
    ///
    /// # Errors
    /// [`CkksError::Circuit`] for a number out of its bounds, [`CkksError::NoRing`] if no ring is large enough.
    pub fn for_circuit(circuit: &Circuit) -> Result<Self, CkksError> {
        let &Circuit { depth, precision, slots, magnitude } = circuit;
        let refused = |what, value: String, bounds| Err(CkksError::Circuit { what, value, bounds });
        if precision < 1 {
            return refused("precision", precision.to_string(), "it must be at least 1");
        }
        if slots < 1 {
            return refused("slots", slots.to_string(), "it must be at least 1");
        }
        if !(magnitude > 0.0 && magnitude < f64::from(WIDEST).exp2()) {
            return refused("magnitude", magnitude.to_string(), "it must be above 0 and below 2^60");
        }
        let log_slots = usize::BITS - (slots - 1).leading_zeros();
        let room = magnitude.log2().ceil().max(0.0) as u32 + ROOM;
        for log_n in RINGS.filter(|&log_n| log_slots < log_n) {
            let scale = f64::from(precision) + noise_bits(log_n, log_slots)?;
            let scale = (scale.ceil() as u32).max(NARROWEST);
            if scale.saturating_add(room) > WIDEST {
                break;
            }
            match with_scale(log_n, depth, scale, room) {
                Err(CkksError::Rlwe(RlweError::Insecure { .. })) => {}
                // There are too few primes of this width, or too many primes in all: a larger ring needs wider ones.
                Err(CkksError::Rlwe(_)) => break,
                other => return other,
            }
        }
        Err(CkksError::NoRing { depth, precision, slots, magnitude })
    }
}

/// A first prime with room for results, `depth` primes of the scale, and a special prime, within the bound for their
/// product.
fn with_scale(log_n: u32, depth: usize, scale: u32, room: u32) -> Result<CkksParameters, CkksError> {
    // Keys have all of the primes. Above the bound no list of primes is made.
    let bits = f64::from(scale) * (depth as f64 + 1.0) + f64::from(room + WIDEST);
    require_secure(|| "a key".into(), log_n, bits, SecretDistribution::Ternary)?;
    let mut widths = vec![scale; depth + 1];
    widths[0] += room;
    CkksParameters::new(CkksLiteral::from_bits(log_n, &widths, &[WIDEST], f64::from(scale))?)
}

/// The scale in bits that the error of an encryption with the public key requires.
fn noise_bits(log_n: u32, log_slots: u32) -> Result<f64, CkksError> {
    let literal = CkksLiteral::from_bits(log_n, &[PROBE + 10], &[PROBE + 10], f64::from(PROBE))?;
    let parameters = CkksParameters::new(literal)?;
    // Encoding rounds every coefficient to an integer.
    let variance = noise::fresh_public(parameters.rlwe()) + 1.0 / 12.0;
    let deviation = (variance * Packing::Slots { log_slots }.spread()).sqrt();
    Ok(ErrorEstimate { deviation, magnitude: 0.0, real: true }.bound().log2())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Circuit = Circuit { depth: 3, precision: 20, slots: 100, magnitude: 8.0 };

    #[test]
    fn the_smallest_ring_is_taken() {
        let parameters = CkksParameters::for_circuit(&NEEDS).unwrap();
        let scale = parameters.literal().log_scale as u32;
        assert_eq!(parameters.max_level(), 3);
        assert!(parameters.max_log_slots() >= 7);
        let smaller = parameters.rlwe().log_n() - 1;
        assert!(matches!(with_scale(smaller, 3, scale, 5), Err(CkksError::Rlwe(RlweError::Insecure { .. }))));
        let wide = CkksParameters::for_circuit(&Circuit { slots: 1 << 15, ..NEEDS }).unwrap();
        assert_eq!(wide.max_log_slots(), 15);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        for (needs, what) in [
            (Circuit { precision: 0, ..NEEDS }, "precision"),
            (Circuit { slots: 0, ..NEEDS }, "slots"),
            (Circuit { magnitude: f64::INFINITY, ..NEEDS }, "magnitude"),
            (Circuit { magnitude: -1.0, ..NEEDS }, "magnitude"),
        ] {
            let refused = CkksParameters::for_circuit(&needs);
            assert!(
                matches!(refused, Err(CkksError::Circuit { what: found, .. }) if found == what),
                "{needs:?}"
            );
        }
        for needs in [
            Circuit { depth: usize::MAX, ..NEEDS },
            Circuit { precision: u32::MAX, ..NEEDS },
            Circuit { slots: usize::MAX, ..NEEDS },
        ] {
            assert!(
                matches!(CkksParameters::for_circuit(&needs), Err(CkksError::NoRing { .. })),
                "{needs:?}"
            );
        }
    }
}
