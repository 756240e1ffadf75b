//! Definitions, computed as written: slow, without lazy ranges, with `u128` remainders and big integers.

mod conversion;
mod transform;

pub use conversion::{from_residues, residue, rounding_margin, term_value};
pub use transform::{automorphism, evaluate_all, negacyclic_product, primitive_root};

/// `a * b mod q` by the remainder instruction.
pub fn mul(a: u64, b: u64, q: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(q)) as u64
}

/// `a + b mod q`.
pub fn add(a: u64, b: u64, q: u64) -> u64 {
    ((u128::from(a) + u128::from(b)) % u128::from(q)) as u64
}

/// `a - b mod q` for `b < q`.
pub fn sub(a: u64, b: u64, q: u64) -> u64 {
    add(a, q - b, q)
}

/// `base^exponent mod q`.
pub fn pow(base: u64, exponent: u64, q: u64) -> u64 {
    (0..64).rev().fold(1 % q, |acc, bit| {
        let square = mul(acc, acc, q);
        if exponent >> bit & 1 == 1 { mul(square, base, q) } else { square }
    })
}
