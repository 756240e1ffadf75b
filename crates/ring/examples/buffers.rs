//! Page faults of buffers whose lengths follow the levels of a network: `cargo run --release --example buffers`.
//!
//! Beside 900 MB that stay, as keys do, every level from 26 to 0 takes ciphertexts and scratch of its own lengths, in
//! rings of three degrees, and keeps some of them for a while. After the first pass all memory has been touched. What a
//! pass still takes of the system is memory that was returned in between.

use keywright_ring::{Buffer, buffer_use, return_large_blocks};

const N: usize = 1 << 16;
const KEY_WORDS: usize = 900 << 17;
const LEVELS: usize = 27;
const OPERATIONS: usize = 12;
const SCRATCH: usize = 6;
/// Ciphertext halves that live beyond their operation.
const HELD: usize = 8;

/// Marsaglia's xorshift.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound).unwrap_or(0)
    }
}

/// Milliseconds of the processor for this process and for the system on its behalf, and page faults.
fn usage() -> [i64; 3] {
    // SAFETY: zeros are a value of this plain structure, and the system writes nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let milliseconds = |time: libc::timeval| time.tv_sec * 1000 + time.tv_usec / 1000;
    [milliseconds(usage.ru_utime), milliseconds(usage.ru_stime), usage.ru_minflt]
}

fn main() {
    return_large_blocks();
    let (mut draw, mut held) = (Draw(1), Vec::new());
    let keys = Buffer::zeroed(KEY_WORDS);
    for pass in 0..3 {
        let before = usage();
        for level in (0..LEVELS).rev() {
            let degrees = if level < 8 {
                3
            } else if level < 15 {
                2
            } else {
                1
            };
            for _ in 0..OPERATIONS {
                let n = N >> draw.below(degrees);
                let limbs = level + 1 + draw.below(5);
                let mut halves = [Buffer::unspecified(n * limbs), Buffer::unspecified(n * limbs)];
                let scratch: Vec<Buffer> = (0..SCRATCH)
                    .map(|index| {
                        let mut buffer = Buffer::unspecified(n * (2 + index) + 1024 * draw.below(3));
                        buffer.fill(1);
                        buffer
                    })
                    .collect();
                halves.iter_mut().for_each(|half| half.fill(2));
                drop(scratch);
                held.extend(halves);
                while held.len() > HELD {
                    let index = draw.below(held.len() as u64);
                    held.swap_remove(index);
                }
            }
        }
        let [user, system, faults] = core::array::from_fn(|index| usage()[index] - before[index]);
        println!(
            "pass {pass}: {user} ms, of the system {system} ms, {faults} faults; {} MB idle, {} MB in use at most",
            buffer_use().idle / 1_000_000,
            buffer_use().peak / 1_000_000
        );
    }
    drop(keys);
}
