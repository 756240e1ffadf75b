//! Discrete Gaussian errors by a constant-time scan of the cumulative distribution.

#[cfg(any(not(target_arch = "arm"), test))]
use zeroize::Zeroizing;

/// Standard deviation of every error polynomial.
pub const SIGMA: f64 = 3.19;
/// No sample is larger in absolute value (9.4 standard deviations; the mass beyond is below `2^-63`).
pub const GAUSSIAN_BOUND: i64 = 29;

/// `round(2^63 * P(|x| <= k))` for `k = 0..29`, the discrete Gaussian over the integers with [`SIGMA`].
/// Recomputed with 60 digits by `vectors/gaussian.py`.
pub(crate) const CUMULATIVE: [u64; GAUSSIAN_BOUND as usize] = [
    1153477452468229224,
    3349820430805593270,
    5245143829349442938,
    6727622992311224449,
    7778655094148702640,
    8454061963716837078,
    8847464427593976181,
    9055161697081982973,
    9154552593608142009,
    9197663240382149865,
    9214612259843553562,
    9220652117835847120,
    9222602999767745941,
    9223174159202072686,
    9223325726613166616,
    9223362183234700014,
    9223370131440734060,
    9223371702107022666,
    9223371983440126813,
    9223372029115264285,
    9223372035836683724,
    9223372036733212517,
    9223372036841602611,
    9223372036853480440,
    9223372036854660235,
    9223372036854766453,
    9223372036854775121,
    9223372036854775762,
    9223372036854775805,
];

/// Samples made side by side, so that each table entry is compared with all of them at once.
#[cfg(any(not(target_arch = "arm"), test))]
const BLOCK: usize = 64;

/// The samples for given uniform words: the definition of [`crate::backend::Sampling::gaussian`].
#[cfg(any(not(target_arch = "arm"), test))]
pub(crate) fn samples(words: &[u64], out: &mut [i64]) {
    let mut magnitudes = Zeroizing::new([0; BLOCK]);
    for (words, samples) in words.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        magnitudes.fill(0);
        for c in CUMULATIVE {
            for (magnitude, word) in magnitudes.iter_mut().zip(words) {
                // The comparison is the borrow of a subtraction below 2^63: no branch, no table index.
                *magnitude += 1 - ((word >> 1).wrapping_sub(c) >> 63);
            }
        }
        for ((sample, &magnitude), &word) in samples.iter_mut().zip(magnitudes.iter()).zip(words) {
            let negative = -((word & 1) as i64);
            *sample = (magnitude as i64 ^ negative) - negative;
        }
    }
}
