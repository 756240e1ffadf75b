//! One bootstrapping of the KDS paper's setting: `key_design --depth 16 --special 1 --alpha 1 ...` prints one JSON
//! object. `python -m studies.bootstrapping_keys` in `benchmarks/` runs it for all of them.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_circuits::bootstrapping::{DigitRule, KeyDesign, KeyLevels};
use keywright_studies::{DesignRequest, most_special, run_design};

fn main() -> Result<(), Box<dyn Error>> {
    let mut request = DesignRequest {
        log_n: 16,
        depth: 16,
        special: 1,
        design: KeyDesign { digits: DigitRule::Dynamic { dropped_primes: true }, levels: KeyLevels::Needed },
        coalescing: true,
        runs: 0,
        memory: 4 << 30,
    };
    let (mut special, mut maximum) = (String::from("most"), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--log-n" => request.log_n = value.parse()?,
            "--depth" => request.depth = value.parse::<u8>()?.into(),
            "--special" => special = value,
            "--alpha" => {
                request.design.digits = match value.as_str() {
                    "dynamic" => DigitRule::Dynamic { dropped_primes: false },
                    "dynamic_dropped" => DigitRule::Dynamic { dropped_primes: true },
                    "maximum" => {
                        maximum = true;
                        continue;
                    }
                    alpha => DigitRule::Static { alpha: alpha.parse()? },
                }
            }
            "--key-levels" => {
                request.design.levels = match value.as_str() {
                    "needed" => KeyLevels::Needed,
                    "top" => KeyLevels::Top,
                    other => return Err(format!("--key-levels {other}: needed or top").into()),
                }
            }
            "--coalescing" => request.coalescing = value.parse()?,
            "--runs" => request.runs = value.parse()?,
            "--memory" => request.memory = value.parse()?,
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    request.special = match special.as_str() {
        "most" => most_special(request.depth)?,
        count => count.parse::<u8>()?.into(),
    };
    if maximum {
        request.design.digits = DigitRule::Static { alpha: request.special };
    }
    println!("{}", run_design(&request)?.json());
    Ok(())
}
