//! Measures poulpy at the parameter sets of `sets.json` and prints one JSON object per line.
//!
//! poulpy is bivariate, not RNS: a ciphertext has `k` bits in limbs of `base2k` bits, and a key-switching digit has
//! `dsize` limbs. The level `l` of a set stands for `k` less the primes above `l`.

mod options;
mod parallel;
mod record;
mod serial;

use std::error::Error;
use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("poulpy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let invariant = options.works.contains("bootstrap-conjugate-invariant");
    let bootstrap = invariant || options.works.contains("bootstrap");
    if options.threads == 1 {
        return if bootstrap {
            serial::bootstrap::measure(invariant, options.runs, 1)
        } else {
            serial::scheme::measure(&options)
        };
    }
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    if bootstrap {
        return parallel::bootstrap::measure(invariant, options.runs, options.threads);
    }
    parallel::scheme::measure(&options)
}
