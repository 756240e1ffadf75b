//! Decryptions that may be shared: Gaussian noise that hides the error of a ciphertext.
//!
//! `docs/explanation/handing-out.md` states and proves the guarantee.

mod wide_gaussian;

use std::sync::atomic::{AtomicU64, Ordering};

use keywright_ring::Process;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::noise::{PRODUCT_TAIL, TAIL};
use wide_gaussian::WideGaussian;
use zeroize::Zeroizing;

use crate::{Ciphertext, CkksError, Packing};

/// Largest number of statistical bits.
pub const MAX_FLOODING_BITS: u32 = 64;
/// Largest number of decryptions for one [`Flooding`].
pub const MAX_FLOODING_QUERIES: u64 = 1 << 32;
/// `-log2` of the probability that the error of a ciphertext exceeds [`PRODUCT_TAIL`] deviations.
const TAIL_BITS: f64 = 40.0;
/// Margin in bits: the error exceeds the bound that flooding assumes with a probability below `2^-bits`.
const MARGIN_BITS: f64 = 5.0;

/// The flooding of decryptions under one secret before they are shared, and the number of decryptions left.
///
/// Noise is a discrete Gaussian of deviation `sigma = sqrt(12 queries) 2^(bits/2) E`. It is added to every decoded
/// coefficient before decoding; `E` bounds the Euclidean norm of their errors (Li, Micciancio, Schultz and Sorrell,
/// CRYPTO 2022). The divergence between the results of all queries and results without the errors is then at most
/// `2^-bits / 24`. An observer who could not find the secret without the errors finds it with a probability of at most
/// `2^-bits`, and distinguishes the two cases with an advantage of at most `2^-(bits/2 + 2)`.
#[derive(Debug)]
pub struct Flooding {
    bits: u32,
    queries: u64,
    spent: AtomicU64,
    owner: Process,
}

impl Flooding {
    /// Flooding with these statistical bits over all of `queries` decryptions. It belongs to one secret; every
    /// decryption under that secret that leaves its owner counts.
    ///
    /// # Errors
    /// [`CkksError::FloodingRange`] unless `bits` is in `1..=`[`MAX_FLOODING_BITS`] and `queries` in
    /// `1..=`[`MAX_FLOODING_QUERIES`].
    pub fn new(bits: u32, queries: u64) -> Result<Self, CkksError> {
        let checked = |what, value, max| {
            if (1..=max).contains(&value) {
                Ok(())
            } else {
                Err(CkksError::FloodingRange { what, value, max })
            }
        };
        checked("bits", bits.into(), MAX_FLOODING_BITS.into())?;
        checked("queries", queries, MAX_FLOODING_QUERIES)?;
        Ok(Self { bits, queries, spent: AtomicU64::new(0), owner: Process::current() })
    }

    /// Statistical bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The planned number of decryptions.
    pub fn queries(&self) -> u64 {
        self.queries
    }

    /// The number of decryptions left.
    pub fn remaining(&self) -> u64 {
        self.queries - self.spent.load(Ordering::Relaxed)
    }

    /// Bound on the error of all values of a flooded decryption of this ciphertext, in units of the message, except
    /// with probability below `2^-40`: its own bound plus [`TAIL`] deviations of the noise.
    ///
    /// # Errors
    /// [`CkksError::FloodingTooLarge`] if the bound reaches the largest allowed value, or the noise is too large for
    /// the modulus.
    pub fn error_bound(&self, ciphertext: &Ciphertext) -> Result<f64, CkksError> {
        Ok(self.plan(ciphertext)?.1)
    }

    /// The noise for a ciphertext, and the bound on the resulting error.
    fn plan(&self, ciphertext: &Ciphertext) -> Result<(WideGaussian, f64), CkksError> {
        let own = ciphertext.decrypted_bound();
        let least = self.deviation(ciphertext);
        let noise = WideGaussian::at_least(least);
        let deviation = noise.as_ref().map_or(least, WideGaussian::deviation);
        let error = own + TAIL * ciphertext.deviation_of(deviation * deviation);
        let refused = |what, limit| CkksError::FloodingTooLarge {
            bits: self.bits,
            queries: self.queries,
            lost: (error / own).log2(),
            error,
            what,
            limit,
        };
        // Noise that fits twice does not wrap, unless the message does.
        let room = (ciphertext.parameters.rlwe().log2_q(ciphertext.level()) - 2.0).exp2();
        let (Some(noise), true) = (noise, TAIL * deviation < room) else {
            return Err(refused("the modulus has room for", room / ciphertext.scale));
        };
        let magnitude = ciphertext.estimate.magnitude;
        if error < magnitude { Ok((noise, error)) } else { Err(refused("the values are at most", magnitude)) }
    }

    /// Deviation of the noise of a coefficient.
    fn deviation(&self, ciphertext: &Ciphertext) -> f64 {
        let count = decoded(ciphertext) as f64;
        // 2 t K_1(2 t) decreases by e^-2 when t grows by one.
        let missing = f64::from(self.bits) + (self.queries as f64).log2() + MARGIN_BITS - TAIL_BITS;
        let tail = PRODUCT_TAIL + missing.max(0.0) * std::f64::consts::LN_2 / 2.0;
        let largest = ciphertext.scale * tail * ciphertext.estimate.deviation;
        let norm = match ciphertext.packing {
            // The squared norm of coefficients is the mean square of the slots.
            Packing::Slots { .. } => largest,
            Packing::Coefficients => largest * count.sqrt(),
        };
        // The exact message is rounded to integers.
        let norm = norm + count.sqrt() / 2.0;
        (12.0 * self.queries as f64).sqrt() * (f64::from(self.bits) / 2.0).exp2() * norm
    }

    /// The noise of one decryption, which counts: one number per decoded coefficient.
    pub(crate) fn draw(
        &self,
        ciphertext: &Ciphertext,
        rng: &mut SecretRng,
    ) -> Result<Zeroizing<Vec<i64>>, CkksError> {
        if !self.owner.is_current() {
            // Every copy would have all of the queries.
            return Err(CkksError::FloodingForked {
                owner: self.owner.id(),
                process: Process::current().id(),
            });
        }
        let (gaussian, _) = self.plan(ciphertext)?;
        rng.begin().map_err(keywright_rlwe::RlweError::from)?;
        self.spent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spent| {
                (spent < self.queries).then_some(spent + 1)
            })
            .map_err(|_| CkksError::FloodingSpent { queries: self.queries })?;
        let mut noise = Zeroizing::new(vec![0; decoded(ciphertext)]);
        gaussian.sample(rng, &mut noise);
        rng.require_operation().map_err(keywright_rlwe::RlweError::from)?;
        Ok(noise)
    }
}

/// The number of decoded coefficients: those whose index is a multiple of `N` divided by this.
fn decoded(ciphertext: &Ciphertext) -> usize {
    match ciphertext.packing {
        Packing::Slots { log_slots } => 2 << log_slots,
        Packing::Coefficients => ciphertext.parameters.rlwe().n(),
    }
}
