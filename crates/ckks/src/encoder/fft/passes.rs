//! Radix-2 and radix-4 passes of the special FFT, on split real and imaginary parts.
//!
//! A pass reads one matrix and writes another, so no bit reversal is needed (Stockham). `F_l[j][q]`, `j < l`,
//! `q < n/l`, is the value at `exp(2 pi i 5^j / 4l)` of the polynomial of the entries whose index is `q` modulo `n/l`.
//! With `w = exp(2 pi i 5^j / 8l)`,
//!
//! ```text
//! F_2l[j][q]     = F_l[j][q] + w F_l[j][q + n/2l]
//! F_2l[j + l][q] = F_l[j][q] - w F_l[j][q + n/2l],      as 5^l = 1 + 4l mod 8l.
//! ```
//!
//! A radix-4 pass does two such steps with three multiplications: with `v = exp(2 pi i 5^j / 16l)` and `w = v^2`, the
//! second step multiplies by `v` in row `j` and, as `5^l = 1 + 4lo mod 16l`, by `i^o v` in row `j + l`, where `o = 3`
//! modulo 4, except that `o = 1` for `l = 1`. For `l = 1` rows `l` and `3l` are swapped instead.

use crate::encoder::dispatch::dispatched;

/// The factors of a radix-4 pass from `l` to `4l` rows: entry `j` of `half` is `exp(2 pi i 5^j / 8l)`, of `quarter`
/// its root `exp(2 pi i 5^j / 16l)`, and of `product` their product. Real parts first.
#[derive(Debug, Clone)]
pub(crate) struct Factors {
    pub(crate) half: [Vec<f64>; 2],
    pub(crate) quarter: [Vec<f64>; 2],
    pub(crate) product: [Vec<f64>; 2],
}

/// `W` complex numbers.
#[derive(Clone, Copy)]
struct Lanes<const W: usize> {
    re: [f64; W],
    im: [f64; W],
}

#[inline(always)]
fn map<const W: usize>(a: &[f64; W], b: &[f64; W], f: impl Fn(f64, f64) -> f64) -> [f64; W] {
    let mut out = [0.0; W];
    for i in 0..W {
        out[i] = f(a[i], b[i]);
    }
    out
}

impl<const W: usize> Lanes<W> {
    #[inline(always)]
    fn load(re: &[f64], im: &[f64], at: usize) -> Self {
        let mut out = Self { re: [0.0; W], im: [0.0; W] };
        out.re.copy_from_slice(&re[at..at + W]);
        out.im.copy_from_slice(&im[at..at + W]);
        out
    }

    #[inline(always)]
    fn store(self, re: &mut [f64], im: &mut [f64], at: usize) {
        re[at..at + W].copy_from_slice(&self.re);
        im[at..at + W].copy_from_slice(&self.im);
    }

    #[inline(always)]
    fn splat(parts: &[Vec<f64>; 2], j: usize) -> Self {
        Self { re: [parts[0][j]; W], im: [parts[1][j]; W] }
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self { re: map(&self.re, &b.re, |x, y| x + y), im: map(&self.im, &b.im, |x, y| x + y) }
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self { re: map(&self.re, &b.re, |x, y| x - y), im: map(&self.im, &b.im, |x, y| x - y) }
    }

    /// `self + i b`.
    #[inline(always)]
    fn add_i(self, b: Self) -> Self {
        Self { re: map(&self.re, &b.im, |x, y| x - y), im: map(&self.im, &b.re, |x, y| x + y) }
    }

    /// `self - i b`.
    #[inline(always)]
    fn sub_i(self, b: Self) -> Self {
        Self { re: map(&self.re, &b.im, |x, y| x + y), im: map(&self.im, &b.re, |x, y| x - y) }
    }

    #[inline(always)]
    fn mul(self, w: Self) -> Self {
        let (rr, ii) = (map(&self.re, &w.re, |x, y| x * y), map(&self.im, &w.im, |x, y| x * y));
        let (ri, ir) = (map(&self.re, &w.im, |x, y| x * y), map(&self.im, &w.re, |x, y| x * y));
        Self { re: map(&rr, &ii, |x, y| x - y), im: map(&ri, &ir, |x, y| x + y) }
    }

    /// `self` times the conjugate of `w`.
    #[inline(always)]
    fn mul_conj(self, w: Self) -> Self {
        let (rr, ii) = (map(&self.re, &w.re, |x, y| x * y), map(&self.im, &w.im, |x, y| x * y));
        let (ri, ir) = (map(&self.re, &w.im, |x, y| x * y), map(&self.im, &w.re, |x, y| x * y));
        Self { re: map(&rr, &ii, |x, y| x + y), im: map(&ir, &ri, |x, y| x - y) }
    }
}

/// Entries `0, 4, 8, ...`, then `1, 5, 9, ...` and so on, of `4 W` numbers.
#[inline(always)]
fn transpose_in<const W: usize>(x: &[f64]) -> [[f64; W]; 4] {
    let mut out = [[0.0; W]; 4];
    let x = &x[..4 * W];
    for i in 0..W {
        for r in 0..4 {
            out[r][i] = x[4 * i + r];
        }
    }
    out
}

/// The inverse of [`transpose_in`].
#[inline(always)]
fn transpose_out<const W: usize>(rows: [[f64; W]; 4], x: &mut [f64]) {
    let x = &mut x[..4 * W];
    for i in 0..W {
        for r in 0..4 {
            x[4 * i + r] = rows[r][i];
        }
    }
}

/// Rows `j`, `j + l`, `j + 2l`, `j + 3l` from the four quarters of row `j`, in the order of the module documentation
/// for `l > 1`.
#[inline(always)]
fn combine<const W: usize>(
    [a, c, b, d]: [Lanes<W>; 4],
    [half, quarter, product]: [Lanes<W>; 3],
) -> [Lanes<W>; 4] {
    let (b, c, d) = (b.mul(half), c.mul(quarter), d.mul(product));
    let (even, even_far) = (a.add(b), a.sub(b));
    let (odd, odd_far) = (c.add(d), c.sub(d));
    [even.add(odd), even_far.sub_i(odd_far), even.sub(odd), even_far.add_i(odd_far)]
}

/// Four times the inverse of [`combine`].
#[inline(always)]
fn separate<const W: usize>(z: [Lanes<W>; 4], [half, quarter, product]: [Lanes<W>; 3]) -> [Lanes<W>; 4] {
    let (even, odd) = (z[0].add(z[2]), z[0].sub(z[2]));
    let (even_far, odd_far) = (z[1].add(z[3]), z[1].sub(z[3]));
    let (a, b) = (even.add(even_far), even.sub(even_far).mul_conj(half));
    let (c, d) = (odd.add_i(odd_far).mul_conj(quarter), odd.sub_i(odd_far).mul_conj(product));
    [a, c, b, d]
}

impl Factors {
    /// Factors of rows `j..j + W`.
    #[inline(always)]
    fn load<const W: usize>(&self, j: usize) -> [Lanes<W>; 3] {
        let one = |t: &[Vec<f64>; 2]| Lanes::load(&t[0], &t[1], j);
        [one(&self.half), one(&self.quarter), one(&self.product)]
    }
}

#[inline(always)]
fn load4<const W: usize>(rows: [usize; 4], [re, im]: [&[f64]; 2], at: usize) -> [Lanes<W>; 4] {
    [
        Lanes::load(re, im, rows[0] + at),
        Lanes::load(re, im, rows[1] + at),
        Lanes::load(re, im, rows[2] + at),
        Lanes::load(re, im, rows[3] + at),
    ]
}

#[inline(always)]
fn store4<const W: usize>(
    [a, b, c, d]: [Lanes<W>; 4],
    rows: [usize; 4],
    [re, im]: [&mut [f64]; 2],
    at: usize,
) {
    a.store(re, im, rows[0] + at);
    b.store(re, im, rows[1] + at);
    c.store(re, im, rows[2] + at);
    d.store(re, im, rows[3] + at);
}

/// Row numbers, in units of `l`, of the four outputs of [`combine`].
#[inline(always)]
fn row_order(l: usize) -> [usize; 4] {
    if l == 1 { [0, 3, 2, 1] } else { [0, 1, 2, 3] }
}

#[inline(always)]
fn forward_blocks<const W: usize>(f: &Factors, l: usize, src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
    let (n, [re, im]) = (src[0].len(), dst);
    let q = n / (4 * l);
    let rows = row_order(l).map(|r| r * l * q);
    for j in 0..l {
        let w = [Lanes::splat(&f.half, j), Lanes::splat(&f.quarter, j), Lanes::splat(&f.product, j)];
        for k in (0..q).step_by(W) {
            let input = load4([0, q, 2 * q, 3 * q], src, 4 * j * q + k);
            store4(combine::<W>(input, w), rows, [re, im], j * q + k);
        }
    }
}

#[inline(always)]
fn inverse_blocks<const W: usize>(f: &Factors, l: usize, src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
    let (n, [re, im]) = (src[0].len(), dst);
    let q = n / (4 * l);
    let rows = row_order(l).map(|r| r * l * q);
    for j in 0..l {
        let w = [Lanes::splat(&f.half, j), Lanes::splat(&f.quarter, j), Lanes::splat(&f.product, j)];
        for k in (0..q).step_by(W) {
            let input = load4(rows, src, j * q + k);
            store4(separate::<W>(input, w), [0, q, 2 * q, 3 * q], [re, im], 4 * j * q + k);
        }
    }
}

#[inline(always)]
fn forward_last<const W: usize>(f: &Factors, l: usize, src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
    let [re, im] = dst;
    let rows = row_order(l).map(|r| r * l);
    for j in (0..l).step_by(W) {
        let re4 = transpose_in::<W>(&src[0][4 * j..]);
        let im4 = transpose_in::<W>(&src[1][4 * j..]);
        let input = [
            Lanes { re: re4[0], im: im4[0] },
            Lanes { re: re4[1], im: im4[1] },
            Lanes { re: re4[2], im: im4[2] },
            Lanes { re: re4[3], im: im4[3] },
        ];
        store4(combine::<W>(input, f.load(j)), rows, [re, im], j);
    }
}

#[inline(always)]
fn inverse_first<const W: usize>(f: &Factors, l: usize, src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
    let [re, im] = dst;
    let rows = row_order(l).map(|r| r * l);
    for j in (0..l).step_by(W) {
        let [a, c, b, d] = separate::<W>(load4(rows, src, j), f.load(j));
        transpose_out([a.re, c.re, b.re, d.re], &mut re[4 * j..]);
        transpose_out([a.im, c.im, b.im, d.im], &mut im[4 * j..]);
    }
}

dispatched! {
    /// Radix-4 pass from `l` to `4l` rows.
    pub(crate) fn forward_radix4(f: &Factors, l: usize, src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
        match (src[0].len() / (4 * l), l) {
            (1, 8..) => forward_last::<8>(f, l, src, dst),
            (1, _) => forward_last::<1>(f, l, src, dst),
            (4, _) => forward_blocks::<4>(f, l, src, dst),
            _ => forward_blocks::<8>(f, l, src, dst),
        }
    }
}

dispatched! {
    /// Radix-4 pass from `4l` to `l` rows, times 4.
    pub(crate) fn inverse_radix4(f: &Factors, l: usize, src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
        match (src[0].len() / (4 * l), l) {
            (1, 8..) => inverse_first::<8>(f, l, src, dst),
            (1, _) => inverse_first::<1>(f, l, src, dst),
            (4, _) => inverse_blocks::<4>(f, l, src, dst),
            _ => inverse_blocks::<8>(f, l, src, dst),
        }
    }
}

dispatched! {
    /// Radix-2 pass from one row to two: `w = exp(2 pi i / 8)`.
    pub(crate) fn forward_radix2(w: [f64; 2], src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
        let h = src[0].len() / 2;
        let ((a_re, b_re), (a_im, b_im)) = (src[0].split_at(h), src[1].split_at(h));
        let [dst_re, dst_im] = dst;
        let ((c_re, d_re), (c_im, d_im)) = (dst_re.split_at_mut(h), dst_im.split_at_mut(h));
        for k in 0..h {
            let t_re = b_re[k] * w[0] - b_im[k] * w[1];
            let t_im = b_re[k] * w[1] + b_im[k] * w[0];
            (c_re[k], d_re[k]) = (a_re[k] + t_re, a_re[k] - t_re);
            (c_im[k], d_im[k]) = (a_im[k] + t_im, a_im[k] - t_im);
        }
    }
}

dispatched! {
    /// Radix-2 pass from two rows to one, times 2.
    pub(crate) fn inverse_radix2(w: [f64; 2], src: [&[f64]; 2], dst: [&mut [f64]; 2]) {
        let h = src[0].len() / 2;
        let ((c_re, d_re), (c_im, d_im)) = (src[0].split_at(h), src[1].split_at(h));
        let [dst_re, dst_im] = dst;
        let ((a_re, b_re), (a_im, b_im)) = (dst_re.split_at_mut(h), dst_im.split_at_mut(h));
        for k in 0..h {
            let (t_re, t_im) = (c_re[k] - d_re[k], c_im[k] - d_im[k]);
            a_re[k] = c_re[k] + d_re[k];
            a_im[k] = c_im[k] + d_im[k];
            b_re[k] = t_re * w[0] + t_im * w[1];
            b_im[k] = t_im * w[0] - t_re * w[1];
        }
    }
}
