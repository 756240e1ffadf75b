//! Residues and ternary values as bit strings.
//!
//! A limb modulo a prime of `w` bits is the little-endian bit string in which residue `i` has bits
//! `w i .. w (i + 1)`. Eight residues fill exactly `w` bytes, and limbs are multiples of eight residues, so there
//! is no padding.
//!
//! One kernel packs eight residues, another unpacks them. If the width is a constant, so are all shifts and places.
//! [`pack`] and [`unpack`] have constants only for the widths of the shipped sets, because a microcontroller has no
//! room for more. [`pack_every_width`] and [`unpack_every_width`] have them for all widths, from [`MIN_WIDTH`] on.

pub use keywright_rlwe::ternary::{pack_ternary, packed_ternary_len, unpack_ternary};

/// A machine word for a residue.
pub trait Residue: Copy {
    /// The low bits of a word.
    fn from_u64(value: u64) -> Self;
    /// The same value.
    fn to_u64(self) -> u64;
}

impl Residue for u32 {
    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn to_u64(self) -> u64 {
        self.into()
    }
}

impl Residue for u64 {
    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        value
    }

    #[inline(always)]
    fn to_u64(self) -> u64 {
        self
    }
}

/// Bits of the narrowest residues: no smaller prime is 1 modulo `2N` at a supported degree.
pub const MIN_WIDTH: u32 = 12;

/// Bits of the narrowest values that [`unpack`] reads: it loads words, and eight values have to fill one.
pub const NARROWEST: u32 = 8;

/// Bytes of `count` residues of `width` bits; `count` is a multiple of eight.
#[inline]
pub const fn packed_len(count: usize, width: u32) -> usize {
    count / 8 * width as usize
}

/// `bytes` has `width` bytes.
#[inline(always)]
fn pack_eight<W: Residue>(width: usize, eight: &[W; 8], bytes: &mut [u8]) {
    let (mut word, mut filled, mut at) = (0u64, 0, 0);
    for &residue in eight {
        let residue = residue.to_u64();
        word |= residue << filled;
        filled += width;
        if filled >= 64 {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            at += 8;
            filled -= 64;
            word = residue.checked_shr((width - filled) as u32).unwrap_or(0);
        }
    }
    let rest = bytes.len() - at;
    bytes[at..].copy_from_slice(&word.to_le_bytes()[..rest]);
}

/// `bytes` has `width` bytes, [`NARROWEST`] or more.
#[inline(always)]
fn unpack_eight<W: Residue>(width: usize, bytes: &[u8], eight: &mut [W; 8]) {
    let mask = u64::MAX >> (64 - width);
    for (i, residue) in eight.iter_mut().enumerate() {
        // The last residues are loaded from the last word, so that no read passes the end of the group.
        let first = (i * width / 8).min(width - 8);
        let shift = i * width - 8 * first;
        let mut low = [0; 8];
        low.copy_from_slice(&bytes[first..first + 8]);
        let mut value = u64::from_le_bytes(low) >> shift;
        if shift + width > 64 {
            // Bits of the ninth byte.
            value |= u64::from(bytes[first + 8]) << (64 - shift);
        }
        *residue = W::from_u64(value & mask);
    }
}

fn pack_width<const WIDTH: usize, W: Residue>(residues: &[W], out: &mut [u8]) {
    for (eight, bytes) in residues.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<WIDTH>().0) {
        pack_eight(WIDTH, eight, bytes);
    }
}

fn unpack_width<const WIDTH: usize, W: Residue>(bytes: &[u8], out: &mut [W]) {
    for (bytes, eight) in bytes.as_chunks::<WIDTH>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        unpack_eight(WIDTH, bytes, eight);
    }
}

/// Packs residues below `2^width`; their number is a multiple of eight.
pub fn pack<W: Residue>(width: u32, residues: &[W], out: &mut [u8]) {
    match width {
        30 => pack_width::<30, W>(residues, out),
        50 => pack_width::<50, W>(residues, out),
        60 => pack_width::<60, W>(residues, out),
        _ => {
            let groups = out.chunks_exact_mut(width as usize);
            for (eight, bytes) in residues.as_chunks::<8>().0.iter().zip(groups) {
                pack_eight(width as usize, eight, bytes);
            }
        }
    }
}

/// Residues `start..` of a packed limb, as many as `out` holds, all below `2^width`; `start` is a multiple of eight.
///
/// # Panics
/// If the limb has fewer, or the width is below [`NARROWEST`].
pub fn unpack<W: Residue>(width: u32, packed: &[u8], start: usize, out: &mut [W]) {
    let bytes = part(width, packed, start, out.len());
    match width {
        30 => unpack_width::<30, W>(bytes, out),
        50 => unpack_width::<50, W>(bytes, out),
        60 => unpack_width::<60, W>(bytes, out),
        _ => {
            for (bytes, eight) in bytes.chunks_exact(width as usize).zip(out.as_chunks_mut::<8>().0) {
                unpack_eight(width as usize, bytes, eight);
            }
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
            $($w => $kernel::<$w, W>,)*
            other => unreachable!("no prime of {other} bits is 1 modulo 2N at a supported degree"),
        }
    };
}

/// [`pack`] with an instance for each width.
pub fn pack_every_width<W: Residue>(width: u32, residues: &[W], out: &mut [u8]) {
    let kernel: fn(&[W], &mut [u8]) = instance!(pack_width, width);
    kernel(residues, out);
}

/// [`unpack`] with an instance for each width.
///
/// # Panics
/// As [`unpack`].
pub fn unpack_every_width<W: Residue>(width: u32, packed: &[u8], start: usize, out: &mut [W]) {
    let kernel: fn(&[u8], &mut [W]) = instance!(unpack_width, width);
    kernel(part(width, packed, start, out.len()), out);
}

fn part(width: u32, packed: &[u8], start: usize, count: usize) -> &[u8] {
    &packed[packed_len(start, width)..packed_len(start + count, width)]
}

/// The first residue that is not below the modulus `q < 2^63`.
pub fn find_not_canonical<W: Residue>(q: u64, residues: &[W]) -> Option<usize> {
    // For words below 2^63, those above the modulus leave a borrow; other words have their own top bit set.
    let signs = residues.iter().map(|residue| residue.to_u64());
    let signs = signs.fold(0, |signs, residue| signs | residue | (q - 1).wrapping_sub(residue));
    if signs >> 63 == 0 {
        return None;
    }
    residues.iter().position(|residue| residue.to_u64() >= q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

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

    /// Edge values, then arbitrary ones.
    fn residues(width: u32) -> Vec<u64> {
        let mask = u64::MAX >> (64 - width);
        let mut state = u64::from(width);
        let mut residues: Vec<u64> = (0..256)
            .map(|_| {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                (state ^ state >> 32) & mask
            })
            .collect();
        residues[..9].copy_from_slice(&[mask, 0, mask, 0, 1, mask - 1, mask, mask, 0]);
        residues
    }

    #[test]
    fn every_width_is_the_definition() {
        for width in NARROWEST..=61 {
            let residues = residues(width);
            let expected = definition(width, &residues);
            // Those of every width are for primes.
            let ways = if width < MIN_WIDTH { 1 } else { 2 };
            for pack in [pack::<u64>, pack_every_width::<u64>].into_iter().take(ways) {
                let mut packed = vec![0xAA; expected.len()];
                pack(width, &residues, &mut packed);
                assert_eq!(packed, expected, "width {width}");
            }
            for unpack in [unpack::<u64>, unpack_every_width::<u64>].into_iter().take(ways) {
                let mut back = vec![u64::MAX; residues.len() - 24];
                unpack(width, &expected, 16, &mut back);
                assert_eq!(back, residues[16..residues.len() - 8], "width {width}");
            }
        }
    }

    #[test]
    fn narrow_words_have_the_same_bits() {
        for width in MIN_WIDTH..=32 {
            let wide = residues(width);
            let narrow: Vec<u32> = wide.iter().map(|&x| x as u32).collect();
            let mut packed = vec![0xAA; packed_len(wide.len(), width)];
            pack(width, &narrow, &mut packed);
            assert_eq!(packed, definition(width, &wide), "width {width}");
            let mut back = vec![u32::MAX; narrow.len()];
            unpack(width, &packed, 0, &mut back);
            assert_eq!(back, narrow, "width {width}");
        }
    }

    #[test]
    fn the_first_residue_that_is_not_canonical_is_found() {
        for q in [4097, (1 << 61) - 1] {
            assert_eq!(find_not_canonical(q, &[0, 1, q - 1]), None);
            assert_eq!(find_not_canonical(q, &[0, q, q - 1, q + 1]), Some(1));
            for word in [1 << 63, (1 << 63) + q, u64::MAX] {
                assert_eq!(find_not_canonical(q, &[0, word]), Some(1), "{word:#x}");
            }
        }
    }
}
