//! Table 3 of the boosted-deflation paper: `client_modes --preset N16_QP1732_L9_S45 --values complex --runs 5` prints a
//! JSON object for each mode. `python -m studies.thin_clients` in `benchmarks/` runs it and compares the result with
//! the paper's figures. `RAYON_NUM_THREADS` sets the threads.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_circuits::bootstrapping::Values;
use keywright_studies::{ModesRequest, run_client_modes};

fn main() -> Result<(), Box<dyn Error>> {
    let mut request = ModesRequest { preset: "N16_QP1732_L9_S45".into(), values: Values::Complex, runs: 5 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--preset" => request.preset = value,
            "--values" => {
                request.values = match value.as_str() {
                    "real" => Values::Real,
                    "complex" => Values::Complex,
                    other => return Err(format!("--values {other}: real or complex").into()),
                }
            }
            "--runs" => request.runs = value.parse()?,
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    run_client_modes(&request, &mut |record| println!("{}", record.json()))?;
    Ok(())
}
