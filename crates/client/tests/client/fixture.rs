use keywright_client::ClientError;

pub(crate) const SHIFT_ADD_30: u64 = (1 << 30) - (1 << 18) + 1;
pub(crate) const SHIFT_ADD_60: u64 = (1 << 60) - (1 << 18) + 1;
/// The largest primes of 29, 50 and 60 bits that are 1 modulo 2^18 and have no reduction of their own.
pub(crate) fn generic_primes() -> [u64; 3] {
    [29, 50, 60].map(|bits| keywright_ring::ntt_primes(17, bits, 1, &[SHIFT_ADD_60]).unwrap()[0])
}

/// A platform whose randomness counts up from a byte.
pub(crate) fn entropy(byte: u8) -> impl FnMut(&mut [u8]) -> Result<(), ClientError> {
    let mut next = byte;
    move |out| {
        for byte in out {
            *byte = next;
            next = next.wrapping_add(1);
        }
        Ok(())
    }
}
