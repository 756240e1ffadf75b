//! Residue systems and big integers.

use keywright_ring::conversion::{FRACTION_BITS, SPLIT_BITS};
use num_bigint::BigInt;

fn product(moduli: &[u64]) -> BigInt {
    moduli.iter().map(|&q| BigInt::from(q)).product()
}

/// `x mod q` in `[0, q)`.
pub fn residue(x: &BigInt, q: u64) -> u64 {
    let q = BigInt::from(q);
    let r = ((x % &q) + &q) % &q;
    r.iter_u64_digits().next().unwrap_or(0)
}

/// The integer in `(-Q/2, Q/2]` with the given residues, by the Chinese remainder theorem.
pub fn from_residues(residues: &[u64], moduli: &[u64]) -> BigInt {
    let whole = product(moduli);
    let sum: BigInt = residues
        .iter()
        .zip(moduli)
        .map(|(&r, &q)| {
            let cofactor = &whole / q;
            let inverse = super::pow(residue(&cofactor, q), q - 2, q);
            cofactor * super::mul(r, inverse, q)
        })
        .sum();
    let x = sum % &whole;
    if &x * 2 > whole { x - whole } else { x }
}

/// `sum_i y_i (Q/q_i) - v Q` of one column of terms: the integer that conversion takes to other moduli.
pub fn term_value(terms: &[u64], moduli: &[u64]) -> BigInt {
    let whole = product(moduli);
    let mut terms = terms.iter().copied();
    let mut next = || BigInt::from(terms.next().unwrap_or_default());
    let mut value = BigInt::ZERO;
    for &q in moduli {
        let low = next();
        let y = if q >> 50 == 0 { low } else { low + (next() << SPLIT_BITS) };
        value += y * (&whole / q);
    }
    value - next() * whole
}

/// Distance from `Q/2` within which the quotient may round the other way: `Q terms 2^(1 - F)`.
pub fn rounding_margin(terms: usize, moduli: &[u64]) -> BigInt {
    (product(moduli) * terms) >> (FRACTION_BITS - 1)
}
