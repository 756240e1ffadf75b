//! Timing, checking and printing.

use std::collections::HashSet;
use std::error::Error;
use std::time::Instant;

use serde_json::json;

use crate::options::Options;

/// Largest slot error of a result that counts as right; `../../README.md` ("Checks") derives it.
const TOLERANCE: f64 = 1.0 / (1 << 20) as f64;

/// What is measured: all fields of a record that are known before the clock starts.
pub struct Subject {
    pub work: &'static str,
    pub level: usize,
    pub bytes: usize,
}

/// The options of this run that matter while measuring.
pub struct Bench {
    pub runs: usize,
    log_n: usize,
    threads: usize,
    backend: &'static str,
    works: HashSet<String>,
}

impl Bench {
    pub fn new(options: &Options, backend: &'static str) -> Self {
        Self {
            runs: options.runs,
            log_n: options.set.log_n,
            threads: options.threads,
            backend,
            works: options.works.clone(),
        }
    }

    /// Whether the command line asks for any of these works.
    pub fn wants(&self, works: &[&str]) -> bool {
        self.works.is_empty() || works.iter().any(|&work| self.works.contains(work))
    }

    /// Seconds of each run of `call`, after one untimed run.
    pub fn time<E>(&self, mut call: impl FnMut() -> Result<(), E>) -> Result<Vec<f64>, E> {
        call()?;
        (0..self.runs)
            .map(|_| {
                let start = Instant::now();
                call()?;
                Ok(start.elapsed().as_secs_f64())
            })
            .collect()
    }

    /// Prints one record; `error` is the largest slot error of the last result.
    pub fn emit(&self, subject: &Subject, mut seconds: Vec<f64>, error: f64) -> Result<(), Box<dyn Error>> {
        seconds.sort_by(f64::total_cmp);
        let n = seconds.len();
        let record = json!({
            "library": "poulpy",
            "version": "0.10.0",
            "work": subject.work,
            "log_n": self.log_n,
            "level": subject.level,
            "alpha": null,
            "threads": self.threads,
            "backend": self.backend,
            "median_s": (seconds[(n - 1) / 2] + seconds[n / 2]) / 2.0,
            "min_s": seconds[0],
            "max_s": seconds[n - 1],
            "runs": n,
            "bytes": subject.bytes,
            "checked": error <= TOLERANCE,
            "peak_rss_bytes": peak_rss_bytes()?,
        });
        println!("{record}");
        Ok(())
    }
}

/// `VmHWM`: `ru_maxrss` would include the parent's size before `exec`.
pub fn peak_rss_bytes() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib =
        line.and_then(|rest| rest.split_whitespace().next()).ok_or("/proc/self/status has no VmHWM line")?;
    Ok(kib.parse::<usize>()? * 1024)
}
