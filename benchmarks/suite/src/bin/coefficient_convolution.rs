//! A convolution of values in coefficients with its packing: `coefficient_convolution FILE` prints a JSON object.
//! `python -m studies.coefficient_convolution` in `benchmarks/` writes the file.
//!
//! Lines of words: `log-n 16`, `q 55 49 ...`, `p 61 ...`, `width 32`, `kernel 3`, `channels 16`, `runs 3`, a line
//! `key GALOIS LEVEL ALPHA SEEDED SPECIAL...` for each key, and `way GALOIS HOP...` for each automorphism.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_studies::{ConvolutionRequest, PackingKeys, parsed, run_convolution};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: coefficient_convolution FILE")?;
    let mut request = ConvolutionRequest {
        log_n: 16,
        q: Vec::new(),
        p: Vec::new(),
        width: 32,
        kernel: 3,
        channels: 16,
        packing: PackingKeys::default(),
        runs: 3,
    };
    for line in std::fs::read_to_string(path)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["log-n", value] => request.log_n = value.parse()?,
            ["q", values @ ..] => request.q = parsed(values)?,
            ["p", values @ ..] => request.p = parsed(values)?,
            ["width", value] => request.width = value.parse()?,
            ["kernel", value] => request.kernel = value.parse()?,
            ["channels", value] => request.channels = value.parse()?,
            ["runs", value] => request.runs = value.parse()?,
            words => request.packing.read(words)?,
        }
    }
    println!("{}", run_convolution(&request)?.json());
    Ok(())
}
