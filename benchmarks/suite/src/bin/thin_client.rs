//! A thin client alone. `thin_client switches --log-n 16 --runs 21` prints a JSON object for each way to make
//! ciphertexts smaller. `thin_client encrypt --bits 30 --log-n 16 --runs 21` prints one for encryption with the public
//! key, in the format of `keywright bench --json`. `python -m studies.thin_clients` in `benchmarks/` tabulates both.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_studies::{run_switches, run_thin_encrypt};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut log_n, mut runs, mut bits) = (16, 21, 30);
    let mut arguments = std::env::args().skip(1);
    let work = arguments.next().ok_or("the work is switches or encrypt")?;
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--log-n" => log_n = value.parse()?,
            "--runs" => runs = value.parse()?,
            "--bits" if work == "encrypt" => bits = value.parse()?,
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    match work.as_str() {
        "switches" => run_switches(log_n, runs, &mut |record| println!("{}", record.json()))?,
        "encrypt" => println!("{}", run_thin_encrypt(log_n, bits, runs)?.json()),
        other => return Err(format!("there is no work {other}").into()),
    }
    Ok(())
}
