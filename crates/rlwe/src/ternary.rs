//! Ternary values as bit strings: the form in which secrets are stored, sent and hashed.

/// Bytes of `count` ternary values, a multiple of four.
pub const fn packed_ternary_len(count: usize) -> usize {
    count / 4
}

/// Two bits a value, the lowest first: `00` is 0, `01` is 1, `11` is -1; no branch on them.
#[inline]
pub fn pack_ternary(values: &[i64], out: &mut [u8]) {
    for (four, byte) in values.as_chunks::<4>().0.iter().zip(out) {
        *byte = four.iter().rev().fold(0, |byte, &c| byte << 2 | (c & 3) as u8);
    }
}

/// The inverse of [`pack_ternary`]; returns how many codes are `10`.
#[inline]
pub fn unpack_ternary(packed: &[u8], out: &mut [i64]) -> usize {
    let mut invalid = 0;
    for (four, &byte) in out.as_chunks_mut::<4>().0.iter_mut().zip(packed) {
        for (i, value) in four.iter_mut().enumerate() {
            let code = u64::from(byte >> (2 * i)) & 3;
            invalid += (code >> 1 & !code & 1) as usize;
            // Sign-extends two bits.
            *value = (code << 62) as i64 >> 62;
        }
    }
    invalid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ternary_values_come_back() {
        let values = [0, 1, -1, 1, -1, -1, 0, 0];
        let mut packed = [0; 2];
        pack_ternary(&values, &mut packed);
        let mut back = [7; 8];
        assert_eq!(unpack_ternary(&packed, &mut back), 0);
        assert_eq!(back, values);
        assert_eq!(unpack_ternary(&[0b10_00_10_01], &mut back[..4]), 2);
    }
}
