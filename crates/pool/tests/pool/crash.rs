//! Processes that draw from one file and are killed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use keywright_pool::{EncryptionPool, PoolFile, WhenEmpty};
use keywright_ring::sampling::SecretRng;

use crate::fixture::{Folder, file_in, keys, options, parameters};

/// Names the folder of the file to a process of this test.
const FOLDER: &str = "KEYWRIGHT_POOL_TEST_FOLDER";

/// The work of a child: it draws from a pool with a thread and prints the seed of every entry that it gets.
fn draw(folder: &Path) {
    let (secret, _) = keys(&parameters());
    let mut options = options(3, 1, WhenEmpty::Encrypt);
    options.file = Some(file_in(folder, 40));
    let pool = EncryptionPool::new(secret, options, SecretRng::system().unwrap()).unwrap();
    loop {
        let zero = pool.take().unwrap();
        // One write, so that a killed process leaves no half line.
        let line = format!("\nseed {:02x?}\n", zero.seed.0);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        thread::sleep(Duration::from_micros(300));
    }
}

/// Processes killed at any moment, two at a time: no entry is ever seen twice.
#[test]
fn killed_processes_never_give_an_entry_twice() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        draw(Path::new(&folder));
    }
    let folder = Folder::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for round in 0..12 {
        let mut children: Vec<_> = (0..2)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["crash::killed_processes_never_give_an_entry_twice", "--exact", "--nocapture"])
                    .env(FOLDER, &folder.0)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let count = Arc::new(AtomicUsize::new(0));
        let readers: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let (out, count) = (BufReader::new(child.stdout.take().unwrap()), count.clone());
                thread::spawn(move || {
                    let lines = out.lines().map_while(Result::ok).filter(|line| line.starts_with("seed"));
                    let counted = lines.inspect(|_| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                    counted.collect::<Vec<_>>()
                })
            })
            .collect();
        // Killed one after the other, each at another moment.
        for (k, child) in children.iter_mut().enumerate() {
            while count.load(Ordering::Relaxed) < (k + 1) * (8 + 3 * round) {
                assert!(child.try_wait().unwrap().is_none(), "a process ended by itself");
                thread::sleep(Duration::from_micros(200));
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for line in readers.into_iter().flat_map(|reader| reader.join().unwrap()) {
            *seen.entry(line).or_default() += 1;
        }
    }
    assert!(seen.len() >= 12 * 16, "only {} entries were seen", seen.len());
    assert!(seen.values().all(|&count| count == 1));
    // And the file is whole.
    let (secret, _) = keys(&parameters());
    let mut file =
        PoolFile::open(&file_in(&folder.0, 40), &*secret, 1, SecretRng::system().unwrap()).unwrap();
    let count = file.len().unwrap();
    assert_eq!(file.take(&*secret, 99).unwrap().len() as u64, count);
}
