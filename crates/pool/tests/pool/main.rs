//! Pools in memory and on the disk, and the alternative that reuses entries.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crash;
mod file;
mod fixture;
#[cfg(target_os = "linux")]
mod fork;
mod insecure;
mod memory;
mod messages;
