//! The environment variable `KEYWRIGHT_BACKEND`, observed from outside: the choice is made once per process.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step of a test fails the test")]

use std::process::Command;

use keywright_ring::{RingError, backend};

/// Prints what a process with this environment computes with. Only run by the tests below.
#[test]
#[ignore = "run by the other tests of this file, in a process of its own"]
fn report_choice() {
    match backend::default() {
        Ok(chosen) => println!("chosen: {}", chosen.kind().name()),
        Err(error) => println!("refused: {error}"),
    }
}

fn choice(forced: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "report_choice", "--include-ignored", "--nocapture"]);
    match forced {
        Some(name) => command.env("KEYWRIGHT_BACKEND", name),
        None => command.env_remove("KEYWRIGHT_BACKEND"),
    };
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line =
        output.lines().find_map(|line| line.find("chosen: ").or(line.find("refused: ")).map(|i| &line[i..]));
    line.unwrap_or_else(|| panic!("no report in {output}")).to_owned()
}

#[test]
fn each_backend_can_be_forced() {
    for backend in backend::available() {
        let name = backend.kind().name();
        assert_eq!(choice(Some(name)), format!("chosen: {name}"));
    }
}

#[test]
fn the_fastest_is_the_default() {
    let fastest = backend::available().pop().unwrap().kind().name();
    assert_eq!(choice(None), format!("chosen: {fastest}"));
}

#[test]
fn an_unknown_name_is_refused_with_the_list() {
    let names: Vec<_> = backend::available().iter().map(|b| b.kind().name()).collect();
    let expected = RingError::BackendUnavailable("neon".into(), names.join(", "));
    assert_eq!(backend::by_name("neon").unwrap_err(), expected);
    assert_eq!(choice(Some("neon")), format!("refused: {expected}"));
}
