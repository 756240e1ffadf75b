//! Roots of unity, each rounded once from double-double.

use super::double_double::DoubleDouble;

/// `2 pi` to 106 bits.
const TWO_PI: DoubleDouble = DoubleDouble { hi: std::f64::consts::TAU, lo: 2.449_293_598_294_706_4e-16 };
/// Terms of the Taylor series: below an angle of `pi/4` the first one left out is below `2^-110`.
const TERMS: u32 = 15;

/// A complex number in double-double.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) re: DoubleDouble,
    pub(crate) im: DoubleDouble,
}

impl Root {
    pub(crate) fn mul(self, other: Self) -> Self {
        Self {
            re: self.re.mul(other.re).add(self.im.mul(other.im).neg()),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }
}

/// Cosine and sine of `2 pi x` for `0 <= x <= 1/8`.
fn first_octant(x: f64) -> Root {
    let angle = TWO_PI.mul(DoubleDouble::from_f64(x));
    let square = angle.mul(angle).neg();
    let one = DoubleDouble::from_f64(1.0);
    let (mut re, mut im) = (one, one);
    for k in (1..=TERMS).rev() {
        let k = f64::from(2 * k);
        re = one.add(square.mul(re).mul(DoubleDouble::reciprocal(k * (k - 1.0))));
        im = one.add(square.mul(im).mul(DoubleDouble::reciprocal(k * (k + 1.0))));
    }
    Root { re, im: im.mul(angle) }
}

/// `exp(2 pi i e / 2^log_order)`, by symmetry from the first octant; `log_order >= 3`.
fn direct(e: u64, log_order: u32) -> Root {
    let order = 1u64 << log_order;
    let (quarter, mut rest) = (e % order / (order / 4), e % (order / 4));
    let mirrored = rest > order / 8;
    if mirrored {
        rest = order / 4 - rest;
    }
    let Root { mut re, mut im } = first_octant(rest as f64 / order as f64);
    if mirrored {
        (re, im) = (im, re);
    }
    match quarter {
        0 => Root { re, im },
        1 => Root { re: im.neg(), im: re },
        2 => Root { re: re.neg(), im: im.neg() },
        _ => Root { re: im, im: re.neg() },
    }
}

/// All powers of `exp(2 pi i / 2^log_order)`, as products of one entry of each of two tables.
pub(crate) struct Roots {
    log_order: u32,
    fine_bits: u32,
    coarse: Vec<Root>,
    fine: Vec<Root>,
}

impl Roots {
    /// Takes about `2^(log_order / 2)` evaluations of the series; `log_order >= 3`.
    pub(crate) fn new(log_order: u32) -> Self {
        let fine_bits = log_order / 2;
        let coarse = (0..1 << (log_order - fine_bits)).map(|e| direct(e << fine_bits, log_order)).collect();
        let fine = (0..1 << fine_bits).map(|e| direct(e, log_order)).collect();
        Self { log_order, fine_bits, coarse, fine }
    }

    /// `exp(2 pi i e / 2^log_order)`, with an error below `2^-98` in each part.
    pub(crate) fn get(&self, e: u64) -> Root {
        let e = e & ((1 << self.log_order) - 1);
        let (high, low) = (e >> self.fine_bits, e & ((1 << self.fine_bits) - 1));
        self.coarse[high as usize].mul(self.fine[low as usize])
    }
}
