use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::AddAssign;

use keywright_ckks::Complex64;
use keywright_ckks::encoder::{Embedding, EncoderError, Integers};

use crate::CircuitError;

/// A matrix on the slots, given by its diagonals: diagonal `r` is `M[k, (k + r) mod slots]`.
#[derive(Debug, Clone, Copy)]
pub enum Diagonals<'a> {
    /// Each diagonal with one value per slot.
    Slots(&'a BTreeMap<usize, Vec<Complex64>>),
    /// Real diagonals that repeat: row `i` of `values`, of `period` values, is that of index `indices[i]`.
    Rows {
        /// Index of each diagonal.
        indices: &'a [usize],
        /// The rows, one after the other.
        values: &'a [f64],
        /// Values of a row, a power of two up to the number of slots.
        period: usize,
    },
}

impl<'a> From<&'a BTreeMap<usize, Vec<Complex64>>> for Diagonals<'a> {
    fn from(diagonals: &'a BTreeMap<usize, Vec<Complex64>>) -> Self {
        Self::Slots(diagonals)
    }
}

/// The nonzero diagonals of a matrix, row by row; the first one for a zero matrix.
///
/// # Errors
/// [`CircuitError::MatrixShape`] for no rows or columns, or more than slots.
pub fn diagonals_of(
    values: &[Complex64],
    columns: usize,
    slots: usize,
) -> Result<BTreeMap<usize, Vec<Complex64>>, CircuitError> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    if rows == 0 || rows > slots || columns > slots {
        return Err(CircuitError::MatrixShape { rows, columns, slots });
    }
    let zeros = || vec![Complex64::ZERO; slots];
    let mut diagonals = BTreeMap::new();
    for (i, row) in values.chunks_exact(columns).enumerate() {
        for (j, &value) in row.iter().enumerate().filter(|(_, value)| **value != Complex64::ZERO) {
            let diagonal: &mut Vec<Complex64> =
                diagonals.entry((j + slots - i) % slots).or_insert_with(zeros);
            diagonal[i] = value;
        }
    }
    if diagonals.is_empty() {
        diagonals.insert(0, zeros());
    }
    Ok(diagonals)
}

/// One diagonal over its smallest period, a power of two.
pub(crate) enum Diagonal<'a> {
    Real(Cow<'a, [f64]>),
    Complex(Cow<'a, [Complex64]>),
}

impl<'a> Diagonals<'a> {
    /// The diagonals by index, with indices reduced and coinciding ones summed: all [`Diagonal::Real`], or none.
    ///
    /// # Errors
    /// [`CircuitError::DiagonalLength`], [`CircuitError::DiagonalPeriod`], [`CircuitError::NotFinite`].
    pub(crate) fn checked(self, slots: usize) -> Result<BTreeMap<usize, Diagonal<'a>>, CircuitError> {
        match self {
            Self::Slots(diagonals) => {
                let length = |(&index, values): (&usize, &Vec<Complex64>)| match values.len() == slots {
                    true => Ok(()),
                    false => {
                        Err(CircuitError::DiagonalLength { index, found: values.len(), expected: slots })
                    }
                };
                diagonals.iter().try_for_each(length)?;
                let rows = diagonals.iter().map(|(&index, values)| (index, &values[..]));
                let bad = |values: &[Complex64]| {
                    values.iter().flat_map(|v| [v.re, v.im]).find(|part| !part.is_finite())
                };
                let vectors = by_index(rows, slots, bad)?;
                let real = vectors.values().flat_map(|values| values.iter()).all(|value| value.im == 0.0);
                let diagonal = |values: Cow<'a, [Complex64]>| match real {
                    true => Diagonal::Real(values.iter().map(|value| value.re).collect()),
                    false => Diagonal::Complex(values),
                };
                Ok(vectors.into_iter().map(|(r, values)| (r, diagonal(values))).collect())
            }
            Self::Rows { indices, values, period } => {
                if !period.is_power_of_two() || period > slots {
                    return Err(CircuitError::DiagonalPeriod { period, slots });
                }
                if values.len() / period != indices.len() || !values.len().is_multiple_of(period) {
                    let found = values.len() / indices.len().max(1);
                    let index = indices.first().copied().unwrap_or(0);
                    return Err(CircuitError::DiagonalLength { index, found, expected: period });
                }
                let rows = indices.iter().copied().zip(values.chunks_exact(period));
                // Only infinities and NaN have an absolute value that is not below infinity.
                let bad = |values: &[f64]| {
                    let largest = values.iter().fold(0, |acc, v| v.abs().to_bits().max(acc));
                    (largest >= f64::INFINITY.to_bits())
                        .then(|| values.iter().copied().find(|v| !v.is_finite()))
                        .flatten()
                };
                Ok(by_index(rows, slots, bad)?.into_iter().map(|(r, v)| (r, Diagonal::Real(v))).collect())
            }
        }
    }
}

type Vectors<'a, V> = BTreeMap<usize, Cow<'a, [V]>>;

fn by_index<'a, V: Copy + PartialEq + AddAssign>(
    rows: impl Iterator<Item = (usize, &'a [V])>,
    slots: usize,
    bad: impl Fn(&[V]) -> Option<f64>,
) -> Result<Vectors<'a, V>, CircuitError> {
    let mut out: Vectors<'a, V> = BTreeMap::new();
    for (index, values) in rows {
        if let Some(value) = bad(values) {
            return Err(CircuitError::NotFinite { what: "diagonal", index, value });
        }
        match out.get_mut(&(index % slots)) {
            Some(sum) => sum.to_mut().iter_mut().zip(values).for_each(|(s, v)| *s += *v),
            None => {
                out.insert(index % slots, Cow::Borrowed(values));
            }
        }
    }
    for values in out.values_mut() {
        let period = least_period(values);
        match values {
            Cow::Borrowed(values) => *values = &values[..period],
            Cow::Owned(values) => values.truncate(period),
        }
    }
    Ok(out)
}

/// The smallest power of two that is a period.
fn least_period<V: PartialEq>(values: &[V]) -> usize {
    let mut period = values.len();
    while period > 1 && values[..period / 2] == values[period / 2..period] {
        period /= 2;
    }
    period
}

impl Diagonal<'_> {
    /// Its number of values.
    pub(crate) fn period(&self) -> usize {
        match self {
            Self::Real(values) => values.len(),
            Self::Complex(values) => values.len(),
        }
    }

    /// Whether all values are real.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Real(_))
    }

    /// The squares of its absolute values.
    pub(crate) fn squares(&self) -> Vec<f64> {
        match self {
            Self::Real(values) => values.iter().map(|v| v * v).collect(),
            Self::Complex(values) => values.iter().map(|v| v.norm_sqr()).collect(),
        }
    }

    /// The coefficients of the diagonal rotated by `-step`: `out[k] = in[k - step]`.
    pub(crate) fn encode(
        &self,
        embedding: &Embedding,
        step: usize,
        scale: f64,
    ) -> Result<Integers, EncoderError> {
        let period = self.period();
        let first = (period - step % period) % period;
        let log_slots = period.trailing_zeros();
        match self {
            Self::Real(values) => {
                let rotated = [&values[first..], &values[..first]].concat();
                Integers::real_slots(embedding, &rotated, log_slots, scale)
            }
            Self::Complex(values) => {
                let rotated = [&values[first..], &values[..first]].concat();
                Integers::slots(embedding, &rotated, log_slots, scale)
            }
        }
    }
}
