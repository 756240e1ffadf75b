//! The client's output equals the full library's and is readable by it, for every arithmetic; the client reads or
//! refuses each input.
#![expect(clippy::unwrap_used, reason = "test code")]

mod bad_input;
mod fixture;
mod forms;
mod full_library;
mod groups;
mod key_stream;
#[cfg(target_os = "linux")]
mod processes;
mod search;
mod sessions;
mod thin;
