use keywright_ring::expander::CHUNK_WORDS;
use keywright_ring::{Backend, Modulus, Seed, StreamId};

use crate::conformance::{assert_limb, portable};
use crate::samples::edge_primes;

/// Uniform limbs equal those of the portable back end bit for bit, for every field of the stream identifier, every
/// width, and primes just above a power of two, where almost every second candidate is rejected.
pub fn expansion_equals_portable(backend: &'static dyn Backend) {
    let ids = [
        StreamId { object: 0, digit: 0, limb: 0 },
        StreamId { object: u64::MAX, digit: 255, limb: u16::MAX },
        StreamId { object: 1 << 32 | 7, digit: 3, limb: 300 },
    ];
    for q in edge_primes(10) {
        #[expect(clippy::unwrap_used, reason = "edge primes are moduli")]
        let m = &Modulus::new(q).unwrap();
        for (number, id) in ids.into_iter().enumerate() {
            let seed = Seed(core::array::from_fn(|i| (i * 37 + number) as u8));
            for n in [1024, 1024 + 128, 1 << 13, 1 << 16] {
                let (mut seen, mut expected) = (vec![u64::MAX; n], vec![0; n]);
                backend.expand_uniform(&seed, id, m, &mut seen);
                portable().expand_uniform(&seed, id, m, &mut expected);
                assert_limb(&seen, &expected, || format!("stream {id:?}, {n} residues mod {q}"));
                let start = CHUNK_WORDS * (n / CHUNK_WORDS / 3);
                seen[start..].fill(u64::MAX);
                backend.expand_part(&seed, id, m, start, &mut seen[start..]);
                assert_limb(&seen, &expected, || format!("stream {id:?} from {start} on, mod {q}"));
            }
        }
    }
}
