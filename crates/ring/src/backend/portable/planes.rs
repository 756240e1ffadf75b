//! Sums of planes: numbers of one or four bytes, as many in each plane.

/// `sums[i] += ` word `i` of every plane.
pub(crate) fn add_words(planes: &[&[u8]], sums: &mut [u64]) {
    // Four at a time, so that an accumulator is loaded and stored once for them.
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
