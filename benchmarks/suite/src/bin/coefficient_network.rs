//! A network of convolutions on coefficients: `coefficient_network FILE NUMBERS` prints a JSON object.
//! `python -m studies.coefficient_network` in `benchmarks/` writes both files.
//!
//! Lines of words: `fitting 64`, `key` and `way` as of `coefficient_convolution`, a line
//! `layer CHANNELS TERMS APART PLACES` for each layer, and `images COUNT`. NUMBERS has 64-bit floats: for each layer
//! its exponents, kernels, summands and places, then the coefficients of each image.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_studies::{NetworkLayer, NetworkRequest, PackingKeys, parsed, run_network};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(numbers)) = (arguments.next(), arguments.next()) else {
        return Err("usage: coefficient_network FILE NUMBERS".into());
    };
    let bytes = std::fs::read(numbers)?;
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut numbers = chunks.iter().map(|chunk| f64::from_le_bytes(*chunk));
    let mut take = |count: usize| -> Vec<f64> { numbers.by_ref().take(count).collect() };
    let mut request = NetworkRequest {
        fitting: 64,
        packing: PackingKeys::default(),
        layers: Vec::new(),
        images: Vec::new(),
    };
    for line in std::fs::read_to_string(path)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["fitting", value] => request.fitting = value.parse()?,
            ["layer", sizes @ ..] => {
                let [channels, terms, apart, places] =
                    parsed::<usize>(sizes)?.try_into().map_err(|_| format!("not a layer: {line}"))?;
                request.layers.push(NetworkLayer {
                    exponents: take(terms).iter().map(|&x| x as i64).collect(),
                    kernels: (0..channels).map(|_| take(terms)).collect(),
                    bias: take(channels),
                    apart,
                    places: take(places).iter().map(|&x| x as usize).collect(),
                });
            }
            ["images", count] => request.images = (0..count.parse()?).map(|_| take(1 << 16)).collect(),
            words => request.packing.read(words)?,
        }
    }
    println!("{}", run_network(&request)?.json());
    Ok(())
}
