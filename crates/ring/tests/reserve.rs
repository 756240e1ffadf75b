//! A process without memory ends its work with an error, no matter which allocation fails first.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::LinkedList;
use std::env;
use std::hint::black_box;
use std::io::ErrorKind;
use std::panic::catch_unwind;
use std::process::Command;
use std::thread::Builder;

use keywright_ring::{Buffer, OutOfMemory, Reserve, start_thread};

#[global_allocator]
static ALLOCATOR: Reserve = Reserve;

const CHILD: &str = "KEYWRIGHT_TEST_SMALL_BYTES";
const STARTS: &str = "KEYWRIGHT_TEST_STARTS_THREADS";

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

/// Limits the address space of this process to what it has and so many bytes more.
fn leave(bytes: u64) {
    let mapped = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = mapped.split(' ').next().unwrap().parse().unwrap();
    let limit = libc::rlimit { rlim_cur: pages * 4096 + bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call only reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

/// The work of the child: three times, since memory is freed between them.
fn run_out(bytes: usize) {
    leave(192 << 20);
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
        let name = "small_allocations_do_not_end_a_process_without_memory";
        let done = child.env(CHILD, bytes).args([name, "--test-threads", "1"]).output().unwrap();
        assert!(done.status.success(), "{bytes}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_thread_starts_only_where_there_is_room_for_it() {
    if env::var(STARTS).is_ok() {
        leave(4 << 20);
        // The C library has more than the limit says: what its arenas have reserved.
        let mut held = Vec::with_capacity(1 << 10);
        loop {
            let mut piece = Vec::<u8>::new();
            if piece.try_reserve_exact(1 << 20).is_err() {
                break;
            }
            held.push(piece);
        }
        assert_eq!(start_thread(Builder::new(), || 1).unwrap_err().kind(), ErrorKind::OutOfMemory);
        drop(held);
        leave(64 << 20);
        assert_eq!(start_thread(Builder::new(), || 1).unwrap().join().unwrap(), 1);
        return;
    }
    let mut child = Command::new(env::current_exe().unwrap());
    let name = "a_thread_starts_only_where_there_is_room_for_it";
    let done = child.env(STARTS, "").args([name, "--test-threads", "1"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
