//! Threads that start only where there is memory for it.
//!
//! A new thread takes a stack, and a few bytes from the C library for the destructors of its variables. Without these
//! bytes glibc ends the process: it has no error to report. So a thread starts only while there is room for more than
//! that, and the caller waits until it has begun: then it has them, and the next thread is asked about what is left.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};
use std::{format, io};

/// A stack of the default size, and what an allocator takes at a time, with room to spare.
const ROOM: Layout = match Layout::from_size_align(8 << 20, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// Starts a thread, and returns once it runs.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`] if there is no memory for it; those of [`Builder::spawn`].
pub fn start_thread<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // SAFETY: the layout has a size, and the memory is freed as it was allocated.
    unsafe {
        let room = System.alloc(ROOM);
        if room.is_null() {
            let kind = io::ErrorKind::OutOfMemory;
            return Err(io::Error::new(kind, format!("there are no {} bytes for a thread", ROOM.size())));
        }
        System.dealloc(room, ROOM);
    }
    let (begins, begun) = sync_channel(1);
    let thread = builder.spawn(move || {
        // The channel has room, and the caller waits.
        let _ = begins.send(());
        work()
    })?;
    // It fails only if the thread could not send, which has begun too.
    let _ = begun.recv();
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_and_returns() {
        let builder = Builder::new().name("worker".into());
        let thread = start_thread(builder, || std::thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("worker"));
    }
}
