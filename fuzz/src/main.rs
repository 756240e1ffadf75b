//! Fuzzes every reader of `keywright-wire`, of thin clients and of pool files, on stable Rust, without instrumentation.
//!
//! ```text
//! cargo run --bin keywright-fuzz -- [--seconds S] [--seed K] [--target NAME] [--replay FILE]
//! ```
//!
//! Inputs are the files of `vectors/wire`, mutated with knowledge of the frame and sealed again. What clients write and pool files, which need a disk, get a
//! tenth of the time each. A run fails if a target
//! panics, takes more memory than its input can justify, accepts what it would write differently, or never accepts
//! a mutated input (the mutations would then not reach past the checks). The input that failed is stored in `fuzz/artifacts`.

mod clients;
mod memory;
mod mutate;
mod pool;
mod random;
mod targets;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use random::Random;
use targets::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Memory that any input may take: tables of small parameters, one polynomial ahead of the bytes, scratch.
const FIXED_BYTES: usize = 1 << 19;
/// Memory per byte of input: residues of 40 bits as words, a seeded half expanded, and everything once more as written.
const BYTES_PER_BYTE: usize = 8;

/// It has inputs of its own.
const POOL_FILE: (&str, Target) = ("pool_file", pool::target);

struct Options {
    seconds: u64,
    seed: u64,
    target: Option<String>,
    replay: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seconds: 60, seed: 1, target: None, replay: None };
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{name} {value} is not a number"));
        match name.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--target" => options.target = Some(value),
            "--replay" => options.replay = Some(value.into()),
            _ => {
                return Err(format!("{name} is unknown; there are --seconds, --seed, --target and --replay"));
            }
        }
    }
    Ok(options)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All golden files, in the order of their names.
fn seeds() -> Vec<Vec<u8>> {
    let mut files = BTreeMap::new();
    for version in fs::read_dir(root().join("../vectors/wire")).into_iter().flatten().flatten() {
        for file in fs::read_dir(version.path()).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|extension| extension == "kw") {
                files.insert(file.path(), fs::read(file.path()).unwrap_or_default());
            }
        }
    }
    files.into_values().collect()
}

/// Runs a target; says whether it accepted, or what is wrong.
fn run(target: Target, input: &[u8]) -> Result<bool, String> {
    let (outcome, peak) = memory::peak_of(|| panic::catch_unwind(|| target(input)));
    let accepted = outcome.map_err(|_| "panicked".to_string())?;
    let allowed = FIXED_BYTES + BYTES_PER_BYTE * input.len();
    if peak > allowed {
        return Err(format!(
            "took {peak} bytes of memory for {} bytes of input; {allowed} are allowed",
            input.len()
        ));
    }
    Ok(accepted)
}

fn replay(path: &Path, chosen: &[(&str, Target)]) -> Result<(), String> {
    let input = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for (name, target) in chosen {
        let accepted = run(*target, &input).map_err(|reason| format!("{name} {reason}"))?;
        println!("{name}: {}", if accepted { "accepted" } else { "refused" });
    }
    Ok(())
}

/// Inputs to start from, and what is made of them.
struct Inputs {
    seeds: Vec<Vec<u8>>,
    mutate: fn(&[Vec<u8>], &mut Random) -> Vec<u8>,
}

fn fuzz(options: &Options, limit: Duration, chosen: &[(&str, Target)], from: Inputs) -> Result<(), String> {
    let Inputs { seeds, mutate } = from;
    if seeds.is_empty() {
        return Err("there are no files to start from".into());
    }
    // Every target accepts at least one seed as it is, within its memory.
    for (name, target) in chosen {
        let mut accepted = 0;
        for seed in &seeds {
            accepted +=
                usize::from(run(*target, seed).map_err(|reason| format!("{name} {reason} on a seed"))?);
        }
        if accepted == 0 {
            return Err(format!("{name} accepts none of the files to start from"));
        }
    }
    let start = Instant::now();
    let mut random = Random(options.seed);
    let (mut inputs, mut accepted) = (0u64, vec![0u64; chosen.len()]);
    while start.elapsed() < limit {
        let input = mutate(&seeds, &mut random);
        let pristine = seeds.contains(&input);
        for ((name, target), count) in chosen.iter().zip(&mut accepted) {
            match run(*target, &input) {
                Ok(yes) => *count += u64::from(yes && !pristine),
                Err(reason) => {
                    let path = root().join("artifacts").join(format!("{name}-{}-{inputs}.kw", options.seed));
                    fs::create_dir_all(root().join("artifacts")).map_err(|error| error.to_string())?;
                    fs::write(&path, &input).map_err(|error| error.to_string())?;
                    return Err(format!(
                        "{name} {reason}; replay with --target {name} --replay {}",
                        path.display()
                    ));
                }
            }
        }
        inputs += 1;
    }
    for ((name, _), count) in chosen.iter().zip(&accepted) {
        println!("{name}: {count} mutated inputs accepted");
    }
    println!("{inputs} inputs, {} targets, seed {}, no failure", chosen.len(), options.seed);
    match accepted.iter().position(|&count| count == 0) {
        Some(k) if inputs > 100_000 => {
            Err(format!("{} accepted no mutated input: the mutations do not reach it", chosen[k].0))
        }
        _ => Ok(()),
    }
}

fn main() -> ExitCode {
    let result = options().and_then(|options| {
        let wanted = |name: &str| options.target.as_deref().is_none_or(|target| target == name);
        let chosen: Vec<_> = TARGETS.into_iter().filter(|(name, _)| wanted(name)).collect();
        let pools: Vec<_> = [POOL_FILE].into_iter().filter(|(name, _)| wanted(name)).collect();
        let thin: Vec<_> = clients::TARGETS.into_iter().filter(|(name, _)| wanted(name)).collect();
        if chosen.is_empty() && pools.is_empty() && thin.is_empty() {
            let names: Vec<&str> =
                TARGETS.iter().chain(&clients::TARGETS).chain(&[POOL_FILE]).map(|(name, _)| *name).collect();
            return Err(format!("there is no such target; there are {}", names.join(", ")));
        }
        // Made before memory is counted.
        targets::context();
        if let Some(path) = &options.replay {
            return replay(path, &[chosen, pools, thin].concat());
        }
        let limit = Duration::from_secs(options.seconds);
        let share = if chosen.is_empty() { limit } else { limit / 10 };
        let mut left = limit;
        if !pools.is_empty() {
            left -= share;
            fuzz(&options, share, &pools, Inputs { seeds: pool::seeds(), mutate: pool::mutate })?;
        }
        if !thin.is_empty() {
            left -= share;
            fuzz(&options, share, &thin, Inputs { seeds: clients::seeds(), mutate: mutate::mutate })?;
        }
        if !chosen.is_empty() {
            fuzz(&options, left, &chosen, Inputs { seeds: seeds(), mutate: mutate::mutate })?;
        }
        Ok(())
    });
    pool::clean();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
