//! Discrete Gaussians of large deviation, from samples of a small one.
//!
//! `x + k y`, with `x` and `y` independent discrete Gaussians of deviation `d`, is a discrete Gaussian of deviation
//! `d sqrt(1 + k^2)`, up to a factor of at most `1 + 8 epsilon` on every probability. The condition is
//! `d sqrt(2 pi) >= sqrt(2) k eta`, with `eta = sqrt(ln(2 (1 + 1/epsilon)) / pi)` the smoothing parameter of the
//! integers (Micciancio and Peikert, CRYPTO 2013, Theorem 3.3; Micciancio and Walter, CRYPTO 2017, use it in this way).
//! Samples start from [`CUMULATIVE`]. Each `k` is as large as the condition allows for `epsilon = 2^-128`, except the
//! last, which gives the requested deviation. Up to [`MAX_DEVIATION`], 128 samples suffice for any deviation.
//!
//! Nothing branches on a sample or addresses memory by it. No sample is a floating-point number, whose last bits would
//! reveal how it was made.

use keywright_ring::sampling::SecretRng;
use zeroize::{Zeroize, Zeroizing};

/// Deviation of the base samples.
const BASE: f64 = 5.0;
/// Largest supported deviation: `2^57`. Samples are then below `2^62`.
pub(super) const MAX_DEVIATION: f64 = (1u64 << 57) as f64;
/// `sqrt(2) eta / sqrt(2 pi)` for `epsilon = 2^-128`, rounded up: `k` is at most `d` divided by this.
const SMOOTHING: f64 = 3.01;
/// Samples made side by side.
const BLOCK: usize = 64;

/// `round(2^127 P(|x| <= k))` for the discrete Gaussian of deviation [`BASE`], as long as it is below `2^127`.
/// Recomputed with 100 digits by `vectors/gaussian.py`.
const CUMULATIVE: [u128; 65] = [
    13575302343983623216259100717578546195,
    40188289038605289183412670711530726268,
    65251456040349479177913171355080726160,
    87929547358011754336565451491316406925,
    107644932808147608990910324480578355532,
    124112606981137300711740456448952904416,
    137328225063682740061240034636823248459,
    147518148343603687015013758764780075128,
    155067029176717937431795698642736845646,
    160440098523800145575050994791129102044,
    164114533299291497227496358362505660641,
    166528808983145941975066901755755555703,
    168052901738108302545948168898674135242,
    168977310722238868061058973816140640452,
    169516008442219770261047842732462616089,
    169817624415709583739814188982115339682,
    169979877050938131702632448597324689694,
    170063737541980801609135418202991163908,
    170105381429401322621104162660908017529,
    170125250307586044549855691009677172283,
    170134358320783812299795949891266607360,
    170138369778105767626971372480485317616,
    170140067274739255023347425313637505208,
    170140757425367942806572020868961621980,
    170141027017414098437787704297251952621,
    170141128198301182704961883459401837652,
    170141164683617107515274255705467777945,
    170141177324166801393580085901532670787,
    170141181531840276534279501432149139014,
    170141182877534291476186056335328259234,
    170141183291037450930626952996986663156,
    170141183413116057719968803216408772915,
    170141183447744146085247823915704689505,
    170141183457181401096777545798621237543,
    170141183459652505444834577924577763726,
    170141183460274182301178439002654963645,
    170141183460424450311337235537554421134,
    170141183460459347994227567999068633182,
    170141183460467134719799697000761073075,
    170141183460468804046604359631212541523,
    170141183460469147886356886060837482272,
    170141183460469215931796604273274212074,
    170141183460469228869887112853683280263,
    170141183460469231233463081474390323737,
    170141183460469231648318882375403250954,
    170141183460469231718279396022979406415,
    170141183460469231729614800782447946705,
    170141183460469231731379413057640330221,
    170141183460469231731643343679104167530,
    170141183460469231731681271551875804727,
    170141183460469231731686508224342209253,
    170141183460469231731687202897563712413,
    170141183460469231731687291436423572615,
    170141183460469231731687302278576112687,
    170141183460469231731687303554207867807,
    170141183460469231731687303698407233939,
    170141183460469231731687303714068598588,
    170141183460469231731687303715702869581,
    170141183460469231731687303715866719701,
    170141183460469231731687303715882502996,
    170141183460469231731687303715883963749,
    170141183460469231731687303715884093642,
    170141183460469231731687303715884104739,
    170141183460469231731687303715884105650,
    170141183460469231731687303715884105722,
];

/// A discrete Gaussian of at least the requested deviation, and less than 1.6 times that if it is above [`BASE`].
#[derive(Clone, Debug)]
pub(super) struct WideGaussian {
    /// The multipliers, in the order of use.
    factors: Vec<i64>,
    deviation: f64,
}

impl WideGaussian {
    /// A distribution of at least that deviation; `None` above [`MAX_DEVIATION`].
    pub(super) fn at_least(least: f64) -> Option<Self> {
        if !(0.0..=MAX_DEVIATION).contains(&least) {
            return None;
        }
        let (mut factors, mut deviation) = (Vec::new(), BASE);
        while deviation < least {
            let needed = ((least / deviation).powi(2) - 1.0).max(1.0).sqrt().ceil();
            let factor = needed.min((deviation / SMOOTHING).floor());
            deviation *= factor.hypot(1.0);
            factors.push(factor as i64);
        }
        Some(Self { factors, deviation })
    }

    /// The deviation of the samples.
    pub(super) fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Fills `out` with independent samples, of magnitude below `2^62`.
    pub(super) fn sample(&self, rng: &mut SecretRng, out: &mut [i64]) {
        for out in out.chunks_mut(BLOCK) {
            Self::fill(&self.factors, rng, out);
        }
    }

    fn fill(factors: &[i64], rng: &mut SecretRng, out: &mut [i64]) {
        let Some((factor, factors)) = factors.split_last() else {
            return base(rng, out);
        };
        Self::fill(factors, rng, out);
        let mut others = Zeroizing::new([0; BLOCK]);
        let others = &mut others[..out.len()];
        Self::fill(factors, rng, others);
        for (x, y) in out.iter_mut().zip(others) {
            *x += factor * *y;
        }
    }
}

/// Samples of deviation [`BASE`], at most [`BLOCK`] of them. 127 random bits select the magnitude, one the sign.
fn base(rng: &mut SecretRng, out: &mut [i64]) {
    let mut words = Zeroizing::new([0; 2 * BLOCK]);
    rng.fill_words(&mut words[..2 * out.len()]);
    let mut magnitudes = [0i64; BLOCK];
    for (pair, magnitude) in words.as_chunks::<2>().0.iter().zip(magnitudes[..out.len()].iter_mut()) {
        let value = u128::from(pair[0] >> 1) << 64 | u128::from(pair[1]);
        for c in CUMULATIVE {
            // The comparison is the borrow of a subtraction below 2^127.
            *magnitude += 1 - (value.wrapping_sub(c) >> 127) as i64;
        }
    }
    for ((sample, &magnitude), pair) in out.iter_mut().zip(&magnitudes).zip(words.as_chunks::<2>().0) {
        let negative = -((pair[0] & 1) as i64);
        *sample = (magnitude ^ negative) - negative;
    }
    magnitudes.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng(seed: u8) -> SecretRng {
        SecretRng::from_entropy(&[seed; 32].into())
    }

    /// Chi-square against the density itself at small deviations, whose samples are combined once to four times.
    #[test]
    fn distribution_is_the_discrete_gaussian() {
        const COUNT: usize = 1 << 18;
        let mut samples = vec![0; COUNT];
        for (least, depth) in [(0.0, 0), (7.0, 1), (15.0, 2), (50.0, 3), (300.0, 4)] {
            let gaussian = WideGaussian::at_least(least).unwrap();
            assert_eq!(gaussian.factors.len(), depth, "{gaussian:?}");
            gaussian.sample(&mut rng(1), &mut samples);
            let deviation = gaussian.deviation();
            let rho = |k: i64| (-((k * k) as f64) / (2.0 * deviation * deviation)).exp();
            // Classes of about a quarter of a deviation, up to four deviations.
            let width = (deviation / 4.0).ceil() as i64;
            let reach = (4.0 * deviation) as i64 / width;
            let total: f64 = (-(40 * deviation as i64)..=40 * deviation as i64).map(rho).sum();
            let mut chi2 = 0.0;
            for class in -reach..reach {
                let members = class * width..(class + 1) * width;
                let seen = samples.iter().filter(|&x| members.contains(x)).count() as f64;
                let expected = COUNT as f64 * members.map(rho).sum::<f64>() / total;
                chi2 += (seen - expected).powi(2) / expected;
            }
            // Mean 2 reach - 1, variance twice that; six deviations.
            let classes = (2 * reach) as f64;
            assert!(
                chi2 < classes + 6.0 * (2.0 * classes).sqrt(),
                "{gaussian:?}: chi-square {chi2} of {classes}"
            );
        }
    }

    #[test]
    fn deviations_are_those_asked_for_and_smoothing_holds() {
        let mut samples = vec![0; 1 << 12];
        for bits in 0..=57 {
            for least in [f64::from(bits).exp2(), (f64::from(bits) + 0.3).exp2().min(MAX_DEVIATION)] {
                let gaussian = WideGaussian::at_least(least).unwrap();
                let deviation = gaussian.deviation();
                assert!(deviation >= least && deviation < (1.6 * least).max(BASE + 1e-9), "{gaussian:?}");
                let (mut d, mut largest) = (BASE, CUMULATIVE.len() as f64);
                // eta from its definition, not from the constant.
                let eta = ((2f64.ln() + 128.0 * 2f64.ln()) / std::f64::consts::PI).sqrt();
                for &k in &gaussian.factors {
                    let k = k as f64;
                    assert!(d * (2.0 * std::f64::consts::PI).sqrt() >= 2f64.sqrt() * k * eta, "{gaussian:?}");
                    d *= k.hypot(1.0);
                    largest *= 1.0 + k;
                }
                assert!(largest < 2f64.powi(62), "{gaussian:?}: {largest}");
            }
        }
        for bits in [3, 20, 40, 57] {
            let gaussian = WideGaussian::at_least(f64::from(bits).exp2()).unwrap();
            gaussian.sample(&mut rng(2), &mut samples);
            let variance =
                samples.iter().map(|&x| (x as f64 / gaussian.deviation()).powi(2)).sum::<f64>() / 4096.0;
            // A mean of 4,096 squares of normal variables: deviation sqrt(2 / 4096); six deviations.
            assert!((variance - 1.0).abs() < 6.0 * (2.0f64 / 4096.0).sqrt(), "{gaussian:?}: {variance}");
        }
        for least in [-1.0, f64::NAN, MAX_DEVIATION * 1.01, f64::INFINITY] {
            assert!(WideGaussian::at_least(least).is_none(), "{least}");
        }
    }
}
