use core::fmt;

use keywright_rlwe::noise::PRODUCT_TAIL;
use keywright_rlwe::{KeyIdentity, RlweCiphertext};

use crate::{CkksParameters, Magnitude};

/// The places of a message's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// `2^log_slots` complex values in the slots of the canonical embedding (of a subring, if fewer than `N/2`).
    Slots {
        /// `log2` of their number.
        log_slots: u32,
    },
    /// Real values in the coefficients.
    Coefficients,
}

impl Packing {
    /// The number of coefficient errors that add up in one value: the degree of the subring for slots, one for
    /// coefficients.
    pub fn spread(self) -> f64 {
        match self {
            Self::Slots { log_slots } => 2.0 * f64::from(log_slots).exp2(),
            Self::Coefficients => 1.0,
        }
    }

    /// Error of one encoding or decoding in `f64`, relative to the largest value: root mean square over the values, see
    /// [`crate::encoder`].
    pub fn arithmetic(self) -> f64 {
        let steps = match self {
            Self::Slots { log_slots } => 4.0 * f64::from(log_slots) + 2.0,
            Self::Coefficients => 1.0,
        };
        steps * f64::EPSILON / 2.0
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots { log_slots } => write!(f, "{} slots", 1u64 << log_slots),
            Self::Coefficients => f.write_str("coefficients"),
        }
    }
}

/// Bounds on a ciphertext's values that hold without decryption, in units of the message.
///
/// Deviations of dependent errors are added, not their squares, so the estimate is an upper bound for any dependencies.
/// Magnitudes multiply and add as in the worst case. Rounding errors of a plaintext count as independent of each other,
/// coefficient by coefficient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorEstimate {
    /// Standard deviation of the error of one value.
    pub deviation: f64,
    /// Bound on the absolute value of every value. It follows from declarations and operations, never from a message.
    pub magnitude: f64,
    /// Whether all values are real, so that imaginary parts are errors. Values in coefficients always are.
    pub real: bool,
}

impl ErrorEstimate {
    /// The weakest estimate: a bound that exceeds all numbers becomes the largest number.
    #[must_use]
    pub fn saturated(self) -> Self {
        let finite = |x: f64| if x.is_nan() { f64::MAX } else { x.min(f64::MAX) };
        Self { deviation: finite(self.deviation), magnitude: finite(self.magnitude), ..self }
    }

    /// Bound on the error of all values at once, except with probability below `2^-40`: [`PRODUCT_TAIL`] deviations.
    pub fn bound(&self) -> f64 {
        PRODUCT_TAIL * self.deviation
    }

    /// Bits of precision after the point by the bound.
    pub fn precision_bits(&self) -> f64 {
        -self.bound().log2()
    }

    /// The estimate of a sum.
    pub fn plus(self, other: Self) -> Self {
        let (deviation, magnitude) = (self.deviation + other.deviation, self.magnitude + other.magnitude);
        Self { deviation, magnitude, real: self.real && other.real }.saturated()
    }

    /// The estimate of a message that is read at another scale than its own, which is `ratio` times that one.
    #[must_use]
    pub fn misread(self, ratio: f64) -> Self {
        let deviation = self.deviation + (ratio - 1.0).abs() * self.magnitude / PRODUCT_TAIL;
        Self { deviation, ..self }.saturated()
    }

    /// The estimate of a product, value by value, with a factor whose error has no parts between the coefficients of a
    /// sparse packing, such as a constant. If both errors are as large as their bounds, so is their product.
    pub fn times(self, other: Self) -> Self {
        Self {
            deviation: self.magnitude * other.deviation
                + other.magnitude * self.deviation
                + PRODUCT_TAIL * self.deviation * other.deviation,
            magnitude: self.magnitude * other.magnitude,
            real: self.real && other.real,
        }
        .saturated()
    }

    /// The estimate with an added independent error of the given deviation.
    pub fn with_noise(self, deviation: f64) -> Self {
        Self { deviation: self.deviation.hypot(deviation), ..self }.saturated()
    }
}

/// An encrypted message.
#[derive(Clone)]
pub struct Ciphertext {
    /// Parameters of the ciphertext.
    pub parameters: CkksParameters,
    /// The RLWE ciphertext.
    pub rlwe: RlweCiphertext,
    /// Factor by which the message is scaled.
    pub scale: f64,
    /// The places of its values.
    pub packing: Packing,
    /// The estimate of its error.
    pub estimate: ErrorEstimate,
}

impl Ciphertext {
    /// Level: the number of rescalings left.
    pub fn level(&self) -> usize {
        self.rlwe.level()
    }

    /// Degree in the secret: 1, or 2 after a product that was not relinearized.
    pub fn degree(&self) -> usize {
        self.rlwe.degree()
    }

    /// The identity of the secret that encrypts it.
    pub fn key(&self) -> KeyIdentity {
        self.rlwe.key
    }

    /// `log2` of the largest coefficient that its values and their error can cause.
    pub(crate) fn log2_largest(&self) -> f64 {
        ((self.estimate.magnitude + self.estimate.bound()) * self.scale).log2()
    }

    /// Bound on the error of all values at once as they are decrypted: [`ErrorEstimate::bound`], and the error of
    /// decoding in `f64`. Infinite if values as large as the estimate allows do not fit the modulus: they may have
    /// overflowed.
    pub fn error_bound(&self) -> f64 {
        let fits = self.log2_largest() < self.parameters.rlwe().log2_q(self.level()) - 1.0;
        if fits { self.decrypted_bound() } else { f64::INFINITY }
    }

    /// [`Self::error_bound`] of values that have not overflowed.
    pub(crate) fn decrypted_bound(&self) -> f64 {
        self.estimate.bound() + PRODUCT_TAIL * self.packing.arithmetic() * self.estimate.magnitude
    }

    /// The same ciphertext with this bound on its values. The caller vouches for it: error bounds rest on it.
    #[must_use]
    pub fn declared(mut self, magnitude: Magnitude) -> Self {
        self.estimate.magnitude = magnitude.get();
        self
    }

    /// The same ciphertext of values that are real, so that imaginary parts are errors. The caller vouches for it.
    #[must_use]
    pub fn declared_real(mut self) -> Self {
        self.estimate.real = true;
        self
    }

    /// Bytes of its residues.
    pub fn bytes(&self) -> usize {
        self.rlwe.bytes()
    }

    /// All fields but the polynomials, for a result with its own.
    pub(crate) fn clone_header(&self) -> Self {
        Self {
            parameters: self.parameters.clone(),
            rlwe: RlweCiphertext { polys: Vec::new(), key: self.rlwe.key },
            scale: self.scale,
            packing: self.packing,
            estimate: self.estimate,
        }
    }

    /// The estimate of this ciphertext times another operand of the same packing, as polynomials.
    ///
    /// Slots multiply one by one. With `2n < N` coefficients in use, a slot of the product of two errors is the mean of
    /// the `N/2n` products at the roots of unity above it. Each of these is a product of errors with all `N`
    /// coefficients, so their sum has `sqrt(N/2n)` times the deviation that the errors in the slots suggest. In
    /// coefficients the product is a negacyclic convolution: `N` terms per value.
    pub(crate) fn estimate_times(&self, other: ErrorEstimate) -> ErrorEstimate {
        let n = self.parameters.rlwe().n() as f64;
        let product = self.estimate.times(other);
        match self.packing {
            Packing::Slots { .. } => {
                let outside = (n / self.packing.spread()).sqrt() - 1.0;
                let second = PRODUCT_TAIL * outside * self.estimate.deviation * other.deviation;
                ErrorEstimate { deviation: product.deviation + second, ..product }.saturated()
            }
            Packing::Coefficients => {
                let (deviation, magnitude) = (n * product.deviation, n * product.magnitude);
                ErrorEstimate { deviation, magnitude, real: true }.saturated()
            }
        }
    }

    /// A coefficient error of this variance as a deviation in units of the message.
    pub fn deviation_of(&self, variance: f64) -> f64 {
        (variance * self.packing.spread()).sqrt() / self.scale
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(level {}, degree {}, scale 2^{:.3}, {}, {:.1} bits)",
            self.level(),
            self.degree(),
            self.scale.log2(),
            self.packing,
            -self.error_bound().log2()
        )
    }
}
