//! Runs the byte formats under libFuzzer: inputs that reach new code are kept and mutated further.
//!
//! ```text
//! KEYWRIGHT_FUZZ_TARGET=NAME keywright-fuzz [-max_total_time=S] [FOLDER_TO_KEEP_IN] [FOLDER_TO_START_FROM ...]
//! ```
//!
//! Options are libFuzzer's. The name `list` prints all names; `fuzz/run.py` runs all targets.

#![no_main]

use std::process;
use std::sync::OnceLock;

use keywright_fuzz::{Fuzzed, mutate};
use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target, fuzzer_mutate};

fn chosen() -> &'static Fuzzed {
    static CHOSEN: OnceLock<Fuzzed> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let (name, all) =
            (std::env::var("KEYWRIGHT_FUZZ_TARGET").unwrap_or_default(), keywright_fuzz::targets());
        let names: Vec<_> = all.iter().map(|target| target.name).collect();
        if name == "list" {
            println!("{}", names.join("\n"));
            process::exit(0);
        }
        all.into_iter().find(|target| target.name == name).unwrap_or_else(|| {
            eprintln!("KEYWRIGHT_FUZZ_TARGET is {name:?}; use one of {}", names.join(" "));
            process::exit(2)
        })
    })
}

fuzz_target!(init: { chosen().prepare() }, |input: &[u8]| -> Corpus {
    chosen().run(input).unwrap_or_else(|reason| panic!("{reason}"));
    Corpus::Keep
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if chosen().framed {
        mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
    } else {
        fuzzer_mutate(data, size, max_size)
    }
});
