//! What a server sends: two halves of every block, at the smallest moduli that decrypt.
//!
//! With `c(s) = Q (m + t k) / t + e` and both halves rounded, `c_1` to `round(2^a c_1 / q)` and `c_0` to `round(2^b
//! c_0 / q)`, the client computes `t (2^-b c_0 + 2^-a c_1 s)`, which is `m` modulo `t` but for three errors: the
//! noise, at most the estimate's bound; the rounding of `c_0`, at most `t 2^-b / 2`; and that of `c_1`, which the
//! secret multiplies, at most `t 2^-a` times [`noise::bound`] of its variance. The widths `a` and `b`, from
//! [`NARROWEST`] on, have the smallest sum for which the three together stay below 1/2.

use std::fmt;

use keywright_bfv::{BfvParameters, NoiseEstimate};
use keywright_frame::packing::{NARROWEST, pack, packed_len, unpack};
use keywright_ring::{Buffer, Evaluation, Poly};
use keywright_rlwe::{KeyIdentity, SecretKey, for_each_item, noise};
use zeroize::Zeroize;

use crate::SearchError;
use crate::error::in_range;

/// Most vectors of one index: more are shards.
pub const MAX_ROWS: usize = 1 << 26;
/// Coefficients are packed in groups of eight.
const PACKED_TOGETHER: usize = 8;
/// Largest error of a score before it is rounded, in units of the score.
const MARGIN: f64 = 0.5;

/// Number of scores and widths of the packed coefficients of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerShape {
    /// Places of the index, each with a score.
    pub rows: usize,
    /// Bits of a coefficient of the first half, `b`.
    pub width_0: u32,
    /// Bits of a coefficient of the second half, `a`, which the secret multiplies.
    pub width_1: u32,
}

impl AnswerShape {
    /// The smallest shape for a noise before the roundings.
    ///
    /// # Errors
    /// [`SearchError::Noise`].
    pub(crate) fn new(
        parameters: &BfvParameters,
        rows: usize,
        estimate: NoiseEstimate,
    ) -> Result<Self, SearchError> {
        let t = parameters.plaintext_modulus() as f64;
        let noise = estimate.log_bound().exp2();
        let secret = noise::bound(noise::division(parameters.rlwe()));
        let widest = Self::widest(parameters);
        let errors = |a: u32, b: u32| noise + secret * t / f64::from(a).exp2() + t / f64::from(b + 1).exp2();
        let narrowest_0 = |a: u32| (NARROWEST..=a).find(|&b| errors(a, b) < MARGIN);
        (NARROWEST..=widest)
            .filter_map(|a| narrowest_0(a).map(|b| (a + b, a, b)))
            .min()
            .map(|(_, width_1, width_0)| Self { rows, width_0, width_1 })
            .ok_or_else(|| {
                let modulus = parameters.rlwe().log2_q(0);
                SearchError::Noise {
                    noise: estimate.log_bound() + modulus - t.log2(),
                    modulus,
                    scores: t.log2(),
                }
            })
    }

    /// Widest coefficients: a product with the secret is below half of the first prime.
    pub fn widest(parameters: &BfvParameters) -> u32 {
        parameters.rlwe().modulus(0).bits().saturating_sub(2 + parameters.rlwe().log_n())
    }

    /// Checks a shape that bytes claim.
    ///
    /// # Errors
    /// [`SearchError::Range`].
    pub fn require_valid(&self, parameters: &BfvParameters) -> Result<(), SearchError> {
        in_range("number of scores", self.rows as u64, 1, MAX_ROWS as u64)?;
        let widest = Self::widest(parameters);
        in_range("width of the second half", self.width_1.into(), NARROWEST.into(), widest.into())?;
        in_range("width of the first half", self.width_0.into(), NARROWEST.into(), self.width_1.into())
    }

    /// Coefficients of the first half of each block that are sent: those of places, in groups of eight.
    fn counts(self, n: usize) -> impl Iterator<Item = usize> {
        let blocks = self.rows.div_ceil(n);
        (0..blocks).map(move |k| (self.rows - k * n).min(n).next_multiple_of(PACKED_TOGETHER))
    }

    /// Bytes of the packed blocks, in a ring of degree `n`.
    pub fn body_len(self, n: usize) -> usize {
        self.counts(n).map(|count| packed_len(count, self.width_0) + packed_len(n, self.width_1)).sum()
    }
}

/// The encrypted scores of one query.
#[derive(Clone, PartialEq)]
pub struct Answer {
    /// Number of scores, widths.
    pub shape: AnswerShape,
    /// The identity of the secret that decrypts it.
    pub key: KeyIdentity,
    /// For each block, the coefficients of `c_0` that belong to places, then all of `c_1`, packed.
    pub body: Vec<u8>,
}

impl Answer {
    /// Switches sums modulo the first prime to the moduli of a shape.
    pub(crate) fn switched(
        parameters: &BfvParameters,
        key: KeyIdentity,
        shape: AnswerShape,
        sums: Vec<[Poly<Evaluation>; 2]>,
    ) -> Self {
        let ring = parameters.rlwe().ring();
        let n = ring.n();
        let mut body = vec![0; shape.body_len(n)];
        let mut rest = &mut body[..];
        let mut tasks = Vec::with_capacity(sums.len());
        for (count, sums) in shape.counts(n).zip(sums) {
            let (first, after) = rest.split_at_mut(packed_len(count, shape.width_0));
            let (second, after) = after.split_at_mut(packed_len(n, shape.width_1));
            tasks.push((count, sums, first, second));
            rest = after;
        }
        for_each_item(tasks, |_, (count, [mut c0, mut c1], first, second): (usize, [Poly<_>; 2], _, _)| {
            for (poly, width, count, out) in
                [(&mut c0, shape.width_0, count, first), (&mut c1, shape.width_1, n, second)]
            {
                let limb = poly.limb_mut(0);
                ring.inverse_limb(0, limb);
                switch_limb(ring.modulus(0).value(), width, &mut limb[..count]);
                pack(width, &limb[..count], out);
            }
        });
        Self { shape, key, body }
    }

    /// The scores of all places, centred modulo `t`: what the client may read.
    ///
    /// # Errors
    /// [`SearchError::Bfv`] for the secret of other parameters or another owner; [`SearchError::Range`] for a body of
    /// another length.
    pub fn decrypt(&self, parameters: &BfvParameters, secret: &SecretKey) -> Result<Vec<i64>, SearchError> {
        let rlwe = parameters.rlwe();
        rlwe.require_same(secret.parameters(), "the answer", "the secret key")?;
        secret.identity().join(self.key, "the secret key", "the answer")?;
        self.shape.require_valid(parameters)?;
        let (ring, n) = (rlwe.ring(), rlwe.n());
        let expected = self.shape.body_len(n) as u64;
        in_range("length of the answer", self.body.len() as u64, expected, expected)?;
        let AnswerShape { rows, width_0, width_1 } = self.shape;
        let mut scores = vec![0; rows];
        let mut rest = &self.body[..];
        let mut tasks = Vec::new();
        for (count, out) in self.shape.counts(n).zip(scores.chunks_mut(n)) {
            let (first, after) = rest.split_at(packed_len(count, width_0));
            let (second, after) = after.split_at(packed_len(n, width_1));
            tasks.push((count, first, second, out));
            rest = after;
        }
        let t = parameters.plaintext_modulus();
        for_each_item(tasks, |_, (count, first, second, out): (usize, &[u8], &[u8], &mut [i64])| {
            let (mut c0, mut c1) = (vec![0u64; count], Buffer::unspecified(n));
            unpack(width_0, first, 0, &mut c0);
            unpack(width_1, second, 0, &mut c1);
            let m = ring.modulus(0);
            ring.forward_limb(0, &mut c1);
            let mut product = Buffer::unspecified(n);
            ring.backend().mul(m, &c1, secret.limb(0), &mut product);
            ring.inverse_limb(0, &mut product);
            for ((score, &c0), &product) in out.iter_mut().zip(&c0).zip(&product[..]) {
                *score = rounded(t, width_0, width_1, c0, m.centered(product));
            }
            product.zeroize();
        });
        Ok(scores)
    }
}

/// `round(2^width x / q) mod 2^width` for `x < q`, whose fraction is known to `2^-13`.
fn switch_limb(q: u64, width: u32, limb: &mut [u64]) {
    // Below 2^64, because 2^width < q; the product with x is below 2^(64 + width).
    let ratio = ((1u128 << (64 + width)) / u128::from(q)) as u64;
    let mask = (1 << width) - 1;
    for x in limb {
        *x = ((u128::from(*x) * u128::from(ratio) + (1 << 63)) >> 64) as u64 & mask;
    }
}

/// `round(t (2^-b c_0 + 2^-a p))` modulo `t`, centred, without a branch.
fn rounded(t: u64, width_0: u32, width_1: u32, c0: u64, product: i64) -> i64 {
    let mask = (1u64 << width_1) - 1;
    let phase = (c0 << (width_1 - width_0)).wrapping_add(product as u64) & mask;
    // In 0..=t.
    let residue = ((u128::from(phase) * u128::from(t) + (1 << (width_1 - 1))) >> width_1) as i64;
    let t = t as i64;
    // From t / 2 on: one all-ones word.
    residue - (t & ((t / 2 - residue) >> 63))
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({:?}, {} bytes)", self.shape, self.body.len())
    }
}
