//! The fuzz targets in Rust: every reader of `keywright-wire`, of thin clients and of pool files, as a function of
//! bytes.
//!
//! A target panics, or uses more memory than its input justifies, if a reader has a fault: if it accepts an input that
//! it would write differently, or fails other than by an error. This package's program runs targets under libFuzzer;
//! its test runs the inputs in `fuzz/corpus` and `fuzz/crashes`.

mod clients;
pub mod corpus;
mod memory;
pub mod mutate;
mod pool;
mod random;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

pub use clients::seeds as client_seeds;
pub use pool::{clean, seeds as pool_seeds};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Memory that any input may use: tables of small parameters, one polynomial ahead of the bytes, scratch.
const FIXED_BYTES: usize = 1 << 19;
/// Memory per byte of input: residues of 40 bits as words, a seeded half expanded, and all of it written once more.
const BYTES_PER_BYTE: usize = 8;

/// A reader under test; returns whether it accepted.
pub type Target = fn(&[u8]) -> bool;

/// A target by its name.
#[derive(Debug, Clone, Copy)]
pub struct Fuzzed {
    /// Its archive in `fuzz/corpus`.
    pub name: &'static str,
    target: Target,
    /// Whether inputs are objects of the byte format, whose checksums a mutation must repair.
    pub framed: bool,
}

impl Fuzzed {
    /// Makes the data that all inputs share, before memory is counted.
    pub fn prepare(&self) {
        targets::context();
        targets::bfv_context();
        if self.framed {
            clients::prepare();
        } else {
            pool::prepare();
        }
    }

    /// Whether the reader accepts the input.
    ///
    /// # Errors
    /// It used more memory than allowed.
    ///
    /// # Panics
    /// For any other fault.
    pub fn run(&self, input: &[u8]) -> Result<bool, String> {
        let (accepted, peak) = memory::peak_of(|| (self.target)(input));
        let allowed = FIXED_BYTES + BYTES_PER_BYTE * input.len();
        if peak > allowed {
            let (name, len) = (self.name, input.len());
            return Err(format!(
                "{name} took {peak} bytes of memory for {len} bytes of input; {allowed} are allowed"
            ));
        }
        Ok(accepted)
    }
}

/// All targets.
pub fn targets() -> Vec<Fuzzed> {
    let framed = targets::TARGETS.into_iter().chain(clients::TARGETS);
    framed
        .map(|(name, target)| Fuzzed { name, target, framed: true })
        .chain([Fuzzed { name: "pool_file", target: pool::target, framed: false }])
        .collect()
}

/// The folder of this package.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder, in the order of their names; empty if there is no such folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}
