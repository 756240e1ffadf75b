//! Sums of planes. A plane has one or four bytes of each number.

use crate::Modulus;

/// `sums[i] += ` word `i` of every plane.
pub(crate) fn add_words(planes: &[&[u8]], sums: &mut [u64]) {
    // Four planes at a time, so that each accumulator is loaded and stored once for them.
    let (fours, rest) = planes.as_chunks::<4>();
    fours.iter().for_each(|planes| words(planes, sums));
    rest.iter().for_each(|plane| words(&[*plane], sums));
}

/// `sums[i] += ` byte `i` of every plane.
pub(crate) fn add_bytes(planes: &[&[u8]], sums: &mut [u16]) {
    let (fours, rest) = planes.as_chunks::<4>();
    fours.iter().for_each(|planes| bytes(planes, sums));
    rest.iter().for_each(|plane| bytes(&[*plane], sums));
}

/// [`crate::backend::Planes::fold_sums`].
pub(crate) fn fold_sums(m: &Modulus, high: &[&[u16]], sums: &mut [u64]) {
    for (j, high) in high.iter().enumerate() {
        sums.iter_mut().zip(*high).for_each(|(sum, &high)| *sum += u64::from(high) << (32 + 8 * j));
    }
    sums.iter_mut().for_each(|sum| *sum = m.reduce(*sum));
}

/// [`crate::backend::Planes::write_planes`].
#[inline(always)]
pub(crate) fn write_planes(words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]) {
    for (low, &word) in low.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *low = (word as u32).to_le_bytes();
    }
    for (j, plane) in high.iter_mut().enumerate() {
        plane.iter_mut().zip(words).for_each(|(byte, &word)| *byte = (word >> (32 + 8 * j)) as u8);
    }
}

fn words<const K: usize>(planes: &[&[u8]; K], sums: &mut [u64]) {
    let count = sums.len();
    let planes = planes.map(|plane| &plane.as_chunks::<4>().0[..count]);
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum += planes.iter().map(|plane| u64::from(u32::from_le_bytes(plane[i]))).sum::<u64>();
    }
}

fn bytes<const K: usize>(planes: &[&[u8]; K], sums: &mut [u16]) {
    let count = sums.len();
    let planes = planes.map(|plane| &plane[..count]);
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum += planes.iter().map(|plane| u16::from(plane[i])).sum::<u16>();
    }
}
