use keywright_ring::ntt_primes;
use keywright_rlwe::{ParametersLiteral, RlweError};

use crate::{BfvError, BfvLiteral, BfvParameters};

/// A named parameter set with slots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// The name: ring degree, bits of the largest key modulus, bits of the plaintext modulus.
    pub name: &'static str,
    /// `log2(N)`.
    pub log_n: u32,
    /// Widths of `q_0, q_1, ...`; runs as `(bits, count)`.
    pub q: &'static [(u32, usize)],
    /// Widths of the special primes.
    pub p: &'static [(u32, usize)],
    /// Bits of the plaintext modulus: the largest prime of that width that is 1 modulo `2N`.
    pub t_bits: u32,
}

/// The shipped parameter sets, 128-bit secure for every key that uses all special primes at the top level or below. The
/// noise estimate determines their multiplicative depth ([`crate::NoiseEstimate`]).
pub const PRESETS: [Preset; 4] = [
    Preset { name: "N12_QP106_T17", log_n: 12, q: &[(35, 2)], p: &[(36, 1)], t_bits: 17 },
    Preset { name: "N13_QP214_T20", log_n: 13, q: &[(43, 3), (42, 1)], p: &[(43, 1)], t_bits: 20 },
    Preset { name: "N14_QP430_T20", log_n: 14, q: &[(48, 7), (46, 1)], p: &[(48, 1)], t_bits: 20 },
    Preset { name: "N15_QP860_T20", log_n: 15, q: &[(50, 14), (40, 1)], p: &[(40, 3)], t_bits: 20 },
];

/// The preset of that name.
///
/// # Errors
/// [`BfvError::UnknownPreset`] listing all names.
pub fn preset(name: &str) -> Result<Preset, BfvError> {
    PRESETS.iter().find(|p| p.name == name).copied().ok_or_else(|| BfvError::UnknownPreset {
        name: name.into(),
        known: PRESETS.map(|p| p.name).join(", "),
    })
}

impl Preset {
    /// The literal, with its primes chosen.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if there are not enough primes.
    pub fn literal(&self) -> Result<BfvLiteral, RlweError> {
        let plaintext_modulus = ntt_primes(self.log_n, self.t_bits, 1, &[])?[0];
        Ok(BfvLiteral { rlwe: ParametersLiteral::from_runs(self.log_n, self.q, self.p)?, plaintext_modulus })
    }
}

impl BfvParameters {
    /// A preset by name.
    ///
    /// # Errors
    /// [`BfvError::UnknownPreset`].
    pub fn preset(name: &str) -> Result<Self, BfvError> {
        Self::new(preset(name)?.literal()?)
    }
}
