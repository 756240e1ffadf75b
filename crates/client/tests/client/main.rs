//! What a client writes is what the full library writes and reads, whichever arithmetic computed it; what it is sent it reads or refuses.
#![expect(clippy::unwrap_used, reason = "test code")]

mod arithmetic;
mod bad_input;
mod fixture;
#[cfg(target_os = "linux")]
mod fork;
mod forms;
mod full_library;
mod groups;
mod key_stream;
mod sessions;
mod thin;
mod vectors;
