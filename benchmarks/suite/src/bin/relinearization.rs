//! Figure 5 of the KDS paper: `relinearization --log-n 16 --alpha 4 --coalescing false --runs 3` prints a JSON object
//! for each level. `python -m studies.bootstrapping_keys` in `benchmarks/` runs it for every alpha.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_studies::{RelinearizationRequest, run_relinearization};

fn main() -> Result<(), Box<dyn Error>> {
    let mut request = RelinearizationRequest { log_n: 16, alpha: 1, coalescing: false, runs: 3 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--log-n" => request.log_n = value.parse()?,
            "--alpha" => request.alpha = value.parse()?,
            "--coalescing" => request.coalescing = value.parse()?,
            "--runs" => request.runs = value.parse()?,
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    run_relinearization(request, &mut |record| println!("{}", record.json()))?;
    Ok(())
}
