//! Child processes of a test.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a child is forked.
#[derive(Clone, Copy, Debug)]
pub enum ForkCall {
    /// By the library's function, which calls handlers.
    Library,
    /// By the system call, which calls none.
    System,
}

/// Seconds after which a waiting child is killed.
const PATIENCE: u32 = 20;

/// Runs `work` in a child and returns its bytes.
///
/// # Panics
/// If the child panics or waits for ever.
pub fn in_child(work: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    run(ForkCall::Library, |pipe| pipe.write_all(&work()), |pipe| pipe.read_to_end(&mut bytes).map(|_| ()));
    bytes
}

/// The same for either kind of fork. The child must not allocate: without handlers, an allocator lock that a thread of
/// its parent held stays locked.
///
/// # Panics
/// As [`in_child`].
pub fn in_child_by<const N: usize>(call: ForkCall, work: impl FnOnce() -> [u8; N]) -> [u8; N] {
    let mut bytes = [0; N];
    run(call, |pipe| pipe.write_all(&work()), |pipe| pipe.read_exact(&mut bytes));
    bytes
}

fn run(
    call: ForkCall,
    child: impl FnOnce(&mut File) -> io::Result<()>,
    parent: impl FnOnce(&mut File) -> io::Result<()>,
) {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to an array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child runs `child` and ends. The test checks that it waits for no lock of a thread of the parent.
    let number = unsafe {
        match call {
            ForkCall::Library => libc::fork(),
            ForkCall::System => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t,
        }
    };
    assert!(number >= 0);
    // SAFETY: the pipe was made above, and each process owns its copies of the ends.
    let (mut reader, mut writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    if number == 0 {
        // SAFETY: the signal ends this process.
        unsafe { libc::alarm(PATIENCE) };
        let done = catch_unwind(AssertUnwindSafe(|| child(&mut writer).is_ok()));
        // SAFETY: ends the child without the parent's destructors.
        unsafe { libc::_exit((!done.unwrap_or(false)).into()) };
    }
    drop(writer);
    let read = parent(&mut reader);
    let mut status = 0;
    // SAFETY: the child was made above.
    assert_eq!(unsafe { libc::waitpid(number, &mut status, 0) }, number);
    assert!(read.is_ok() && status == 0, "the child failed, or waits for ever: status {status}");
}
