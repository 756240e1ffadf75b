//! A process without memory ends its work with an error, no matter which allocation fails first.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::LinkedList;
use std::env;
use std::hint::black_box;
use std::panic::catch_unwind;
use std::process::Command;

use keywright_ring::{Buffer, OutOfMemory, Reserve};

#[global_allocator]
static ALLOCATOR: Reserve = Reserve;

const CHILD: &str = "KEYWRIGHT_TEST_SMALL_BYTES";

/// Allocates pieces of that many bytes, and a buffer after every few, until nothing is left.
fn fill(bytes: usize) {
    // Uses lists, whose single allocations are no larger than a piece.
    let (mut pieces, mut buffers) = (LinkedList::new(), LinkedList::new());
    loop {
        for _ in 0..(1 << 20) / bytes {
            pieces.push_back(black_box(vec![1u8; bytes]));
        }
        buffers.push_back(Buffer::unspecified(1 << 12));
    }
}

/// The work of the child: three times, since memory is freed between them.
fn run_out(bytes: usize) {
    let mapped = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = mapped.split(' ').next().unwrap().parse().unwrap();
    let limit = libc::rlimit { rlim_cur: pages * 4096 + (192 << 20), rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call only reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    for _ in 0..3 {
        Reserve::keep().unwrap();
        let raised = catch_unwind(|| fill(bytes)).unwrap_err();
        assert!(raised.is::<OutOfMemory>());
    }
    Reserve::keep().unwrap();
    assert_eq!(Buffer::zeroed(1 << 20)[1 << 19], 0);
}

#[test]
fn small_allocations_do_not_end_a_process_without_memory() {
    if let Ok(bytes) = env::var(CHILD) {
        return run_out(bytes.parse().unwrap());
    }
    for bytes in ["24", "4096", "100000"] {
        let mut child = Command::new(env::current_exe().unwrap());
        let done = child.env(CHILD, bytes).args(["--test-threads", "1"]).output().unwrap();
        assert!(done.status.success(), "{bytes}: {}", String::from_utf8_lossy(&done.stderr));
    }
}
