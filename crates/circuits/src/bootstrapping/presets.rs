//! Named parameter sets, each with a matching bootstrapping.

use keywright_ckks::{CkksError, CkksLiteral, CkksParameters};
use keywright_rlwe::ParametersLiteral;

use super::plan::Iterations;
use super::plan::{BootstrapperLiteral, Order};
use super::stages::coeffs_to_slots::Values;
use super::transforms::KeyBudget;
use crate::CircuitError;

/// Parameters and their bootstrapping.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapPreset {
    /// The name: ring degree, bits of the largest key modulus, levels left and the bits of each.
    pub name: &'static str,
    /// `log2(N)`.
    pub log_n: u32,
    /// Widths of `q_0, q_1, ...` as runs `(bits, count)`: `q_0`, `slots_to_coeffs`, levels for computation,
    /// recombination, `eval_mod`, `coeffs_to_slots`.
    pub q: &'static [(u32, usize)],
    /// `q_0` itself, where the arithmetic of clients is made for one prime; `None` for the largest of its width.
    pub q_0: Option<u64>,
    /// Widths of the special primes.
    pub p: &'static [(u32, usize)],
    /// `log2` of the scale.
    pub log_scale: u32,
    /// The bootstrapping.
    pub bootstrapper: BootstrapperLiteral,
}

/// With `K` half of the ephemeral weight, bootstraps cannot fail.
const FULL: BootstrapperLiteral = BootstrapperLiteral {
    log_slots: 15,
    values: Values::Complex,
    order: Order::SlotsToCoeffsFirst,
    slots_to_coeffs: 3,
    coeffs_to_slots: 4,
    budget: KeyBudget::Bytes(1_500_000_000),
    stages_apart: false,
    keys: None,
    ephemeral_weight: Some(32),
    log2_failure: NEVER,
    log_ratio: 5.0,
    cosine_degree: 48,
    double_angles: 2,
    arcsine_degree: 7,
    iterations: None,
    output_level: None,
    input_log_n: None,
};

impl Default for BootstrapperLiteral {
    /// The choices that most presets share, for a full packing of complex values at `N = 2^16`.
    fn default() -> Self {
        FULL
    }
}

/// `log2` of a probability below that of every bootstrap that can fail: `K = 15` has `2^-130`, `K = 16` has 0.
const NEVER: f64 = -192.0;

/// A reduction without an arcsine, in 8 levels and 11 relinearizations: wide primes allow its large message ratio.
const WITHOUT_ARCSINE: BootstrapperLiteral =
    BootstrapperLiteral { log_ratio: 11.5, cosine_degree: 50, arcsine_degree: 1, ..FULL };

/// The same with an ephemeral secret of weight 24, beyond whose half, `K = 12`, nothing reaches: 7 levels.
const SPARSER: BootstrapperLiteral = BootstrapperLiteral {
    ephemeral_weight: Some(24),
    cosine_degree: 60,
    double_angles: 1,
    ..WITHOUT_ARCSINE
};

/// 9 levels of 45 bits.
const BALANCED: BootstrapPreset = BootstrapPreset {
    name: "N16_QP1732_L9_S45",
    log_n: 16,
    q: &[(50, 1), (36, 3), (45, 9), (49, 5), (60, 1), (49, 1), (50, 1), (60, 1), (59, 1), (50, 1), (49, 4)],
    q_0: None,
    p: &[(50, 8)],
    log_scale: 45,
    bootstrapper: FULL,
};

/// 15 levels of 40 bits: 600 in all.
const LONG: BootstrapPreset = BootstrapPreset {
    name: "N16_QP1745_L15_S40",
    log_n: 16,
    q: &[(50, 1), (31, 3), (40, 15), (57, 4), (60, 4), (46, 4)],
    q_0: None,
    p: &[(50, 7)],
    log_scale: 40,
    bootstrapper: WITHOUT_ARCSINE,
};

/// 13 levels of 40 bits for the least work for each: special primes beyond the bound at the top serve lower levels.
const FRUGAL: BootstrapPreset = BootstrapPreset {
    name: "N16_QP1716_L13_S40",
    q: &[(50, 1), (31, 3), (40, 13), (57, 3), (60, 4), (46, 4)],
    p: &[(50, 11)],
    bootstrapper: SPARSER,
    ..LONG
};

/// Primes by which thin clients reduce with shifts and additions (Aikata, Krieger and Sinha Roy, section 3.3).
const THIN_30: u64 = (1 << 30) - (1 << 18) + 1;
const THIN_60: u64 = (1 << 60) - (1 << 18) + 1;

/// The shipped sets. Every key is 128-bit secure by the bound for its secret.
pub const BOOTSTRAP_PRESETS: [BootstrapPreset; 18] = [
    BALANCED,
    BootstrapPreset {
        name: "N16_QP1732_L9_S45_few_keys",
        bootstrapper: BootstrapperLiteral { budget: KeyBudget::Bytes(500_000_000), ..FULL },
        ..BALANCED
    },
    BootstrapPreset {
        name: "N16_QP1732_L9_S45_real",
        bootstrapper: BootstrapperLiteral { values: Values::Real, ..FULL },
        ..BALANCED
    },
    BootstrapPreset {
        name: "N16_QP1734_L9_S45_half",
        q: &[(50, 1), (36, 3), (45, 10), (50, 5), (60, 1), (50, 2), (60, 1), (59, 1), (50, 1), (49, 3)],
        bootstrapper: BootstrapperLiteral { log_slots: 14, coeffs_to_slots: 3, ..FULL },
        ..BALANCED
    },
    BootstrapPreset {
        name: "N16_QP1605_L10_S40",
        q: &[(50, 1), (31, 3), (40, 10), (57, 4), (60, 4), (48, 4)],
        p: &[(50, 9)],
        ..LONG
    },
    // Two factors of slots_to_coeffs: every level of a network has a prime fewer.
    BootstrapPreset {
        name: "N16_QP1743_L12_S40_real",
        q: &[(50, 1), (31, 2), (40, 12), (56, 4), (59, 4), (47, 4)],
        p: &[(50, 11)],
        bootstrapper: BootstrapperLiteral {
            values: Values::Real,
            slots_to_coeffs: 2,
            log_ratio: 11.75,
            cosine_degree: 48,
            ..WITHOUT_ARCSINE
        },
        ..LONG
    },
    LONG,
    BootstrapPreset {
        name: "N16_QP1745_L15_S40_real",
        bootstrapper: BootstrapperLiteral { values: Values::Real, ..WITHOUT_ARCSINE },
        ..LONG
    },
    FRUGAL,
    BootstrapPreset {
        name: "N16_QP1716_L13_S40_real",
        bootstrapper: BootstrapperLiteral { values: Values::Real, ..SPARSER },
        ..FRUGAL
    },
    BootstrapPreset {
        name: "N16_QP1746_L16_S50",
        q: &[(51, 1), (32, 3), (50, 16), (50, 6), (59, 1), (60, 1), (50, 1), (43, 3)],
        p: &[(51, 1), (50, 3)],
        log_scale: 50,
        bootstrapper: BootstrapperLiteral {
            log2_failure: -40.0,
            coeffs_to_slots: 3,
            budget: KeyBudget::Bytes(3_000_000_000),
            log_ratio: 7.0,
            cosine_degree: 60,
            double_angles: 1,
            arcsine_degree: 3,
            ..FULL
        },
        ..BALANCED
    },
    BootstrapPreset {
        name: "N16_QP1729_L12_S50_two_passes",
        q: &[(51, 1), (36, 3), (50, 12), (50, 4), (59, 1), (60, 1), (50, 1), (50, 4)],
        p: &[(51, 1), (50, 7)],
        log_scale: 50,
        bootstrapper: BootstrapperLiteral {
            log2_failure: -40.0,
            log_ratio: 10.0,
            cosine_degree: 60,
            double_angles: 1,
            arcsine_degree: 1,
            iterations: Some(Iterations { count: 2, log_precision: 16 }),
            ..FULL
        },
        ..BALANCED
    },
    BootstrapPreset {
        name: "N16_QP1728_L7_S55",
        q: &[(60, 1), (46, 3), (55, 7), (61, 11), (58, 3)],
        p: &[(60, 5)],
        log_scale: 55,
        bootstrapper: BootstrapperLiteral { coeffs_to_slots: 3, log_ratio: 5.3, cosine_degree: 54, ..FULL },
        ..BALANCED
    },
    BootstrapPreset {
        name: "N15_QP861_L3_S37",
        log_n: 15,
        q: &[(46, 1), (33, 2), (37, 3), (51, 4), (54, 4), (42, 3)],
        q_0: None,
        p: &[(46, 2)],
        log_scale: 37,
        bootstrapper: BootstrapperLiteral {
            log_slots: 14,
            slots_to_coeffs: 2,
            coeffs_to_slots: 3,
            budget: KeyBudget::Bytes(700_000_000),
            log_ratio: 10.0,
            ..WITHOUT_ARCSINE
        },
    },
    BootstrapPreset {
        name: "N15_QP858_L5_S32_real",
        log_n: 15,
        q: &[(42, 1), (31, 2), (32, 5), (47, 8), (40, 2)],
        q_0: None,
        p: &[(46, 3)],
        log_scale: 32,
        bootstrapper: BootstrapperLiteral {
            log_slots: 14,
            values: Values::Real,
            slots_to_coeffs: 2,
            coeffs_to_slots: 2,
            budget: KeyBudget::Bytes(150_000_000),
            log_ratio: 10.0,
            ..WITHOUT_ARCSINE
        },
    },
    BootstrapPreset {
        name: "N17_QP3361_L24_S50",
        log_n: 17,
        q: &[(55, 1), (41, 3), (50, 24), (54, 5), (60, 1), (54, 2), (60, 2), (54, 5)],
        q_0: None,
        p: &[(55, 21)],
        log_scale: 50,
        bootstrapper: BootstrapperLiteral {
            log_slots: 16,
            budget: KeyBudget::Bytes(4_000_000_000),
            cosine_degree: 50,
            ..FULL
        },
    },
    // Of thin clients: the message is a wide part of a narrow q_0, so that the error of encryption is small beside it.
    BootstrapPreset {
        name: "N16_QP1737_L15_S35_q30",
        log_n: 16,
        q: &[(30, 1), (31, 3), (35, 15), (47, 11), (43, 4)],
        q_0: Some(THIN_30),
        p: &[(50, 8)],
        log_scale: 35,
        bootstrapper: BootstrapperLiteral { log_ratio: 3.5, ..FULL },
    },
    BootstrapPreset {
        name: "N16_QP1702_L9_S45_q60",
        log_n: 16,
        q: &[
            (60, 1),
            (36, 3),
            (45, 9),
            (49, 5),
            (60, 1),
            (49, 1),
            (50, 1),
            (60, 1),
            (59, 1),
            (50, 1),
            (49, 4),
        ],
        q_0: Some(THIN_60),
        p: &[(60, 6)],
        ..BALANCED
    },
];

/// The preset of that name.
///
/// # Errors
/// [`CkksError::UnknownPreset`] listing all names.
pub fn bootstrap_preset(name: &str) -> Result<BootstrapPreset, CkksError> {
    BOOTSTRAP_PRESETS.iter().find(|p| p.name == name).cloned().ok_or_else(|| CkksError::UnknownPreset {
        name: name.into(),
        known: BOOTSTRAP_PRESETS.map(|p| p.name).join(", "),
    })
}

impl BootstrapPreset {
    /// The literal, with its primes chosen.
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError::Ring`] if there are not enough primes.
    pub fn literal(&self) -> Result<CkksLiteral, CircuitError> {
        let mut rlwe = ParametersLiteral::from_runs(self.log_n, self.q, self.p)?;
        if let Some(q_0) = self.q_0 {
            // Another place that has this prime takes the one that was chosen for `q_0`.
            let chosen = std::mem::replace(&mut rlwe.q[0], q_0);
            rlwe.q[1..].iter_mut().chain(&mut rlwe.p).filter(|p| **p == q_0).for_each(|p| *p = chosen);
        }
        Ok(CkksLiteral { rlwe, log_scale: f64::from(self.log_scale) })
    }

    /// The parameters with all precomputed tables.
    ///
    /// # Errors
    /// As [`CkksParameters::new`].
    pub fn parameters(&self) -> Result<CkksParameters, CircuitError> {
        Ok(CkksParameters::new(self.literal()?)?)
    }
}
