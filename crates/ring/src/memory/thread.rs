//! Threads that start only where there is memory for it.

use std::io;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use super::reserve::require_room;

/// Starts a thread, and returns once it runs: then it has what the C library takes for it, and the next thread is asked
/// about what is left.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`] if there is no memory for it; those of [`Builder::spawn`].
pub fn start_thread<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    require_room().map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
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
        let thread = start_thread(builder, || std::thread::current().name() == Some("worker")).unwrap();
        assert!(thread.join().unwrap());
    }
}
