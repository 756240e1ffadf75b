//! The stored inputs: every one of `fuzz/corpus` and `fuzz/crashes` through its target, without libFuzzer.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use keywright_fuzz::{client_seeds, corpus, files, pool_seeds, root, targets};

/// The files of `vectors/wire`, from which most targets start.
fn golden() -> Vec<PathBuf> {
    let all = files(&root().join("../vectors/wire/v2"));
    all.into_iter().filter(|file| file.extension() == Some("kw".as_ref())).collect()
}

/// With the variable `KEYWRIGHT_WRITE_SEEDS` it writes the inputs that are not golden files, from which the targets of
/// clients and pool files start, to `target/fuzz/seeds`; `fuzz/python/corpus.py` adds them to the archives.
fn write_seeds() {
    for target in targets() {
        let seeds = match target.name {
            "pool_file" => pool_seeds(),
            "sequence" => {
                let one = fs::read(root().join("../vectors/wire/v2/rlwe_ciphertext.kw")).unwrap();
                vec![[&one[..], &one].concat()]
            }
            name if name.starts_with("client_") => client_seeds(),
            _ => continue,
        };
        target.prepare();
        let folder = root().join("../target/fuzz/seeds").join(target.name);
        fs::create_dir_all(&folder).unwrap();
        for (index, seed) in seeds.iter().enumerate() {
            if target.run(seed).unwrap() {
                fs::write(folder.join(format!("seed-{index}")), seed).unwrap();
            }
        }
    }
}

/// One test: the targets count the memory of the process.
#[test]
fn what_is_stored_is_read_or_refused() {
    if std::env::var_os("KEYWRIGHT_WRITE_SEEDS").is_some() {
        write_seeds();
    }
    let mut faults = Vec::new();
    for target in targets() {
        target.prepare();
        let mut paths = files(&root().join("crashes").join(target.name));
        if target.framed {
            paths.extend(golden());
        }
        let loose = paths.into_iter().map(|path| (path.display().to_string(), fs::read(path).unwrap()));
        let mut accepted = 0;
        for (name, input) in corpus::read(target.name).into_iter().chain(loose) {
            match catch_unwind(AssertUnwindSafe(|| target.run(&input))) {
                Ok(Ok(yes)) => accepted += usize::from(yes),
                Ok(Err(reason)) => faults.push(format!("{name}: {reason}")),
                Err(_) => faults.push(format!("{name}: {} panicked", target.name)),
            }
        }
        if accepted == 0 {
            faults.push(format!("{} accepts none of its inputs", target.name));
        }
    }
    keywright_fuzz::clean();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
