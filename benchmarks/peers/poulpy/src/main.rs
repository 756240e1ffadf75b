//! Measures poulpy at the parameter sets of `sets.json` and prints one JSON object per line.
//!
//! poulpy is bivariate, not RNS: a ciphertext has `k` bits in limbs of `base2k` bits, and a key-switching digit has
//! `dsize` limbs. The level `l` of a set stands for `k` less the primes above `l`.

mod options;
mod record;
mod scheme;

use std::error::Error;

use options::Options;
use record::Bench;
use scheme::Scheme;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let bench = Bench::new(&options);
    let mut scheme = Scheme::new(&options.set);
    scheme.measure_keys(&bench)?;
    for &level in &options.set.levels {
        scheme.measure_level(&bench, level)?;
    }
    Ok(())
}
