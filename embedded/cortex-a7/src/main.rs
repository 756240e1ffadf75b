//! The client of full modulus beside the thin one, on an emulated Cortex-A7 with Linux: the sources of the Cortex-M4's.
//!
//! `make cortex-a7-full` runs it in QEMU with a plugin that counts instructions ([`meter`]).

#[path = "../../cortex-m4/src/client.rs"]
mod client;
#[path = "../../cortex-m4/src/full_modulus.rs"]
mod full_modulus;
mod meter;
#[path = "../../cortex-m4/src/numbers.rs"]
mod numbers;

use client::{FRACTION_BITS, MAX_N, Memory, Polynomial, parameters};
use full_modulus::{CHAINS, FullMemory, both};
use numbers::{Pattern, entropy};

/// Memory for the rest of the process.
macro_rules! singleton {
    (: $of:ty = $first:expr) => {
        Some(Box::leak(Box::<$of>::new($first)))
    };
}
use singleton;

fn main() {
    let Some(mut memory) = FullMemory::take() else { panic!("there is memory for every call") };
    println!("| N | primes of 30 bits | full modulus, instructions | thin, instructions | ratio |");
    println!("|---|---|---|---|---|");
    for (log_n, count) in CHAINS {
        let (full, thin) = both(log_n, count, &mut memory).unwrap_or_else(|error| panic!("{error}"));
        println!("| 2^{log_n} | {count} | {full} | {thin} | {:.1} |", full as f64 / thin as f64);
    }
}
