//! Residues as bit strings.
//!
//! A limb modulo a prime of `w` bits is the little-endian bit string in which residue `i` has bits `w i .. w (i + 1)`.
//! Eight residues fill exactly `w` bytes, and limbs are multiples of eight residues, so there is no padding. The kernels
//! are compiled for every width, so that all shifts and offsets are constants.

/// Bytes of `count` residues of `width` bits.
pub(crate) fn packed_len(count: usize, width: u32) -> usize {
    count / 8 * width as usize
}

fn pack_width<const W: usize>(residues: &[u64], out: &mut [u8]) {
    for (eight, bytes) in residues.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<W>().0) {
        let (mut word, mut filled, mut at) = (0, 0, 0);
        for &residue in eight {
            word |= residue << filled;
            filled += W;
            if filled >= 64 {
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
                at += 8;
                filled -= 64;
                word = residue.checked_shr((W - filled) as u32).unwrap_or(0);
            }
        }
        bytes[at..].copy_from_slice(&word.to_le_bytes()[..W - at]);
    }
}

fn unpack_width<const W: usize>(bytes: &[u8], residues: &mut [u64]) {
    let mask = u64::MAX >> (64 - W);
    for (bytes, eight) in bytes.as_chunks::<W>().0.iter().zip(residues.as_chunks_mut::<8>().0) {
        for (i, residue) in eight.iter_mut().enumerate() {
            // The last residues are loaded from the last word, so that nothing is read past the group.
            let first = (i * W / 8).min(W - 8);
            let shift = i * W - 8 * first;
            let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
            let mut value = word(first) >> shift;
            if shift + W > 64 {
                // Bits of the ninth byte.
                value |= u64::from(bytes[first + 8]) << (64 - shift);
            }
            *residue = value & mask;
        }
    }
}

/// The instance of a kernel for a width.
macro_rules! instance {
    ($kernel:ident, $width:expr) => {
        instance!($kernel, $width, [
            12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46
            47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
        ])
    };
    ($kernel:ident, $width:expr, [$($w:literal)*]) => {
        match $width {
            $($w => $kernel::<$w>,)*
            other => unreachable!("no prime of {other} bits is 1 modulo 2N at a supported degree"),
        }
    };
}

/// Packs residues below `2^width`; their number is a multiple of eight.
pub(crate) fn pack(width: u32, residues: &[u64], out: &mut [u8]) {
    let kernel: fn(&[u64], &mut [u8]) = instance!(pack_width, width);
    kernel(residues, out);
}

/// The inverse of [`pack`]: every value is below `2^width`.
pub(crate) fn unpack(width: u32, bytes: &[u8], residues: &mut [u64]) {
    let kernel: fn(&[u8], &mut [u64]) = instance!(unpack_width, width);
    kernel(bytes, residues);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, from the definition.
    fn definition(width: u32, residues: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; packed_len(residues.len(), width)];
        for (i, residue) in residues.iter().enumerate() {
            for bit in 0..width as usize {
                let position = i * width as usize + bit;
                bytes[position / 8] |= ((residue >> bit & 1) as u8) << (position % 8);
            }
        }
        bytes
    }

    #[test]
    fn every_width_agrees_with_the_definition() {
        for width in 12..=61 {
            let mask = u64::MAX >> (64 - width);
            let mut state = u64::from(width);
            let mut residues: Vec<u64> = (0..256)
                .map(|_| {
                    state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                    (state ^ state >> 32) & mask
                })
                .collect();
            residues[..9].copy_from_slice(&[mask, 0, mask, 0, 1, mask - 1, mask, mask, 0]);
            let mut packed = vec![0xAA; packed_len(residues.len(), width)];
            pack(width, &residues, &mut packed);
            assert_eq!(packed, definition(width, &residues), "width {width}");
            let mut back = vec![u64::MAX; residues.len()];
            unpack(width, &packed, &mut back);
            assert_eq!(back, residues, "width {width}");
        }
    }
}
