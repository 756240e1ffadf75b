//! Key sets key by key, from streams and from files.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::samples::{self, key_set, parameters, seeded_key, stored_key};
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyIdentity, KeySpec, Parameters, RlweError, SwitchingKey};
use keywright_wire::{AtomicFile, KeySetFile, KeySetReader, KeySetWriter, Wire, WireError, WireSecret};

/// Several keys of one element, in the order of a program instead of that of elements.
fn keys(p: &Parameters) -> Vec<SwitchingKey> {
    vec![
        seeded_key(p),
        stored_key(p),
        samples::switching_key(p, KeyElement::Galois(5), 2, true, 10),
        samples::switching_key(p, KeyElement::Galois(3), 0, true, 11),
        samples::switching_key(p, KeyElement::Galois(5), 0, true, 12),
    ]
}

fn specs(keys: &[SwitchingKey]) -> Vec<KeySpec> {
    keys.iter().map(|key| key.spec().clone()).collect()
}

fn written(p: &Parameters) -> Vec<u8> {
    let keys = keys(p);
    let mut writer = KeySetWriter::new(Vec::new(), &specs(&keys), p).unwrap();
    for key in &keys {
        assert_eq!(writer.next_spec(), Some(key.spec()));
        writer.write(key).unwrap();
    }
    assert_eq!(writer.next_spec(), None);
    writer.finish().unwrap()
}

fn bytes(key: &SwitchingKey, p: &Parameters) -> Vec<u8> {
    key.to_bytes(p).unwrap()
}

/// A directory of this test, removed by the system's own cleaning.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("keywright-wire-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// Bytes of the header of a key with its checksum.
fn header_len(key: &[u8]) -> usize {
    44 + u32::from_le_bytes(key[32..36].try_into().unwrap()) as usize + 4
}

/// Updates the checksum of a key's header, and that of the key.
fn reseal_key(key: &mut [u8]) {
    let (end, last) = (header_len(key) - 4, key.len() - 4);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&key[..end]);
    key[end..end + 4].copy_from_slice(&checksum.clone().finalize().to_le_bytes());
    checksum.update(&key[end + 4..last]);
    key[last..].copy_from_slice(&checksum.finalize().to_le_bytes());
}

#[test]
fn keys_of_two_secrets_are_no_set() {
    let p = parameters();
    let set = written(&p);
    let entries = KeySetReader::new(&set[..], &p).unwrap().entries().to_vec();
    let body: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let first = set.len() - 4 - body as usize;
    let second = first + entries[0].bytes as usize;
    let end = second + entries[1].bytes as usize;
    let edited = |edit: &dyn Fn(&mut [u8])| {
        let mut bytes = set.clone();
        edit(&mut bytes[second..end]);
        reseal_key(&mut bytes[second..end]);
        let last = bytes.len() - 4;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&bytes[..first - 4]);
        checksum.update(&bytes[first..last]);
        bytes[last..].copy_from_slice(&checksum.finalize().to_le_bytes());
        bytes
    };
    assert!(edited(&|_| {}) == set);
    // The identity of the second key is another one.
    let foreign = edited(&|key| key[44..60].fill(0x11));
    let mismatch = |error| matches!(error, WireError::Rlwe(RlweError::KeyMismatch { .. }));
    assert!(mismatch(EvaluationKeys::from_bytes(&foreign, &p).unwrap_err()));
    assert!(mismatch(KeySetReader::new(&foreign[..], &p).unwrap().nth(1).unwrap().unwrap_err()));
    let mut file = KeySetFile::new(Cursor::new(&foreign), &p).unwrap();
    assert_eq!(file.identity(), seeded_key(&p).identity());
    assert!(file.read(0).is_ok() && mismatch(file.read(1).unwrap_err()));
    // A key of another format version.
    let old = edited(&|key| key[8] = 1);
    assert!(matches!(EvaluationKeys::from_bytes(&old, &p).unwrap_err(), WireError::Version { found: 1, .. }));
    // Writing such a set fails too.
    let keys = keys(&p);
    let (spec, b) = (keys[1].spec().clone(), keys[1].b_rows().to_vec());
    let other =
        SwitchingKey::from_parts(&p, KeyIdentity([9; 16]), spec, b, keys[1].uniform().clone()).unwrap();
    let mut writer = KeySetWriter::new(Vec::new(), &specs(&keys), &p).unwrap();
    writer.write(&keys[0]).unwrap();
    assert!(mismatch(writer.write(&other).unwrap_err()));
}

#[test]
fn a_stream_gives_the_keys_in_stored_order() {
    let p = parameters();
    let set = written(&p);
    let reader = KeySetReader::new(&set[..], &p).unwrap();
    assert_eq!(reader.entries().len(), 5);
    let read: Vec<_> = reader.map(|key| bytes(&key.unwrap(), &p)).collect();
    let expected: Vec<_> = keys(&p).iter().map(|key| bytes(key, &p)).collect();
    assert!(read == expected);
}

#[test]
fn a_set_as_a_whole_is_the_same_format() {
    let p = parameters();
    let whole = key_set(&p);
    let mut writer =
        KeySetWriter::new(Vec::new(), &whole.iter().map(|key| key.spec().clone()).collect::<Vec<_>>(), &p)
            .unwrap();
    whole.iter().for_each(|key| writer.write(&key.load().unwrap()).unwrap());
    assert!(writer.finish().unwrap() == whole.to_bytes(&p).unwrap());
    let loaded = EvaluationKeys::from_bytes(&written(&p), &p).unwrap();
    assert_eq!(loaded.len(), 5);
    assert_eq!(loaded.best(KeyElement::Galois(5), 2, false).unwrap().key.spec().level, 2);
}

#[test]
fn one_key_is_read_alone() {
    let p = parameters();
    let mut damaged = written(&p);
    let all = keys(&p);
    // Every other key is destroyed except for the first one's header: reading one key does not notice.
    let mut file = KeySetFile::new(Cursor::new(damaged.clone()), &p).unwrap();
    let lengths: Vec<u64> = file.entries().iter().map(|entry| entry.bytes).collect();
    let start = damaged.len() - 4 - lengths.iter().sum::<u64>() as usize;
    let third = start + (lengths[0] + lengths[1]) as usize;
    let header = header_len(&damaged[start..]);
    damaged[start + header..third].fill(0xFF);
    damaged[third + lengths[2] as usize..].fill(0xFF);
    let mut broken = KeySetFile::new(Cursor::new(damaged), &p).unwrap();
    assert!(bytes(&broken.read(2).unwrap(), &p) == bytes(&all[2], &p));
    assert!(matches!(broken.read(1), Err(WireError::Magic { .. })));
    for (index, key) in all.iter().enumerate().rev() {
        assert!(bytes(&file.read(index).unwrap(), &p) == bytes(key, &p));
    }
    assert!(matches!(file.read(5), Err(WireError::KeyCount { found: 6, expected: 5 })));
}

/// Counts the bytes that are read.
struct Counting<R> {
    inner: R,
    read: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        self.read += count as u64;
        Ok(count)
    }
}

impl<R: Seek> Seek for Counting<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn reading_one_key_reads_no_other_but_the_header_of_the_first() {
    let p = parameters();
    let set = written(&p);
    let length = KeySetFile::new(Cursor::new(&set), &p).unwrap().entries()[3].bytes;
    let mut source = Counting { inner: Cursor::new(&set), read: 0 };
    let mut file = KeySetFile::new(&mut source, &p).unwrap();
    file.read(3).unwrap();
    let directory = set.len() as u64 - 4 - file.entries().iter().map(|entry| entry.bytes).sum::<u64>();
    drop(file);
    let header = header_len(&set[directory as usize..]) as u64;
    assert_eq!(source.read, directory + header + length);
}

#[test]
fn the_writer_holds_to_its_directory() {
    let p = parameters();
    let all = keys(&p);
    let mut writer = KeySetWriter::new(Vec::new(), &specs(&all[..2]), &p).unwrap();
    assert!(matches!(writer.write(&all[1]), Err(WireError::KeyOrder { index: 0, .. })));
    writer.write(&all[0]).unwrap();
    writer.write(&all[1]).unwrap();
    assert!(matches!(writer.write(&all[2]), Err(WireError::KeyCount { found: 3, expected: 2 })));
    let mut early = KeySetWriter::new(Vec::new(), &specs(&all[..2]), &p).unwrap();
    early.write(&all[0]).unwrap();
    assert!(matches!(early.finish(), Err(WireError::KeyCount { found: 1, expected: 2 })));
    let illegal = KeySpec { level: 7, ..all[0].spec().clone() };
    let refused = KeySetWriter::new(Vec::new(), &[illegal], &p).err();
    assert!(matches!(refused, Some(WireError::Rlwe(RlweError::Level { level: 7, .. }))));
}

#[test]
fn an_interrupted_set_is_not_a_set() {
    let p = parameters();
    let set = written(&p);
    for len in (0..set.len()).step_by(1009).chain([set.len() - 1]) {
        assert!(KeySetFile::new(Cursor::new(&set[..len]), &p).is_err(), "{len}");
        let streamed: Result<Vec<_>, _> = match KeySetReader::new(&set[..len], &p) {
            Ok(reader) => reader.collect(),
            Err(error) => Err(error),
        };
        assert!(matches!(streamed, Err(WireError::Truncated { .. })), "{len}");
    }
    let longer = [&set[..], b"?"].concat();
    assert!(matches!(KeySetFile::new(Cursor::new(longer), &p), Err(WireError::Trailing { extra: 1, .. })));
}

/// The reader ends after an error: it does not continue in damaged bytes.
#[test]
fn a_damaged_key_ends_the_stream() {
    let p = parameters();
    let mut set = written(&p);
    let length = KeySetFile::new(Cursor::new(&set), &p).unwrap().entries()[4].bytes as usize;
    let last = set.len() - 4 - length / 2;
    set[last] ^= 1;
    let mut reader = KeySetReader::new(&set[..], &p).unwrap();
    assert_eq!(reader.by_ref().take_while(Result::is_ok).count(), 4);
    assert!(reader.next().is_none());
}

/// A key at the place of another one, with all checksums intact.
#[test]
fn keys_must_be_where_the_directory_says() {
    let p = parameters();
    let twins: Vec<_> = [3, 5]
        .map(|g| samples::switching_key(&p, KeyElement::Galois(g), 0, true, 20 + g))
        .into_iter()
        .collect();
    let mut writer = KeySetWriter::new(Vec::new(), &specs(&twins), &p).unwrap();
    twins.iter().for_each(|key| writer.write(key).unwrap());
    let set = writer.finish().unwrap();
    let length = bytes(&twins[0], &p).len();
    let start = set.len() - 4 - 2 * length;
    let swapped = [&set[..start], &set[start + length..set.len() - 4], &set[start..start + length]].concat();
    let first = KeySetReader::new(&swapped[..], &p).unwrap().next().unwrap();
    assert!(matches!(first, Err(WireError::KeyOrder { index: 0, .. })));
    let mut file = KeySetFile::new(Cursor::new([&swapped[..], &[0; 4]].concat()), &p).unwrap();
    assert!(matches!(file.read(1), Err(WireError::KeyOrder { index: 1, .. })));
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let p = parameters();
    let directory = directory("atomic");
    let path = directory.join("keys.kw");
    let entries = || fs::read_dir(&directory).unwrap().count();

    let all = keys(&p);
    let mut writer = KeySetWriter::new(AtomicFile::create(&path).unwrap(), &specs(&all), &p).unwrap();
    writer.write(&all[0]).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(entries(), 0, "an abandoned file leaves nothing");

    let mut writer = KeySetWriter::new(AtomicFile::create(&path).unwrap(), &specs(&all), &p).unwrap();
    all.iter().for_each(|key| writer.write(key).unwrap());
    writer.finish().unwrap().commit().unwrap();
    assert_eq!(entries(), 1);
    let mut file = KeySetFile::new(File::open(&path).unwrap(), &p).unwrap();
    assert!(bytes(&file.read(3).unwrap(), &p) == bytes(&all[3], &p));

    // The old file stays until its replacement is whole.
    let before = fs::read(&path).unwrap();
    let mut broken = samples::evaluations(&p);
    broken.limb_mut(0)[0] = u64::MAX;
    assert!(broken.save(&path, &p).is_err());
    assert!(fs::read(&path).unwrap() == before && entries() == 1);
    samples::ciphertext(&p).save(&path, &p).unwrap();
    assert!(keywright_rlwe::RlweCiphertext::load(&path, &p).unwrap() == samples::ciphertext(&p));
    let mut longer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    longer.write_all(b"?").unwrap();
    let error = keywright_rlwe::RlweCiphertext::load(&path, &p).unwrap_err();
    assert!(matches!(error, WireError::Trailing { extra: 1, .. }));
    assert!(AtomicFile::create(directory.join("no such").join("file")).is_err());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn secrets_are_stored_for_their_owner_only() {
    let p = parameters();
    let directory = directory("secret");
    let path = directory.join("secret.kw");
    let secret = samples::secret_key(&p);
    secret.save_secret(&path, &p).unwrap();
    let loaded = keywright_rlwe::SecretKey::load_secret(&path, &p).unwrap();
    assert_eq!(loaded.coefficients(), secret.coefficients());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    fs::remove_dir_all(directory).unwrap();
}
