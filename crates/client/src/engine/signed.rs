//! The forward transform modulo a prime below `2^30` in signed words, two layers at a time: for a machine with a dozen
//! registers and an instruction that multiplies 32-bit words to 64 bits and adds to the product.
//!
//! # Ranges
//! Words are below `2^31` in absolute value, factors at most `q / 2`, `R = 2^32`. A product is `(a w + k q) / R` with
//! `|k| <= R / 2`, so at most `|a| q / 2^33 + q / 2`; that is `3 q / 4` for any word. The product with `r`, the residue
//! of `R` nearest to 0, is the word itself, at most `(r + q) / 2`: it reduces.
//!
//! The first layer reduces two of four words, multiplies the other two, and gives at most `M = (r + q) / 2 + 3 q / 4`.
//! The second layer reduces none and gives at most `M + M q / 2^33 + q / 2`. That is below `2^31`:
//!
//! * if `q <= 8/9 2^30`, then `r <= q / 2`, `M <= 3 q / 2` and the sum is at most `(2 + 1/6) q < 1.93 2^30`;
//! * else with `q = (1 - d) 2^30`, `d < 1/9`: `r = 4 (2^30 - q) = 4 d 2^30`, `M <= (1.25 + 0.75 d) 2^30` and the sum is
//!   at most `(1.91 + 0.35 d) 2^30 < 1.95 2^30`.
//!
//! If the number of layers is odd, the first one is done alone. Its input words are residues below `q`, so its output
//! is below `q + 3 q / 4`.

/// Arithmetic modulo an odd number below `2^30`, in Montgomery's form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signed {
    q: i32,
    /// `-q^-1 mod R`.
    negated_inverse: i32,
    /// `r`: a factor of 1.
    one: i32,
}

impl Signed {
    /// The arithmetic of a modulus whose negated inverse modulo `R` is known.
    pub(crate) fn new(q: u32, negated_inverse: u32) -> Self {
        let signed = Self { q: q.cast_signed(), negated_inverse: negated_inverse.cast_signed(), one: 0 };
        Self { one: signed.centered(((1u64 << 32) % u64::from(q)) as u32), ..signed }
    }

    /// The representative of a public residue nearest to 0.
    #[inline(always)]
    fn centered(&self, residue: u32) -> i32 {
        let residue = residue.cast_signed();
        if 2 * residue > self.q { residue - self.q } else { residue }
    }

    #[inline(always)]
    fn mul(&self, a: i32, factor: i32) -> i32 {
        let product = i64::from(a) * i64::from(factor);
        let k = (product as i32).wrapping_mul(self.negated_inverse);
        ((product + i64::from(k) * i64::from(self.q)) >> 32) as i32
    }

    #[inline(always)]
    fn reduce(&self, a: i32) -> i32 {
        self.mul(a, self.one)
    }

    #[inline(always)]
    fn canonical(&self, a: i32) -> u32 {
        let a = self.reduce(a);
        (a + (self.q & a >> 31)).cast_unsigned()
    }

    #[inline(always)]
    fn two_layers(&self, [a, b, c, d]: [u32; 4], [first, low, high]: [i32; 3]) -> [i32; 4] {
        let (c, d) = (self.mul(c.cast_signed(), first), self.mul(d.cast_signed(), first));
        let (a, b) = (self.reduce(a.cast_signed()), self.reduce(b.cast_signed()));
        let (b, d, a, c) = (self.mul(b + d, low), self.mul(b - d, high), a + c, a - c);
        [a + b, a - b, c + d, c - d]
    }

    /// Transforms canonical residues to canonical evaluations. `factor(i)` is the canonical prepared factor of block
    /// `i`, with blocks numbered across layers.
    #[inline(always)]
    pub(crate) fn forward(&self, limb: &mut [u32], factor: impl Fn(usize) -> u32) {
        let n = limb.len();
        let centered = |i| self.centered(factor(i));
        let mut blocks = 1;
        if n.ilog2() % 2 == 1 {
            let w = centered(1);
            let (low, high) = limb.split_at_mut(n / 2);
            for (x, y) in low.iter_mut().zip(high) {
                let (a, b) = (x.cast_signed(), self.mul(y.cast_signed(), w));
                (*x, *y) = ((a + b).cast_unsigned(), (a - b).cast_unsigned());
            }
            blocks = 2;
        }
        while blocks < n / 4 {
            for (i, block) in (blocks..).zip(limb.chunks_exact_mut(n / blocks)) {
                let factors = [centered(i), centered(2 * i), centered(2 * i + 1)];
                let (low, high) = block.split_at_mut(n / blocks / 2);
                let ((a, b), (c, d)) = (low.split_at_mut(n / blocks / 4), high.split_at_mut(n / blocks / 4));
                for ((a, b), (c, d)) in a.iter_mut().zip(b).zip(c.iter_mut().zip(d)) {
                    [*a, *b, *c, *d] = self.two_layers([*a, *b, *c, *d], factors).map(i32::cast_unsigned);
                }
            }
            blocks *= 4;
        }
        for (i, four) in (blocks..).zip(limb.as_chunks_mut::<4>().0) {
            let factors = [centered(i), centered(2 * i), centered(2 * i + 1)];
            *four = self.two_layers(*four, factors).map(|x| self.canonical(x));
        }
    }
}
