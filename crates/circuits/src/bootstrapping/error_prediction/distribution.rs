use std::f64::consts::{PI, SQRT_2};

use keywright_rlwe::noise::Variance;

/// One case of a part of a slot: an integer and a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Case {
    pub(super) probability: f64,
    /// Squared error that the steps of `eval_mod` add, for roundings of unit variance at scale 1.
    pub(super) steps: f64,
    /// Error of the approximation.
    pub(super) bias: f64,
}

/// The distribution of a bootstrap's errors, in units of the message.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorPrediction {
    /// Root mean square error of a part that each stage adds, in order, and that of the approximation.
    pub stages: Vec<(&'static str, f64)>,
    /// `log2` of the probability that a bootstrap fails because some integer exceeds `K`; minus infinity if none can.
    pub log2_failure: f64,
    /// The variance of all stages but `eval_mod`.
    pub(super) rest: Variance,
    /// The variance of a rounding at scale 1; a part has half of it.
    pub(super) rounding: Variance,
    pub(super) cases: Vec<Case>,
    /// The same for the other half of complex values.
    pub(super) other: Vec<Case>,
    /// Cells of the distribution of `X`: probability and value.
    pub(super) secret: Vec<(f64, f64)>,
    pub(super) slots: f64,
    pub(super) parts: f64,
}

impl ErrorPrediction {
    /// `-log2` of the expected absolute error of a part.
    pub fn mean_bits(&self) -> f64 {
        let mut mean = 0.0;
        for &(probability, x) in &self.secret {
            self.at(x, &mut |share, deviation, bias| {
                let z = bias / deviation;
                let folded = (2.0 / PI).sqrt() * (-z * z / 2.0).exp() + z * (1.0 - erfc(z / SQRT_2));
                mean += probability * share * deviation * folded;
            });
        }
        -mean.log2()
    }

    /// `-log2` of the largest error of any part of `vectors` vectors under one secret: its median over secrets and
    /// vectors.
    pub fn worst_bits(&self, vectors: usize) -> f64 {
        let values = self.parts * vectors.max(1) as f64;
        // The median falls with -log2: it is the largest number of bits at which the probability of no larger error
        // exceeds one half.
        let (mut low, mut high) = (-64.0, 128.0);
        while high - low > 1e-3 {
            let bits = f64::midpoint(low, high);
            let threshold = (-bits).exp2();
            let fails = |&(probability, x): &(f64, f64)| {
                let tail = self.tail(threshold, x);
                probability * -(values * (-tail.min(1.0)).ln_1p()).exp_m1()
            };
            let slot: f64 = self.secret.iter().map(fails).sum();
            if self.slots * (-slot.min(1.0)).ln_1p() >= -std::f64::consts::LN_2 {
                low = bits;
            } else {
                high = bits;
            }
        }
        low
    }

    /// Probability that one part has an error above `t`, given `X = x` for the secret.
    fn tail(&self, t: f64, x: f64) -> f64 {
        let mut sum = 0.0;
        self.at(x, &mut |probability, deviation, bias| {
            let beyond = |distance: f64| erfc(distance / deviation / SQRT_2) / 2.0;
            sum += probability * (beyond(t - bias) + beyond(t + bias));
        });
        sum
    }

    /// Probability, deviation and bias of every case, for one value of `X`.
    fn at(&self, x: f64, see: &mut dyn FnMut(f64, f64, f64)) {
        let rest = self.rest.plain + self.rest.secret * x;
        let half = (self.rounding.plain + self.rounding.secret * x) / 2.0;
        for case in &self.cases {
            for other in &self.other {
                let variance = rest + half * (case.steps + other.steps);
                see(case.probability * other.probability, variance.sqrt(), case.bias);
            }
        }
    }
}

/// Cells of the distribution of the mean of `copies` exponential variables: probability and value.
pub(super) fn secret_at_slots(copies: f64) -> Vec<(f64, f64)> {
    const WIDTH: f64 = 0.25;
    // Beyond 20 an exponential variable has 2^-28.
    let cells = (0..80).map(|cell| (f64::from(cell) + 0.5) * WIDTH);
    let density = |x: f64| (copies * (x.ln() - x + 1.0) - x.ln()).exp();
    let mut out: Vec<(f64, f64)> = cells.map(|x| (density(x), x)).collect();
    let total: f64 = out.iter().map(|(probability, _)| probability).sum();
    out.iter_mut().for_each(|(probability, _)| *probability /= total);
    out.retain(|&(probability, _)| probability > 1e-12);
    out
}

/// Complementary error function, to a relative error of `1.2e-7`: Numerical Recipes, section 6.2.
fn erfc(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.5 * z);
    let value = t * (COEFFICIENTS.iter().fold(0.0, |sum, c| sum * t + c) - z * z).exp();
    if x >= 0.0 { value } else { 2.0 - value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_that_of_tables() {
        // Abramowitz and Stegun, table 7.1, and 7.3 for the large argument.
        let table = [
            (0.0, 1.0),
            (0.5, 0.479_500_122),
            (1.0, 0.157_299_207),
            (2.0, 0.004_677_735),
            (4.0, 1.541_725_8e-8),
        ];
        for (x, expected) in table {
            assert!((erfc(x) / expected - 1.0).abs() < 2e-7, "{x}: {:e}", erfc(x));
            assert!((erfc(-x) - (2.0 - expected)).abs() < 4e-7, "-{x}");
        }
    }

    #[test]
    fn cells_of_the_secret_have_mean_one_and_the_variance_of_a_mean() {
        for copies in [1.0, 2.0, 16.0, 256.0] {
            let cells = secret_at_slots(copies);
            let moment = |k: i32| cells.iter().map(|(p, x)| p * x.powi(k)).sum::<f64>();
            assert!((moment(0) - 1.0).abs() < 1e-6, "{copies}");
            assert!((moment(1) - 1.0).abs() < 0.01, "{copies}: {}", moment(1));
            let variance = moment(2) - moment(1) * moment(1);
            assert!((variance - 1.0 / copies).abs() < 0.02, "{copies}: {variance}");
        }
    }

    #[test]
    fn one_normal_variable_has_its_mean_and_its_largest() {
        let case = Case { probability: 1.0, steps: 0.0, bias: 0.0 };
        let one = ErrorPrediction {
            stages: Vec::new(),
            log2_failure: 0.0,
            rest: Variance { plain: 1.0, secret: 0.0 },
            rounding: Variance::default(),
            cases: vec![case],
            other: vec![case],
            secret: vec![(1.0, 1.0)],
            slots: 1.0,
            parts: 1.0,
        };
        assert!((one.mean_bits() - (PI / 2.0).log2() / 2.0).abs() < 1e-6);
        // The median of |x| is 0.67449; of the largest of 1000, the quantile 1 - ln 2 / 1000 of |x|: 3.3911.
        assert!((one.worst_bits(1) + 0.674_49f64.log2()).abs() < 1e-3);
        assert!((one.worst_bits(1000) + 3.391_1f64.log2()).abs() < 2e-3, "{}", one.worst_bits(1000));
        // A secret in every slot: Laplace distributed with deviation 1, whose largest of n is ln(n / ln 2) / sqrt
        // 2.
        let laplace = ErrorPrediction {
            rest: Variance { plain: 0.0, secret: 1.0 },
            secret: secret_at_slots(1.0),
            slots: 65_536.0,
            ..one
        };
        let expected = (65_536.0 / std::f64::consts::LN_2).ln() / SQRT_2;
        assert!((laplace.worst_bits(1) + expected.log2()).abs() < 0.03, "{}", laplace.worst_bits(1));
        assert!((laplace.mean_bits() - 0.5).abs() < 0.03, "{}", laplace.mean_bits());
    }
}
