//! Frames of a camera through a thin client: `video --clip FILE --width 160 --height 120 --log-n 16` prints a JSON
//! object for each way to send them. `FILE` has the frames in order, a byte for each pixel.
//! `python -m studies.thin_clients` in `benchmarks/` makes clips and draws figure 11 of the boosted-deflation paper.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;
use std::{fs, path::PathBuf};

use keywright_studies::{VideoRequest, run_video};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut clip, mut width, mut height, mut log_n) = (None, 0, 0, 16);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--clip" => clip = Some(PathBuf::from(value)),
            "--width" => width = value.parse()?,
            "--height" => height = value.parse()?,
            "--log-n" => log_n = value.parse()?,
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    let clip = fs::read(clip.ok_or("--clip names the file of the frames")?)?;
    run_video(&VideoRequest { clip: &clip, width, height, log_n }, &mut |record| {
        println!("{}", record.json());
    })?;
    Ok(())
}
