//! The stored inputs: every file of `fuzz/corpus` and `fuzz/crashes` through its target, without libFuzzer.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use keywright_fuzz::{client_seeds, files, pool_seeds, root, targets};

/// The files of `vectors/wire`, from which most targets start.
fn golden() -> Vec<PathBuf> {
    let versions = files(&root().join("../vectors/wire"));
    versions
        .iter()
        .flat_map(|version| files(version))
        .filter(|file| file.extension() == Some("kw".as_ref()))
        .collect()
}

/// With the variable `KEYWRIGHT_WRITE_SEEDS` it writes the inputs that are not golden files, from which the targets of
/// clients and pool files start.
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
        let folder = root().join("corpus").join(target.name);
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
        let own = ["corpus", "crashes"].map(|kind| files(&root().join(kind).join(target.name)));
        let (mut inputs, mut accepted) = (own.concat(), 0);
        if target.framed {
            inputs.extend(golden());
        }
        for path in inputs {
            let input = fs::read(&path).unwrap();
            match catch_unwind(AssertUnwindSafe(|| target.run(&input))) {
                Ok(Ok(yes)) => accepted += usize::from(yes),
                Ok(Err(reason)) => faults.push(format!("{}: {reason}", path.display())),
                Err(_) => faults.push(format!("{}: {} panicked", path.display(), target.name)),
            }
        }
        if accepted == 0 {
            faults.push(format!("{} accepts none of its inputs", target.name));
        }
    }
    keywright_fuzz::clean();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
