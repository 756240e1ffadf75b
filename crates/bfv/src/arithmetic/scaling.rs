//! The constants of a ciphertext multiplication, `round(t / Q a b)`, at one level.
//!
//! With `R` a product of auxiliary primes, no smaller than `Q` (Kim, Polyakov and Zucca, ePrint 2021/204):
//!
//! 1. The second operand is divided: `b' = round(R b / Q) = -[R b]_Q / Q` modulo `R`, and lifted to `Q R`.
//! 2. The first operand is lifted from `Q` to `Q R`, and the tensor product `x = a b'` is taken modulo `Q R`.
//! 3. `round(t x / R) = (t x - [t x]_R) / R` modulo `Q`.
//!
//! `x` need not be known over the integers: adding `Q R` to it adds `t Q` to the result. Lifts are exact and centred.
//! All factors are part of the conversions' constants, so they need no pass over memory: `b'` is kept as `-Q b'` modulo
//! `R` and as `t b' / R` modulo `Q`.

use keywright_ring::conversion::Column;
use keywright_ring::{Conversion, Modulus, Ring, ShoupFactor};
use keywright_rlwe::Parameters;

use super::plain_modulus::PlainModulus;

pub(crate) struct Scaling {
    /// Auxiliary primes in use.
    pub(crate) auxiliary_count: usize,
    /// `log2(R)`.
    pub(crate) log_r: f64,
    /// From `Q` to `R`.
    pub(crate) lift: Conversion,
    /// Per prime of `Q`, the factor of a row of `[R b]_Q`.
    pub(crate) divided_rows: Vec<ShoupFactor>,
    /// From `R` to `Q`.
    pub(crate) back: Conversion,
    /// Per prime of `R`, the factor of a row of `b'`, given as `-Q b'`.
    pub(crate) operand_rows: Vec<ShoupFactor>,
    /// Per prime of `R`, the factor of a row of `t x`, given as `-Q x`.
    pub(crate) product_rows: Vec<ShoupFactor>,
    /// Per prime of `Q`, the constants of `b'` times `t / R`.
    pub(crate) operand_columns: Vec<Column>,
    /// Per prime of `Q`, the constants of a remainder times `-1 / R`.
    pub(crate) remainder_columns: Vec<Column>,
}

fn product(moduli: &[Modulus], m: &Modulus) -> u64 {
    moduli.iter().fold(1, |acc, q| m.mul(acc, m.reduce(q.value())))
}

/// The constants of a conversion whose result is multiplied by `factor`.
fn scaled_column(column: &Column, factor: u64) -> Column {
    let m = column.modulus;
    let constants: Vec<u64> = column.constants.iter().map(|&c| m.mul(c, factor)).collect();
    let montgomery = if m.is_narrow() {
        constants.iter().map(|&c| m.reduce_u128(u128::from(c) << 52)).collect()
    } else {
        Vec::new()
    };
    Column { modulus: m, constants, montgomery }
}

impl Scaling {
    pub(crate) fn new(rlwe: &Parameters, auxiliary: &Ring, t: PlainModulus, level: usize) -> Self {
        let q = &rlwe.ring().moduli()[..=level];
        let log_q = rlwe.log2_q(level);
        let mut log_r = 0.0;
        let mut auxiliary_count = 0;
        for m in auxiliary.moduli() {
            if log_r >= log_q {
                break;
            }
            log_r += (m.value() as f64).log2();
            auxiliary_count += 1;
        }
        let r = &auxiliary.moduli()[..auxiliary_count];
        let (lift, back) = (Conversion::new(q, r), Conversion::new(r, q));
        let rows = |conversion: &Conversion, by: &dyn Fn(&Modulus) -> u64| -> Vec<ShoupFactor> {
            let sources = conversion.decomposer().sources().iter();
            sources.map(|s| s.modulus.shoup(s.modulus.mul(s.factor.value, by(&s.modulus)))).collect()
        };
        let columns = |by: &dyn Fn(&Modulus) -> u64| -> Vec<Column> {
            back.columns().iter().map(|column| scaled_column(column, by(&column.modulus))).collect()
        };
        let minus_q_inverse = |m: &Modulus| m.neg(m.inv(product(q, m)));
        let r_inverse = |m: &Modulus| m.inv(product(r, m));
        Self {
            auxiliary_count,
            log_r,
            divided_rows: rows(&lift, &|m| product(r, m)),
            operand_rows: rows(&back, &minus_q_inverse),
            product_rows: rows(&back, &|m| m.mul(minus_q_inverse(m), m.reduce(t.value()))),
            operand_columns: columns(&|m| m.mul(r_inverse(m), m.reduce(t.value()))),
            remainder_columns: columns(&|m| m.neg(r_inverse(m))),
            lift,
            back,
        }
    }
}
