//! Byte formats: round trips, key sets, damage and malice, and the files of `vectors/wire`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod damage;
mod golden;
mod key_set;
mod rings;
mod round_trip;
mod samples;
#[cfg(target_os = "linux")]
mod shared;
