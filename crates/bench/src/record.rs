//! One measured figure.

use std::fmt::Write;

/// One line of `keywright bench --json`. Times are seconds per operation.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "names of JSON that say all")]
pub struct Record {
    pub work: &'static str,
    pub log_n: u32,
    /// Ciphertext level; 0 for transforms.
    pub level: usize,
    /// Primes per digit; `None` if the operation has no digits.
    pub alpha: Option<usize>,
    pub seeded: bool,
    pub threads: usize,
    pub backend: &'static str,
    /// Times of every run, sorted.
    pub times: Vec<f64>,
    /// The limit by the machine's own rates; `None` if operations are not counted.
    pub limit_s: Option<f64>,
    /// Bytes of the key, or of the ciphertext if no key is used.
    pub bytes: usize,
    /// Whether the result was decrypted and found right.
    pub checked: bool,
    /// Peak resident memory of the process so far; `None` if the system does not report it.
    pub peak_rss_bytes: Option<usize>,
    pub bootstrap: Option<BootstrapFigures>,
}

/// Additional fields of a bootstrapping.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "names of JSON that say all")]
pub struct BootstrapFigures {
    pub preset: String,
    /// Levels for computation between two bootstraps.
    pub levels_left: usize,
    /// `log2` of the product of their primes.
    pub usable_bits: f64,
    pub log_scale: f64,
    pub slots: usize,
    /// `real` or `complex`.
    pub values: &'static str,
    /// `K`, degree of the cosine, double angles, degree of the arcsine.
    pub approximation: [usize; 4],
    /// `log2` of the probability that a bootstrap fails; minus infinity, in JSON null, if none can.
    pub log2_failure: f64,
    /// Vectors of random values that were bootstrapped under one secret.
    pub vectors: usize,
    /// `-log2` of the largest error of a real or imaginary part that bootstrapping added to the decrypted input.
    pub worst_bits: f64,
    /// `-log2` of their mean.
    pub mean_bits: f64,
    /// The plan's prediction for this many vectors.
    pub predicted_worst_bits: f64,
    /// The plan's prediction of the mean.
    pub predicted_mean_bits: f64,
    /// `-log2` of the largest distance of a part of a result from the encrypted one, including the error of encryption.
    pub result_worst_bits: f64,
    /// `-log2` of the bound in the results' estimates.
    pub bound_bits: f64,
    pub keys: usize,
    pub matrix_bytes: usize,
    pub key_bytes: usize,
    /// Seconds to make them.
    pub keygen_s: f64,
    /// Seconds to encode the matrices.
    pub precompute_s: f64,
    /// Names and seconds of the stages.
    pub stages: [(&'static str, f64); 4],
}

impl Record {
    /// Median time.
    pub fn median(&self) -> f64 {
        self.times.get(self.times.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let mut out = String::new();
        let number = |value: f64| if value.is_finite() { format!("{value:e}") } else { "null".into() };
        let (min, max) = (self.times.first().copied(), self.times.last().copied());
        let _ = write!(
            out,
            "{{\"library\":\"keywright\",\"version\":\"{}\",\"work\":\"{}\",\"log_n\":{},\"level\":{},\"alpha\":{},\
             \"seeded\":{},\"threads\":{},\"backend\":\"{}\",\"median_s\":{},\"min_s\":{},\"max_s\":{},\"runs\":{},\
             \"limit_s\":{},\"bytes\":{},\"checked\":{},\"peak_rss_bytes\":{}",
            env!("CARGO_PKG_VERSION"),
            self.work,
            self.log_n,
            self.level,
            self.alpha.map_or("null".into(), |a| a.to_string()),
            self.seeded,
            self.threads,
            self.backend,
            number(self.median()),
            number(min.unwrap_or(f64::NAN)),
            number(max.unwrap_or(f64::NAN)),
            self.times.len(),
            number(self.limit_s.unwrap_or(f64::NAN)),
            self.bytes,
            self.checked,
            self.peak_rss_bytes.map_or("null".into(), |b| b.to_string()),
        );
        if let Some(figures) = &self.bootstrap {
            let _ = write!(
                out,
                ",\"preset\":\"{}\",\"levels_left\":{},\"usable_bits\":{},\"log_scale\":{},\"slots\":{},\"values\":\"{}\",\
                 \"approximation\":{:?},\"log2_failure\":{},\"vectors\":{},\"worst_bits\":{},\"mean_bits\":{},\
                 \"predicted_worst_bits\":{},\"predicted_mean_bits\":{},\"result_worst_bits\":{},\"bound_bits\":{},\
                 \"keys\":{},\"key_bytes\":{},\"matrix_bytes\":{},\"keygen_s\":{},\"precompute_s\":{}",
                figures.preset,
                figures.levels_left,
                number(figures.usable_bits),
                number(figures.log_scale),
                figures.slots,
                figures.values,
                figures.approximation,
                number(figures.log2_failure),
                figures.vectors,
                number(figures.worst_bits),
                number(figures.mean_bits),
                number(figures.predicted_worst_bits),
                number(figures.predicted_mean_bits),
                number(figures.result_worst_bits),
                number(figures.bound_bits),
                figures.keys,
                figures.key_bytes,
                figures.matrix_bytes,
                number(figures.keygen_s),
                number(figures.precompute_s),
            );
            for (stage, seconds) in figures.stages {
                let _ = write!(out, ",\"{stage}_s\":{}", number(seconds));
            }
        }
        out.push('}');
        out
    }
}
