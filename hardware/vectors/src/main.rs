//! Writes the expected results of the hardware's tests, and reads the results of the simulated hardware.
//!
//! ```text
//! keywright-hardware-vectors write|check client|bootstrap LOG_N FOLDER
//! keywright-hardware-vectors write|check key-switch LOG_N LEVEL ALPHA FOLDER
//! ```
//!
//! `write` leaves one file per polynomial, `NAME.words`: its words, 64 bits each, least significant byte first. `check`
//! exits with 1 and a sentence if the files of the simulation are wrong.

use std::path::Path;
use std::process::ExitCode;

use key_switch::Shape;

mod bootstrap;
mod client;
mod files;
mod key_switch;

/// A fault, in words for the person who runs the tests.
type Outcome = Result<(), String>;

fn say<E: std::fmt::Display>(error: E) -> String {
    error.to_string()
}

const USAGE: &str = "usage: keywright-hardware-vectors write|check client|bootstrap LOG_N FOLDER, \
     or write|check key-switch LOG_N LEVEL ALPHA FOLDER";

fn number<T: std::str::FromStr>(argument: &str) -> Result<T, String> {
    argument.parse().map_err(|_| format!("{argument} is not a number; {USAGE}"))
}

fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["write", "client", log_n, folder] => client::write(number(log_n)?, Path::new(folder)),
        ["check", "client", log_n, folder] => client::check(number(log_n)?, Path::new(folder)),
        ["write", "bootstrap", log_n, folder] => bootstrap::write(number(log_n)?, Path::new(folder)),
        ["check", "bootstrap", log_n, folder] => bootstrap::check(number(log_n)?, Path::new(folder)),
        [action @ ("write" | "check"), "key-switch", log_n, level, alpha, folder] => {
            let shape = Shape { log_n: number(log_n)?, level: number(level)?, alpha: number(alpha)? };
            let act = if *action == "write" { key_switch::write } else { key_switch::check };
            act(shape, Path::new(folder))
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
