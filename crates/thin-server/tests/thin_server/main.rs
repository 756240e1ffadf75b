//! What a client writes is what the full library writes and reads, whichever arithmetic computed it; what it is sent it
//! reads or refuses.
#![expect(clippy::unwrap_used, reason = "test code")]

mod bad_input;
mod fixture;
mod forms;
mod full_library;
mod groups;
mod key_stream;
#[cfg(target_os = "linux")]
mod processes;
mod sessions;
mod thin;
