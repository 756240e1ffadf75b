use crate::CircuitError;

/// The number of passes of a bootstrapping, and what each corrects: Meta-BTS (Bae, Cheon, Cho, Kim and Kim, ePrint
/// 2022/1167).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    /// Passes in all: 2 or more.
    pub count: usize,
    /// `b`: the bits after the point that the bound on the error of one pass must have. Each pass corrects the one
    /// before by this many bits.
    pub log_precision: u32,
}

/// Most passes: three, at the precision of a pass, go below the resolution of `f64` values.
const MAX_COUNT: usize = 4;

/// Most bits by which a difference is scaled up: the factor is an `i64`.
const MAX_GAIN_BITS: u32 = 60;

impl Iterations {
    /// Refuses what is impossible, as far as that is known without keys. The approximation of `eval_mod` has `bits`
    /// bits.
    ///
    /// # Errors
    /// [`CircuitError::Count`] with the number of passes or of bits and its bound.
    pub(crate) fn require(&self, scale: f64, bits: f64) -> Result<(), CircuitError> {
        let refuse = |what, count, min, max| Err(CircuitError::Count { what, count, min, max });
        if !(2..=MAX_COUNT).contains(&self.count) {
            return refuse("passes of an iterated bootstrapping", self.count, 2, MAX_COUNT);
        }
        let largest = scale.log2().min(f64::from(MAX_GAIN_BITS)) / (self.count - 1) as f64;
        let max = largest.min(bits).floor() as usize;
        let count = self.log_precision as usize;
        if !(1..=max).contains(&count) {
            return refuse("log_precision, the bits that a pass corrects", count, 1, max);
        }
        Ok(())
    }
}
