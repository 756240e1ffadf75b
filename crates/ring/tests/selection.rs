//! The environment variable `KEYWRIGHT_BACKEND`, observed from outside: the choice is made once per process.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step of a test fails the test")]

use std::process::Command;

use keywright_ring::{Ring, RingError, backend, ntt_primes};

/// Prints the back end of a process with this environment. Only the tests below run it.
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
    let expected = RingError::BackendUnavailable("sse2".into(), names.join(", "));
    assert_eq!(backend::by_name("sse2").unwrap_err(), expected);
    assert_eq!(choice(Some("sse2")), format!("refused: {expected}"));
}

#[test]
fn the_counting_one_counts_what_the_fastest_computes() {
    let (fastest, counted) = (backend::available().pop().unwrap(), backend::by_name("counted").unwrap());
    assert_eq!(counted.kind(), fastest.kind());
    assert!(backend::available().iter().all(|other| !std::ptr::addr_eq(*other, counted)));
    let primes: Vec<u64> = [50, 55].iter().flat_map(|&bits| ntt_primes(10, bits, 1, &[]).unwrap()).collect();
    let rings = [fastest, counted].map(|b| Ring::new(10, &primes, b).unwrap());
    let input: Vec<u64> = (0..1024).collect();
    let before = backend::counts();
    let results = rings.each_ref().map(|ring| {
        [0, 1].map(|i| {
            let (mut limb, mut product) = (input.clone(), vec![0; 1024]);
            ring.forward_limb(i, &mut limb);
            ring.backend().mul(ring.modulus(i), &limb, &limb, &mut product);
            (0..=i).for_each(|_| ring.backend().add_assign(ring.modulus(i), &mut product, &limb));
            ring.inverse_limb(i, &mut product);
            product
        })
    });
    assert_eq!(results[0], results[1]);
    let done = |name| {
        let read = |counts: &[(&str, [u64; 2])]| counts.iter().find(|(known, _)| *known == name).unwrap().1;
        let (before, after) = (read(&before), read(&backend::counts()));
        [0, 1].map(|width| after[width] - before[width])
    };
    assert_eq!(done("transforms"), [2048, 2048]);
    assert_eq!(done("products"), [1024, 1024]);
    assert_eq!(done("visits"), [1024, 2048]);
    assert_eq!(done("conversions"), [0, 0]);
}
