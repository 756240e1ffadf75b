/// There is no memory for a buffer: the payload of the panic that [`crate::Buffer`] raises. A boundary that catches it
/// (`std::panic::catch_unwind`) abandons the work, and the process continues. Without the standard library the process
/// ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no memory for {bytes} bytes; allow the process more, or use fewer keys or threads, or keep diagonals as \
     coefficients"
)]
pub struct OutOfMemory {
    /// Bytes that were requested.
    pub bytes: usize,
}
