//! 256 Galois keys at `N = 2^16` derived from master keys: `derived_keys --ladder 4` prints one JSON object. The
//! program checks every key. `RAYON_NUM_THREADS` sets the threads.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_studies::{DerivedRequest, run_derived, spread_rotations};

fn main() -> Result<(), Box<dyn Error>> {
    let mut request = DerivedRequest {
        masters: Vec::new(),
        targets: spread_rotations(16),
        extra_bits: vec![48; 8],
        alpha: 4,
        max_hops: 64,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            // The powers of a base up to N / 2.
            "--ladder" => {
                let base: i64 = value.parse()?;
                if !(2..=1 << 15).contains(&base) {
                    return Err(format!("--ladder {base}: a base from 2 to 32768").into());
                }
                let powers = std::iter::successors(Some(1i64), |&power| power.checked_mul(base));
                request.masters.extend(powers.take_while(|&power| power < 1 << 15));
            }
            "--masters" => {
                for step in value.split(',') {
                    request.masters.push(step.parse()?);
                }
            }
            "--targets" => {
                request.targets = match value.as_str() {
                    "spread" => spread_rotations(16),
                    list if list.contains(',') => {
                        list.split(',').map(str::parse).collect::<Result<_, _>>()?
                    }
                    count => (1..=count.parse::<i64>()?).collect(),
                }
            }
            "--extra" => {
                request.extra_bits = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--alpha" => request.alpha = value.parse()?,
            "--max-hops" => request.max_hops = value.parse()?,
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    println!("{}", run_derived(&request)?.json());
    Ok(())
}
