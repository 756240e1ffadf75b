//! Pools in memory and on the disk, and what is built on reused entries instead.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crash;
mod file;
mod fixture;
#[cfg(target_os = "linux")]
mod fork;
mod insecure;
mod memory;
mod messages;
