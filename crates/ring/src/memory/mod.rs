//! Memory of large data: buffers that raise instead of ending the process, a reserve for small allocations, words
//! shared between processes, and threads that start only where there is memory.

pub(crate) mod buffer;
pub(crate) mod out_of_memory;
#[cfg(feature = "std")]
pub(crate) mod reserve;
#[cfg(feature = "std")]
#[cfg_attr(not(target_os = "linux"), path = "unshared.rs")]
pub(crate) mod shared;
#[cfg(feature = "std")]
pub(crate) mod thread;
/// What `shared` is on other systems: its tests run everywhere.
#[cfg(all(test, feature = "std", target_os = "linux"))]
#[expect(dead_code, unreachable_pub, reason = "what other systems export")]
pub(crate) mod unshared;
