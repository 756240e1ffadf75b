//! Temporary.
#![allow(missing_docs)]
use keywright_ring::Modulus;
use num_complex::Complex64;
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EncoderError {
    #[error("bad")]
    Bad,
}
#[derive(Debug, Clone)]
pub struct Embedding {
    log_n: u32,
}
impl Embedding {
    pub fn new(log_n: u32) -> Self {
        Self { log_n }
    }
    fn root(&self, log_slots: u32, e: u64) -> Complex64 {
        let two_n = 4u64 << log_slots;
        Complex64::from_polar(1.0, 2.0 * std::f64::consts::PI * (e % two_n) as f64 / two_n as f64)
    }
    // HEAAN's special FFT
    pub fn to_slots(&self, log_slots: u32, v: &mut [Complex64]) {
        let n = v.len();
        bitrev(v);
        let mut len = 2;
        while len <= n {
            let (h, q) = (len / 2, 4 * len as u64);
            for i in (0..n).step_by(len) {
                let mut g = 1u64;
                for j in 0..h {
                    let w = self.root(log_slots, (g % q) * ((4u64 << log_slots) / q));
                    let (u, t) = (v[i + j], v[i + j + h] * w);
                    v[i + j] = u + t;
                    v[i + j + h] = u - t;
                    g = g * 5 % (4 << log_slots);
                }
            }
            len *= 2;
        }
    }
    pub fn to_coefficients(&self, log_slots: u32, v: &mut [Complex64]) {
        let n = v.len();
        let mut len = n;
        while len >= 2 {
            let (h, q) = (len / 2, 4 * len as u64);
            for i in (0..n).step_by(len) {
                let mut g = 1u64;
                for j in 0..h {
                    let w = self.root(log_slots, (q - g % q) * ((4u64 << log_slots) / q));
                    let (u, t) = (v[i + j] + v[i + j + h], (v[i + j] - v[i + j + h]) * w);
                    v[i + j] = u;
                    v[i + j + h] = t;
                    g = g * 5 % (4 << log_slots);
                }
            }
            len /= 2;
        }
        bitrev(v);
        for x in v {
            *x /= n as f64;
        }
    }
}
fn bitrev(v: &mut [Complex64]) {
    let n = v.len();
    if n < 2 {
        return;
    }
    for i in 0..n {
        let j = i.reverse_bits() >> (64 - n.trailing_zeros());
        if i < j {
            v.swap(i, j);
        }
    }
}
/// Integer coefficients.
pub struct Integers(Vec<i128>);
impl Integers {
    pub fn slots(e: &Embedding, values: &[Complex64], log_slots: u32, scale: f64) -> Result<Self, EncoderError> {
        let n = 1usize << log_slots;
        if values.len() > n || values.iter().any(|v| !v.re.is_finite() || !v.im.is_finite()) {
            return Err(EncoderError::Bad);
        }
        let mut v = values.to_vec();
        v.resize(n, Complex64::ZERO);
        e.to_coefficients(log_slots, &mut v);
        let big = 1usize << e.log_n;
        let gap = big / (2 * n);
        let mut out = vec![0; big];
        for (i, x) in v.iter().enumerate() {
            out[i * gap] = (x.re * scale).round_ties_even() as i128;
            out[(i + n) * gap] = (x.im * scale).round_ties_even() as i128;
        }
        Ok(Self(out))
    }
    pub fn coefficients(e: &Embedding, values: &[f64], scale: f64) -> Result<Self, EncoderError> {
        let mut out: Vec<i128> = values.iter().map(|x| (x * scale).round_ties_even() as i128).collect();
        out.resize(1 << e.log_n, 0);
        Ok(Self(out))
    }
    pub fn residues(&self, m: &Modulus, limb: &mut [u64]) {
        for (x, &c) in limb.iter_mut().zip(&self.0) {
            let r = m.reduce_u128(c.unsigned_abs());
            *x = if c < 0 { m.neg(r) } else { r };
        }
    }
}
/// Centred values.
pub fn centred(moduli: &[Modulus], limbs: &[&[u64]]) -> Vec<f64> {
    let k = moduli.len();
    let n = limbs[0].len();
    (0..n)
        .map(|i| {
            // Garner
            let mut d = vec![0u64; k];
            for j in 0..k {
                let m = &moduli[j];
                let mut x = limbs[j][i];
                for l in 0..j {
                    x = m.mul(m.sub(x, m.reduce(d[l])), m.inv(m.reduce(moduli[l].value())));
                }
                d[j] = x;
            }
            // decide sign: compare with Q/2 via top digit
            let half = d[k - 1] > moduli[k - 1].value() / 2;
            let mut acc = 0.0f64;
            if half {
                // Q - 1 - x digits
                for j in (0..k).rev() {
                    acc = acc * moduli[j].value() as f64 + (moduli[j].value() - 1 - d[j]) as f64;
                }
                -(acc + 1.0)
            } else {
                for j in (0..k).rev() {
                    acc = acc * moduli[j].value() as f64 + d[j] as f64;
                }
                acc
            }
        })
        .collect()
}
