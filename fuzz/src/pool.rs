//! The two files of a pool, sealed anew: fields that only the owner of the file key can write must be read with care
//! too.
//!
//! An input is a header, two records of the register, a byte of switches and the slots. The target writes both files
//! and opens them.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::OnceLock;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use keywright_pool::{PoolFile, PoolFileOptions, ZeroKey};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::SecretKey;
use sha2::{Digest, Sha256};

use crate::targets;

/// Of the header, as in `crates/pool/src/file/data.rs`: magic, identifier, two fingerprints, three numbers.
const FIELDS: usize = 76;
const ID: std::ops::Range<usize> = 8..24;
/// Four words: sequence number, file number, first unused entry, first entry not yet stored.
const RECORD: usize = 32;
const IDENTITY: std::ops::Range<usize> = 8..16;
/// The offset of the slots, and of the second record.
const PAGE: usize = 4096;
const FILE_KEY: [u8; 32] = [7; 32];

fn rng(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&[byte; 32].into())
}

fn secret() -> &'static SecretKey {
    static SECRET: OnceLock<SecretKey> = OnceLock::new();
    SECRET.get_or_init(|| {
        SecretKey::sample(targets::context().rlwe(), &mut rng(1)).expect("the parameters have a secret")
    })
}

/// A folder for this process.
fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("keywright-fuzz-{}", process::id()))
}

fn options() -> PoolFileOptions {
    let (path, register) = (folder().join("zeros.pool"), Some(folder().join("register")));
    PoolFileOptions { path, key: FILE_KEY.into(), capacity: 2, register }
}

/// The seal of `context` alone, under the key of the file with this identifier.
fn seal(id: &[u8], context: &[u8]) -> Vec<u8> {
    let own =
        Sha256::new().chain_update(b"keywright pool file").chain_update(FILE_KEY).chain_update(id).finalize();
    let (cipher, nonce) = (XChaCha20Poly1305::new(&own), [9u8; 24]);
    let tag = cipher
        .encrypt_inout_detached(&XNonce::from(nonce), context, (&mut [][..]).into())
        .expect("it is short");
    [&nonce[..], &tag].concat()
}

/// Removes the files of a run.
pub fn clean() {
    let _ = fs::remove_dir_all(folder());
}

/// Makes the folder of the files.
pub(crate) fn prepare() {
    secret();
    fs::create_dir_all(folder().join("register")).expect("a temporary folder can be made");
}

/// A file with two entries.
pub fn seeds() -> Vec<Vec<u8>> {
    clean();
    prepare();
    let mut file = PoolFile::open(&options(), secret(), 0, rng(2)).expect("there is no such file yet");
    let zeros: Vec<_> =
        (0..2).map(|_| secret().encrypt_zero(0, &mut rng(3)).expect("level 0 exists")).collect();
    file.store(secret(), &zeros).expect("there is room");
    drop(file);
    let data = fs::read(options().path).expect("it was written");
    let mut records =
        [[0u64, 0, 0, 0], [2, 0, 0, 2]].concat().iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut input = data[..FIELDS].to_vec();
    input.append(&mut records);
    input.push(0);
    input.extend_from_slice(&data[PAGE..]);
    clean();
    vec![input]
}

/// Writes the files of an input and uses them; returns whether they opened.
pub(crate) fn target(input: &[u8]) -> bool {
    let Some((fields, rest)) = input.split_at_checked(FIELDS) else { return false };
    let Some((records, rest)) = rest.split_at_checked(2 * RECORD) else { return false };
    let Some((switches, slots)) = rest.split_first() else { return false };
    let (id, options) = (&fields[ID], options());
    let register = folder().join("register");
    let spoil = |bit: u8, mut bytes: Vec<u8>| {
        bytes[0] ^= switches >> bit & 1;
        bytes
    };
    let mut data = [fields, &spoil(0, seal(id, fields))[..]].concat();
    data.resize(PAGE, 0);
    data.extend_from_slice(slots);
    // Overwritten in place, so that the file keeps its number.
    fs::write(&options.path, data).expect("the file can be written");
    let identity = identity(&options.path).to_le_bytes();
    let mut written = vec![0; PAGE + RECORD + 40];
    for (k, record) in records.chunks(RECORD).enumerate() {
        let mut record = record.to_vec();
        if record[IDENTITY] == [0; 8] {
            record[IDENTITY].copy_from_slice(&identity);
        }
        let sealed =
            [&record[..], &spoil(k as u8 + 1, seal(id, &[b"register", id, &record[..]].concat()))[..]]
                .concat();
        written[k * PAGE..][..sealed.len()].copy_from_slice(&sealed);
    }
    let name: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = register.join(name);
    fs::write(&path, written).expect("the register can be written");
    let opened = PoolFile::open(&options, secret(), 0, rng(4));
    let accepted = opened.is_ok();
    if let Ok(mut file) = opened {
        let _ = file.take(secret(), 1);
        let zero = secret().encrypt_zero(0, &mut rng(5)).expect("level 0 exists");
        let _ = file.store(secret(), &[zero]);
        let _ = file.take(secret(), 2);
    }
    fs::remove_file(&path).expect("the register is there");
    accepted
}

/// The register's identity of the data file: its inode number and its creation time, joined as in `keywright-pool`.
fn identity(path: &std::path::Path) -> u64 {
    let metadata = fs::metadata(path).expect("the file is there");
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0u64;
    let made = metadata.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    number.rotate_left(32) ^ made.map_or(0, |since| since.as_nanos() as u64)
}
