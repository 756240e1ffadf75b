//! The archives of `fuzz/corpus`: zip files whose entries are not compressed, see `fuzz/python/corpus.py`.

use std::fs;

use crate::root;

/// First bytes of an entry, and of the table of contents that follows all entries.
const ENTRY: &[u8] = b"PK\x03\x04";
const CONTENTS: &[u8] = b"PK\x01\x02";
/// Bytes of an entry before its name.
const FIXED: usize = 30;

/// The inputs of a target, with their names.
///
/// # Panics
/// There is no such archive, or it has compressed entries.
pub fn read(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = root().join("corpus").join(target).with_extension("zip");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut rest, mut inputs) = (&bytes[..], Vec::new());
    while rest.starts_with(ENTRY) {
        let short = |at: usize| usize::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
        let (flags, method, name, extra) = (short(6), short(8), short(26), short(28));
        assert_eq!((flags, method, extra), (0, 0, 0), "{}: an entry is not plain", path.display());
        let len = short(18) | short(20) << 16;
        let (head, data) = (&rest[..FIXED + name], &rest[FIXED + name..][..len]);
        inputs.push((String::from_utf8_lossy(&head[FIXED..]).into_owned(), data.to_vec()));
        rest = &rest[FIXED + name + len..];
    }
    assert!(rest.starts_with(CONTENTS), "{}: not an archive", path.display());
    inputs
}
