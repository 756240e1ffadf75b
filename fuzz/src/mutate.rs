//! Mutations that know the frame of an object, so that most inputs get past the checksums.

use sha2::{Digest, Sha256};

use crate::random::Random;

const MAGIC: &[u8] = b"\x89KWRT\r\n\x1a";
/// Offsets of the frame, as in `docs/reference/format.md`.
const KIND: usize = 10;
const SUMMARY: usize = 12;
const DESCRIPTOR_LEN: usize = 32;
const BODY_LEN: usize = 36;
const DESCRIPTOR: usize = 44;
/// Kinds whose fingerprint follows from their own descriptor.
const PARAMETERS: u16 = 0x0001;
const CKKS_PARAMETERS: u16 = 0x0101;
const BFV_PARAMETERS: u16 = 0x0201;
/// A secret: its descriptor is the identity of the key, which follows from the body.
const SECRET: u16 = 0x8001;
const KEY_IDENTITY: usize = 16;
/// Inputs are kept below this, so that a run stays fast.
const LONGEST: usize = 1 << 18;

fn descriptor_len(object: &[u8]) -> usize {
    u32::from_le_bytes(object[DESCRIPTOR_LEN..BODY_LEN].try_into().unwrap_or_default()) as usize
}

/// Writes the checksums of an object anew, those of the objects inside it first.
pub fn reseal(object: &mut [u8]) {
    if object.len() < DESCRIPTOR + 8 {
        return;
    }
    let last = object.len() - 4;
    let end = DESCRIPTOR.saturating_add(descriptor_len(object)).min(last - 4);
    let inner: Vec<usize> = (end + 4..last).filter(|&at| object[at..last].starts_with(MAGIC)).collect();
    for (k, &start) in inner.iter().enumerate() {
        let stop = inner.get(k + 1).copied().unwrap_or(last);
        reseal_frame(&mut object[start..stop]);
    }
    reseal_frame(object);
}

fn reseal_frame(object: &mut [u8]) {
    if object.len() < DESCRIPTOR + 8 {
        return;
    }
    let last = object.len() - 4;
    let end = DESCRIPTOR.saturating_add(descriptor_len(object)).min(last - 4);
    identify(object, end);
    identify_key(object, end, last);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&object[..end]);
    object[end..end + 4].copy_from_slice(&checksum.clone().finalize().to_le_bytes());
    checksum.update(&object[end + 4..last]);
    object[last..].copy_from_slice(&checksum.finalize().to_le_bytes());
}

/// Parameters are their own identity: writes their summary and fingerprint anew. Other objects keep what they have.
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
    let summary = [fields[0], fields[6], fields[7], fields[1]];
    let digest = Sha256::new().chain_update(b"keywright parameters").chain_update(fields).finalize();
    overwrite(object, SUMMARY, &summary);
    overwrite(object, SUMMARY + 4, &digest[..16]);
}

/// Where one mutation strikes: anywhere, in the header, in the descriptor, or in the body.
/// A secret is of its own key: writes the identity anew.
fn identify_key(object: &mut [u8], end: usize, last: usize) {
    let kind = u16::from_le_bytes([object[KIND], object[KIND + 1]]);
    if kind == SECRET && end == DESCRIPTOR + KEY_IDENTITY {
        let found = Sha256::new_with_prefix("keywright key identity").chain_update(&object[end + 4..last]);
        object[DESCRIPTOR..end].copy_from_slice(&found.finalize()[..KEY_IDENTITY]);
    }
}

fn place(object: &[u8], random: &mut Random) -> usize {
    let end = (DESCRIPTOR + descriptor_len(object)).min(object.len());
    match random.below(8) {
        0 => random.below(object.len()),
        1 => random.below(DESCRIPTOR),
        2..=5 if end > DESCRIPTOR => DESCRIPTOR + random.below(end - DESCRIPTOR),
        _ => end + random.below(object.len() - end),
    }
}

fn overwrite(object: &mut [u8], at: usize, bytes: &[u8]) {
    for (target, source) in object.iter_mut().skip(at).zip(bytes) {
        *target = *source;
    }
}

/// One mutation. `other` is another object to take parts from.
fn step(object: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if object.len() < DESCRIPTOR + 8 {
        object.extend_from_slice(other);
        return;
    }
    let at = place(object, random);
    match random.below(13) {
        0..=2 => {
            if let Some(byte) = object.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => overwrite(object, at, &[random.interesting() as u8]),
        4 => {
            let width = 1 << random.below(4);
            overwrite(object, at, &random.interesting().to_le_bytes()[..width]);
        }
        5 => overwrite(object, BODY_LEN, &random.interesting().to_le_bytes()),
        6 => {
            let near = descriptor_len(object).wrapping_add(random.below(9)).wrapping_sub(4) as u32;
            let len = if random.below(2) == 0 { near } else { random.interesting() as u32 };
            overwrite(object, DESCRIPTOR_LEN, &len.to_le_bytes());
        }
        7 => overwrite(object, KIND, &other[KIND..KIND + 2]),
        8 => object.truncate(random.below(object.len())),
        9 => {
            // Bytes cut out or put in, with the lengths adjusted to them or not.
            let at = at.min(object.len());
            let count = random.below(40).min(object.len() - at);
            let in_descriptor = (DESCRIPTOR..DESCRIPTOR + descriptor_len(object)).contains(&at);
            let old = object.len();
            if random.below(2) == 0 {
                object.drain(at..at + count);
            } else {
                let bytes: Vec<u8> = (0..count).map(|_| random.word() as u8).collect();
                object.splice(at..at, bytes);
            }
            if random.below(4) != 0 && at >= DESCRIPTOR {
                adjust(object, old, in_descriptor);
            }
        }
        10 => {
            let from = place(other, random);
            let count = random.below(64).min(other.len() - from);
            overwrite(object, at, &other[from..from + count]);
        }
        11 => {
            let run = vec![if random.below(2) == 0 { 0xFF } else { 0 }; random.below(64)];
            overwrite(object, at, &run);
        }
        _ => {
            // A header with the body of another object.
            let end = (DESCRIPTOR + descriptor_len(object)).min(object.len());
            let other_end = (DESCRIPTOR + descriptor_len(other)).min(other.len());
            object.truncate(end);
            object.extend_from_slice(&other[other_end..]);
        }
    }
    object.truncate(LONGEST);
}

/// Corrects the length of the descriptor or the body for bytes put in or cut out.
fn adjust(object: &mut [u8], old: usize, in_descriptor: bool) {
    let (new, old) = (object.len() as u64, old as u64);
    if object.len() < DESCRIPTOR {
        return;
    }
    if in_descriptor {
        let len = (descriptor_len(object) as u64).wrapping_add(new).wrapping_sub(old) as u32;
        overwrite(object, DESCRIPTOR_LEN, &len.to_le_bytes());
    } else {
        let len = u64::from_le_bytes(object[BODY_LEN..DESCRIPTOR].try_into().unwrap_or_default());
        overwrite(object, BODY_LEN, &len.wrapping_add(new).wrapping_sub(old).to_le_bytes());
    }
}

/// A mutated copy of one of the seeds. Nine out of ten have correct checksums.
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut object = seeds[random.below(seeds.len())].clone();
    let other = &seeds[random.below(seeds.len())];
    for _ in 0..=random.below(3) {
        step(&mut object, other, random);
    }
    if random.below(10) != 0 {
        reseal(&mut object);
    }
    object
}
