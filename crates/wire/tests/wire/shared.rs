//! Key sets in shared memory.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keywright_ring::{SharedFile, SharedWriter};
use keywright_rlwe::residency::{KeyLoader, KeyStore};
use keywright_rlwe::{EvaluationKeys, KeyElement, KeySpec, Parameters, RlweError, SwitchingKey};
use keywright_wire::{
    Arrival, KeySetFile, KeySetLoader, KeySetWriter, SharedKeyLoader, Wire, WireError, shared_keys,
};

use crate::samples::{self, parameters, seeded_key, stored_key};

/// Keys with and without seeds, not in the order of elements.
fn keys(p: &Parameters) -> Vec<SwitchingKey> {
    vec![
        seeded_key(p),
        samples::switching_key(p, KeyElement::Galois(5), 2, true, 10),
        stored_key(p),
        samples::switching_key(p, KeyElement::Galois(3), 0, true, 11),
    ]
}

fn specs(keys: &[SwitchingKey]) -> Vec<KeySpec> {
    keys.iter().map(|key| key.spec().clone()).collect()
}

fn file(name: &str, p: &Parameters) -> (PathBuf, Vec<SwitchingKey>) {
    let path = std::env::temp_dir().join(format!("keywright-shared-{name}-{}.kw", std::process::id()));
    let keys = keys(p);
    let mut writer = KeySetWriter::new(Vec::new(), &specs(&keys), p).unwrap();
    keys.iter().for_each(|key| writer.write(key).unwrap());
    fs::write(&path, writer.finish().unwrap()).unwrap();
    (path, keys)
}

fn loader(path: &Path, p: &Parameters) -> SharedKeyLoader {
    SharedKeyLoader::new(KeySetLoader::open(path, p).unwrap(), p).unwrap()
}

/// The bytes of every key, in the order of the set.
fn contents(keys: &EvaluationKeys, p: &Parameters) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.load().unwrap().to_bytes(p).unwrap()).collect()
}

fn again(file: SharedFile) -> SharedFile {
    let descriptor: OwnedFd = file.into_descriptor();
    SharedFile::of_descriptor(descriptor.as_raw_fd()).unwrap()
}

#[test]
fn keys_are_the_same_in_the_file_while_they_are_read_and_in_every_process() {
    let p = parameters();
    let (path, keys) = file("same", &p);
    let expected = contents(&EvaluationKeys::load(&path, &p).unwrap(), &p);
    let loader = loader(&path, &p);
    let sharing = loader.sharing();
    // Read from the last to the first: a program's order differs from that of the file.
    let steps: Vec<_> = keys.iter().rev().map(|key| vec![key.spec().clone()]).collect();
    let bytes = keys.iter().map(SwitchingKey::bytes).sum();
    let store = Arc::new(KeyStore::new(loader, &steps, bytes).unwrap());
    let read = store.keys(&p).unwrap();
    assert_eq!(contents(&read, &p), expected);
    let first = sharing.wait(|| false).unwrap();
    let second = sharing.wait(|| false).unwrap();
    drop((read, store));
    for memory in [first, second] {
        let mapped = shared_keys(&again(memory), &p).unwrap();
        assert!(mapped.all_in_memory());
        assert_eq!(contents(&mapped, &p), expected);
        assert_eq!(mapped.identity(), keys[0].identity());
        for (key, mapped_key) in
            keys.iter().zip(specs(&keys).iter().map(|spec| {
                mapped.iter().find(|mapped_key| mapped_key.spec() == spec).unwrap().load().unwrap()
            }))
        {
            assert!(mapped_key.b_rows().iter().all(|row| row.words().as_ptr().addr().is_multiple_of(64)));
            assert_eq!(mapped_key.to_bytes(&p).unwrap(), key.to_bytes(&p).unwrap());
        }
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn a_key_is_read_once() {
    let p = parameters();
    let (path, keys) = file("once", &p);
    let mut loader = loader(&path, &p);
    let mut given = Vec::new();
    for _ in 0..2 {
        loader
            .make(&[2, 0], &mut |place, key| given.push((place, key.b_rows()[0].words().as_ptr())), &|| false)
            .unwrap();
    }
    assert_eq!(given[..2], given[2..]);
    assert_eq!(given[0].0, 2);
    assert!(keys.len() > 2 && loader.sharing().wait(|| true).is_err());
    fs::remove_file(path).unwrap();
}

/// A file with the length and the head of another, and what writes its other bytes when they are waited for.
fn arriving(path: &Path, p: &Parameters) -> (PathBuf, Box<Arrival>) {
    let (whole, partial) = (fs::read(path).unwrap(), path.with_extension("part"));
    let set = KeySetFile::new(File::open(path).unwrap(), p).unwrap();
    let sizes: Vec<_> = set.entries().iter().map(|key| key.bytes as usize).collect();
    let head = whole.len() - sizes.iter().sum::<usize>();
    // The header of the first key, but not all of its contents.
    let begun = head + 512;
    assert!(sizes[0] > 1024);
    let mut there = vec![0; whole.len()];
    there[..begun].copy_from_slice(&whole[..begun]);
    fs::write(&partial, there).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&partial).unwrap();
    let wait = move |begin: u64, end: u64| {
        let mut file = &file;
        file.seek(SeekFrom::Start(begin))?;
        file.write_all(&whole[begin as usize..end as usize])
    };
    (partial, Box::new(wait))
}

#[test]
fn keys_are_read_when_their_bytes_are_there() {
    let p = parameters();
    let (path, keys) = file("arriving", &p);
    let expected: Vec<_> = keys.iter().map(|key| key.to_bytes(&p).unwrap()).collect();
    for damaged in [false, true] {
        let (partial, wait) = arriving(&path, &p);
        let last = keys.len() - 1;
        let wait: Box<Arrival> = if damaged {
            // A byte of the last key is another. After it, there is a checksum.
            let (end, other) = (fs::metadata(&partial).unwrap().len(), partial.clone());
            Box::new(move |begin, to| {
                wait(begin, to)?;
                if to + 64 > end {
                    let mut bytes = fs::read(&other)?;
                    bytes[to as usize - 100] ^= 1;
                    fs::write(&other, bytes)?;
                }
                Ok(())
            })
        } else {
            wait
        };
        let mut loader =
            SharedKeyLoader::new(KeySetLoader::open_arriving(&partial, &p, wait).unwrap(), &p).unwrap();
        let mut given = vec![Vec::new(); keys.len()];
        let order: Vec<_> = (0..last).rev().chain([last]).collect();
        let result = loader.make(&order, &mut |at, key| given[at] = key.to_bytes(&p).unwrap(), &|| false);
        assert!(given[..last] == expected[..last]);
        if damaged {
            assert!(result.unwrap_err().to_string().contains("checksum"));
            assert!(given[last].is_empty());
        } else {
            result.unwrap();
            assert!(given == expected);
        }
        fs::remove_file(partial).unwrap();
    }
    let gone: Box<Arrival> = Box::new(|_, _| Err(io::Error::other("the storage is away")));
    let mut loader = KeySetLoader::open_arriving(&path, &p, gone).unwrap();
    let error = loader.make(&[1], &mut |_, _| {}, &|| false).unwrap_err();
    assert!(matches!(&error, RlweError::KeySource { reason, .. } if reason.contains("away")), "{error}");
    fs::remove_file(path).unwrap();
}

#[test]
fn who_waits_is_told_why_there_will_be_no_keys() {
    let p = parameters();
    let (path, _) = file("damaged", &p);
    // A byte of the last key's body.
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.len() - 100;
    bytes[place] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut loader = loader(&path, &p);
    let sharing = loader.sharing();
    let waiting = std::thread::spawn(move || sharing.wait(|| false).unwrap_err().to_string());
    let error = loader.make(&[0, 1, 2, 3], &mut |_, _| {}, &|| false).unwrap_err();
    assert!(matches!(&error, RlweError::KeySource { reason, .. } if reason.contains("checksum")), "{error}");
    assert!(waiting.join().unwrap().contains("checksum"));
    // Waiting ends with the loader, or when the caller gives up.
    fs::remove_file(&path).unwrap();
    let (path, _) = file("dropped", &p);
    let loader = self::loader(&path, &p);
    let sharing = loader.sharing();
    assert!(matches!(sharing.wait(|| true).unwrap_err(), WireError::Rlwe(RlweError::Interrupted)));
    drop(loader);
    assert!(sharing.wait(|| false).unwrap_err().to_string().contains("has ended"));
    fs::remove_file(path).unwrap();
}

#[test]
fn memory_whose_heads_do_not_fit_its_words_is_refused() {
    let p = parameters();
    let (path, keys) = file("heads", &p);
    let mut loader = loader(&path, &p);
    let sharing = loader.sharing();
    loader.make(&[0, 1, 2, 3], &mut |_, _| {}, &|| false).unwrap();
    let whole = sharing.wait(|| false).unwrap();
    let (tail, words) = (whole.tail(u64::MAX).unwrap(), whole.words().unwrap());
    let parse = |words: &[u64], tail: &[u8]| {
        let mut writer = SharedWriter::new().unwrap();
        writer.append([words]).unwrap();
        shared_keys(&writer.finish(tail).unwrap(), &p)
    };
    assert_eq!(parse(&words, &tail).unwrap().len(), keys.len());
    assert!(matches!(parse(&words[..words.len() / 2], &tail).unwrap_err(), WireError::Truncated { .. }));
    assert!(matches!(
        parse(&words, &[&tail[..], &[0]].concat()).unwrap_err(),
        WireError::Trailing { extra: 1, .. }
    ));
    for length in [0, 10, tail.len() / 2, tail.len() - 1] {
        assert!(parse(&words, &tail[..length]).is_err(), "{length}");
    }
    // The position of the first key: a wrong one is anywhere else in memory.
    let last = tail.len() - 8;
    for start in [words.len() as u64, u64::MAX, u64::MAX / 8] {
        let moved = [&tail[..last], &start.to_ne_bytes()].concat();
        assert!(matches!(parse(&words, &moved).unwrap_err(), WireError::Truncated { .. }));
    }
    // Every byte of the heads is checked.
    for place in 0..last {
        let mut changed = tail.clone();
        changed[place] ^= 0x40;
        let starts_of_keys = parse(&words, &changed).is_ok();
        assert!(!starts_of_keys || !tail_is_head(&tail, place), "{place}");
    }
    fs::remove_file(path).unwrap();
}

/// Whether a byte of a tail belongs to a head: heads begin with the magic of the format and end 8 bytes before the
/// next.
fn tail_is_head(tail: &[u8], place: usize) -> bool {
    let magic = &tail[..8];
    let heads: Vec<usize> = (0..tail.len() - 8).filter(|&at| &tail[at..at + 8] == magic).collect();
    let ends = heads[1..].iter().copied().chain([tail.len()]);
    // The head of the set has no position after it.
    !ends.skip(1).any(|end| (end - 8..end).contains(&place))
}
