//! A network of convolutions on coefficients: `coefficient_network FILE NUMBERS` prints a JSON object for each image.
//! `python -m studies.coefficient_network` in `benchmarks/` writes both files.
//!
//! FILE has lines of words. `slots LOG` and perhaps `thin`; `sign ODD...` for each polynomial of ReLU; `key` and `way`
//! as of `coefficient_convolution`, for packings; behind a line `change` the keys of changes of width; behind each line
//! `step` the lines `turn STEP START RUN PERIOD` and `way` of a step; `layer CHANNELS TERMS FITTING APART PARTS
//! NARROWED PLACES` for each layer, and `images COUNT`. Layers that are narrowed take two steps each. NUMBERS has
//! 64-bit floats: for each layer its exponents, kernels, summands and places, then the coefficients of each image.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;

use keywright_studies::{NetworkLayer, NetworkRequest, Step, Turn, parsed, run_network};

/// What the lines so far are about.
enum Section {
    Packing,
    Change,
    Step(Step),
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(numbers)) = (arguments.next(), arguments.next()) else {
        return Err("usage: coefficient_network FILE NUMBERS".into());
    };
    let bytes = std::fs::read(numbers)?;
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut numbers = chunks.iter().map(|chunk| f64::from_le_bytes(*chunk));
    let mut take = |count: usize| -> Vec<f64> { numbers.by_ref().take(count).collect() };
    let mut request = NetworkRequest::default();
    let (mut section, mut steps) = (Section::Packing, Vec::new());
    for line in std::fs::read_to_string(path)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &mut section) {
            (["slots", value], _) => request.log_slots = value.parse()?,
            (["thin"], _) => request.thin = true,
            (["sign", odd @ ..], _) => request.sign.push(parsed(odd)?),
            (["change"], _) => section = Section::Change,
            (["step"], _) => {
                if let Section::Step(step) = std::mem::replace(&mut section, Section::Step(Step::default())) {
                    steps.push(step);
                }
            }
            (["turn", sizes @ ..], Section::Step(step)) => {
                let [turn, start, run, period] = numbers_of(sizes)?;
                step.turns.push(Turn { step: turn, start, run, period });
            }
            (["way", galois, hops @ ..], Section::Step(step)) => {
                step.ways.insert(galois.parse()?, parsed(hops)?);
            }
            (["layer", sizes @ ..], _) => {
                if let Section::Step(step) = std::mem::replace(&mut section, Section::Packing) {
                    steps.push(step);
                }
                let [channels, terms, fitting, apart, parts, narrowed, places] = numbers_of(sizes)?;
                request.layers.push(NetworkLayer {
                    exponents: take(terms).iter().map(|&x| x as i64).collect(),
                    kernels: (0..channels).map(|_| take(terms)).collect(),
                    bias: take(channels),
                    fitting,
                    apart,
                    parts,
                    steps: steps.drain(..2 * narrowed).collect(),
                    places: take(places).iter().map(|&x| x as usize).collect(),
                });
            }
            (["images", count], _) => request.images = (0..count.parse()?).map(|_| take(1 << 16)).collect(),
            (words, Section::Packing) => request.packing.read(words)?,
            (words, _) => request.change.read(words)?,
        }
    }
    run_network(&request, &mut |record| println!("{}", record.json()))?;
    Ok(())
}

fn numbers_of<const COUNT: usize>(words: &[&str]) -> Result<[usize; COUNT], Box<dyn Error>> {
    parsed::<usize>(words)?.try_into().map_err(|_| format!("not {COUNT} numbers: {}", words.join(" ")).into())
}
