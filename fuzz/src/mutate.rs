//! Mutations that know the frame of an object, so that most inputs pass the checksums.
//!
//! libFuzzer changes bytes. This code chooses where, and updates what depends on them: lengths, identities, checksums.

use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::random::Random;

const MAGIC: &[u8] = b"\x89KWRT\r\n\x1a";
/// Offsets of the frame, as in `docs/reference/format.md`.
const KIND: usize = 10;
const SUMMARY: usize = 12;
const DESCRIPTOR_LEN: usize = 32;
const BODY_LEN: usize = 36;
const DESCRIPTOR: usize = 44;
const CHECKSUM: usize = 4;
const SHORTEST: usize = DESCRIPTOR + 2 * CHECKSUM;
/// Kinds whose fingerprint follows from their own descriptor.
const PARAMETERS: u16 = 0x0001;
const CKKS_PARAMETERS: u16 = 0x0101;
const BFV_PARAMETERS: u16 = 0x0201;
/// A secret: its descriptor is the identity of the key, which depends on the body.
const SECRET: u16 = 0x8001;
const KEY_IDENTITY: usize = 16;
/// Most bytes that one mutation inserts.
const ROOM: usize = 64;

/// libFuzzer's mutation of the first `size` bytes, which become at most `max_size`. Returns their number.
pub type Change = fn(data: &mut [u8], size: usize, max_size: usize) -> usize;

/// Mutates an object of `size` bytes in a buffer of at least `max_size`, and returns its size. Nine out of ten have
/// correct checksums.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32, change: Change) -> usize {
    let mut random = Random(seed.into());
    let mut object = data[..size].to_vec();
    strike(&mut object, &mut random, change);
    object.truncate(max_size);
    if random.below(10) != 0 {
        reseal(&mut object);
    }
    data[..object.len()].copy_from_slice(&object);
    object.len()
}

/// Changes the whole, the header, the descriptor, the body, or recursively an object within the body.
fn strike(object: &mut Vec<u8>, random: &mut Random, change: Change) {
    let Some([end, last]) = parts(object) else {
        let len = object.len();
        return splice(object, 0..len, change);
    };
    match random.below(10) {
        0 => splice(object, 0..object.len(), change),
        1 | 2 => {
            // Its length stays the same.
            let _ = change(&mut object[..DESCRIPTOR], DESCRIPTOR, DESCRIPTOR);
        }
        3..=5 => splice_adjusted(object, DESCRIPTOR..end, random, change),
        6 | 7 => splice_adjusted(object, end + CHECKSUM..last, random, change),
        _ => {
            let inner = objects_within(object, end + CHECKSUM..last);
            let Some(range) = inner.get(random.below(inner.len())).cloned() else {
                return splice_adjusted(object, DESCRIPTOR..end, random, change);
            };
            let (old, mut part) = (object.len(), object[range.clone()].to_vec());
            strike(&mut part, random, change);
            object.splice(range, part);
            adjust(object, old, BODY_LEN);
        }
    }
}

fn splice(object: &mut Vec<u8>, range: Range<usize>, change: Change) {
    let len = range.len();
    let mut part = object[range.clone()].to_vec();
    part.resize(len + ROOM, 0);
    let changed = change(&mut part, len, len + ROOM);
    object.splice(range, part[..changed].iter().copied());
}

/// Three times out of four the frame states the new length.
fn splice_adjusted(object: &mut Vec<u8>, range: Range<usize>, random: &mut Random, change: Change) {
    let (old, field) = (object.len(), if range.start == DESCRIPTOR { DESCRIPTOR_LEN } else { BODY_LEN });
    splice(object, range, change);
    if random.below(4) != 0 {
        adjust(object, old, field);
    }
}

/// Adds the growth of the object to a length of the frame.
fn adjust(object: &mut [u8], old: usize, field: usize) {
    let width = if field == DESCRIPTOR_LEN { 4 } else { 8 };
    let mut stated = [0; 8];
    stated[..width].copy_from_slice(&object[field..field + width]);
    let grown = (object.len() as u64).wrapping_sub(old as u64);
    let stated = u64::from_le_bytes(stated).wrapping_add(grown).to_le_bytes();
    object[field..field + width].copy_from_slice(&stated[..width]);
}

/// The ends of the descriptor and of the body, by the stated lengths of the descriptor and of the object; None if it is
/// too short for a frame.
fn parts(object: &[u8]) -> Option<[usize; 2]> {
    let last = object.len().checked_sub(CHECKSUM).filter(|_| object.len() >= SHORTEST)?;
    let stated = u32::from_le_bytes(object[DESCRIPTOR_LEN..BODY_LEN].try_into().ok()?) as usize;
    Some([DESCRIPTOR.saturating_add(stated).min(last - CHECKSUM), last])
}

/// Objects in a range, each up to the next.
fn objects_within(object: &[u8], range: Range<usize>) -> Vec<Range<usize>> {
    let starts: Vec<usize> = range.clone().filter(|&at| object[at..range.end].starts_with(MAGIC)).collect();
    let ends = starts.iter().skip(1).copied().chain([range.end]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// Updates the checksums of an object, or those of several objects in a row.
pub fn reseal(mut objects: &mut [u8]) {
    loop {
        let end =
            stated_len(objects).filter(|&len| objects.get(len..).is_some_and(|rest| rest.starts_with(MAGIC)));
        let Some(end) = end else { return reseal_nested(objects) };
        let (first, rest) = objects.split_at_mut(end);
        reseal_nested(first);
        objects = rest;
    }
}

/// For an object, by the lengths in its header.
fn stated_len(object: &[u8]) -> Option<usize> {
    let descriptor = u32::from_le_bytes(object.get(DESCRIPTOR_LEN..BODY_LEN)?.try_into().ok()?) as usize;
    let body = u64::from_le_bytes(object.get(BODY_LEN..DESCRIPTOR)?.try_into().ok()?);
    (DESCRIPTOR + descriptor + 2 * CHECKSUM).checked_add(usize::try_from(body).ok()?)
}

/// The objects inside of it first.
fn reseal_nested(object: &mut [u8]) {
    let Some([end, last]) = parts(object) else { return };
    for range in objects_within(object, end + CHECKSUM..last) {
        reseal_frame(&mut object[range]);
    }
    reseal_frame(object);
}

fn reseal_frame(object: &mut [u8]) {
    let Some([end, last]) = parts(object) else { return };
    identify(object, end);
    identify_key(object, end, last);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&object[..end]);
    object[end..end + CHECKSUM].copy_from_slice(&checksum.clone().finalize().to_le_bytes());
    checksum.update(&object[end + CHECKSUM..last]);
    object[last..].copy_from_slice(&checksum.finalize().to_le_bytes());
}

/// Parameters are their own identity: updates their summary and fingerprint. Other objects keep theirs.
fn identify(object: &mut [u8], end: usize) {
    let encoding = match u16::from_le_bytes([object[KIND], object[KIND + 1]]) {
        PARAMETERS => DESCRIPTOR..end,
        CKKS_PARAMETERS | BFV_PARAMETERS => DESCRIPTOR..end.saturating_sub(8),
        _ => return,
    };
    if encoding.len() < 8 {
        return;
    }
    let fields = &object[encoding];
    let summary = [fields[0], fields[6], fields[7], fields[1] & 1];
    let digest = Sha256::new().chain_update(b"keywright parameters").chain_update(fields).finalize();
    object[SUMMARY..SUMMARY + 4].copy_from_slice(&summary);
    object[SUMMARY + 4..SUMMARY + 20].copy_from_slice(&digest[..16]);
}

/// A secret belongs to its own key: updates the identity. If secrets of smaller rings follow, its own length is the
/// largest power of two.
fn identify_key(object: &mut [u8], end: usize, last: usize) {
    let kind = u16::from_le_bytes([object[KIND], object[KIND + 1]]);
    let body = end + CHECKSUM..last;
    if kind == SECRET && end == DESCRIPTOR + KEY_IDENTITY && !body.is_empty() {
        let own = body.start..body.start + (1 << body.len().ilog2());
        let found = Sha256::new_with_prefix("keywright key identity").chain_update(&object[own]);
        object[DESCRIPTOR..end].copy_from_slice(&found.finalize()[..KEY_IDENTITY]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(name: &str) -> Vec<u8> {
        std::fs::read(crate::root().join("../vectors/wire/v2").join(name)).unwrap()
    }

    /// One more byte at the end, as libFuzzer may choose.
    fn longer(data: &mut [u8], size: usize, max_size: usize) -> usize {
        let new = (size + 1).min(max_size);
        data[new - 1] = 7;
        new
    }

    #[test]
    fn what_is_sealed_is_sealed_again_as_it_was() {
        for name in ["parameters.kw", "secret_key.kw", "key_set.kw", "bfv_parameters.kw"] {
            let object = golden(name);
            let mut sealed = object.clone();
            reseal(&mut sealed);
            assert_eq!(sealed, object, "{name}");
            let mut two = [&object[..], &object].concat();
            reseal(&mut two);
            assert_eq!(two, [&object[..], &object].concat(), "{name} twice");
        }
    }

    #[test]
    fn lengths_and_checksums_follow_what_is_put_in() {
        let object = golden("public_key.kw");
        let [end, last] = parts(&object).unwrap();
        let mut longer_ones = [0; 2];
        for seed in 0..200 {
            let mut data = object.clone();
            data.resize(object.len() + ROOM, 0);
            let size = mutate(&mut data, object.len(), object.len() + ROOM, seed, longer);
            data.truncate(size);
            let mut sealed = data.clone();
            reseal(&mut sealed);
            if sealed == data && size == object.len() + 1 {
                let [new_end, new_last] = parts(&data).unwrap();
                longer_ones[0] += usize::from([new_end, new_last] == [end + 1, last + 1]);
                let body = u64::from_le_bytes(data[BODY_LEN..DESCRIPTOR].try_into().unwrap());
                longer_ones[1] += usize::from(body == (last - end - CHECKSUM + 1) as u64);
            }
        }
        assert!(longer_ones.iter().all(|&count| count > 10), "{longer_ones:?}");
    }
}
