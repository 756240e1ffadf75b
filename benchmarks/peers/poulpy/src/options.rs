//! Command line and parameter sets.

use std::collections::{HashMap, HashSet};
use std::error::Error;

use serde::Deserialize;

/// One entry of `sets.json`: prime sizes in bits and levels of the RNS libraries, and poulpy's own parameters.
#[derive(Deserialize)]
pub struct ParameterSet {
    pub log_n: usize,
    pub log_q: Vec<usize>,
    pub log_scale: usize,
    pub levels: Vec<usize>,
    pub poulpy: Bivariate,
}

/// Ciphertext bits, bits per limb, limbs per digit and Hamming weight of the secret.
#[derive(Deserialize)]
pub struct Bivariate {
    pub k: usize,
    pub base2k: usize,
    pub dsize: usize,
    pub hamming_weight: usize,
}

impl ParameterSet {
    /// Ciphertext bits that stand for `level`.
    pub fn bits(&self, level: usize) -> usize {
        self.poulpy.k - self.log_q[level + 1..].iter().sum::<usize>()
    }

    /// Level of a fresh ciphertext.
    pub fn max_level(&self) -> usize {
        self.log_q.len() - 1
    }
}

/// What to measure. An empty `works` means all.
pub struct Options {
    pub set: ParameterSet,
    pub works: HashSet<String>,
    pub runs: usize,
    pub threads: usize,
}

impl Options {
    /// Reads `--sets FILE --set NAME --alpha A --work A,B --runs R --threads T`. The digits are the set's `dsize` limbs
    /// for every `alpha`.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut given = HashMap::from(
            [
                ("--sets", "sets.json"),
                ("--set", "quick"),
                ("--alpha", "1"),
                ("--work", ""),
                ("--runs", "5"),
                ("--threads", "1"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            let place = given.get_mut(&name).ok_or_else(|| format!("unknown option {name}"))?;
            *place = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        }
        let path = &given["--sets"];
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let mut sets: HashMap<String, ParameterSet> =
            serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
        let name = &given["--set"];
        let set = sets.remove(name).ok_or_else(|| format!("{path} has no set {name:?}"))?;
        let works = given["--work"].split(',').filter(|work| !work.is_empty()).map(str::to_owned).collect();
        let (runs, threads) = (given["--runs"].parse()?, given["--threads"].parse()?);
        if runs == 0 || threads == 0 {
            return Err("--runs and --threads are at least 1".into());
        }
        Ok(Self { set, works, runs, threads })
    }
}
