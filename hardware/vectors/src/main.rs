//! Writes what the hardware's tests compare with, and reads back what the simulated hardware computed.
//!
//! ```text
//! keywright-hardware-vectors write client|bootstrap|key-switch LOG_N FOLDER
//! keywright-hardware-vectors check client|bootstrap|key-switch LOG_N FOLDER
//! ```
//!
//! `write` leaves one file per polynomial, `NAME.words`: its words, 64 bits each, least significant byte first. `check`
//! exits with 1 and a sentence if the files of the simulation are not what they should be.

use std::path::Path;
use std::process::ExitCode;

mod bootstrap;
mod client;
mod files;
mod key_switch;

/// What went wrong, in words for the person who runs the tests.
type Outcome = Result<(), String>;

fn say<E: std::fmt::Display>(error: E) -> String {
    error.to_string()
}

fn run(arguments: &[String]) -> Outcome {
    let usage = || "usage: keywright-hardware-vectors write|check client|bootstrap|key-switch LOG_N FOLDER".to_owned();
    let [action, kind, log_n, folder] = arguments else { return Err(usage()) };
    let log_n: u32 = log_n.parse().map_err(|_| format!("{log_n} is not log2(N)"))?;
    let folder = Path::new(folder);
    match (action.as_str(), kind.as_str()) {
        ("write", "client") => client::write(log_n, folder),
        ("check", "client") => client::check(log_n, folder),
        ("write", "bootstrap") => bootstrap::write(log_n, folder),
        ("check", "bootstrap") => bootstrap::check(log_n, folder),
        ("write", "key-switch") => key_switch::write(log_n, folder),
        ("check", "key-switch") => key_switch::check(log_n, folder),
        _ => Err(usage()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
