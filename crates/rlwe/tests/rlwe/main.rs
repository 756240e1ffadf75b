//! Keys, key switches and switches between rings against their definitions.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod derived_keys;
mod fixture;
mod key_sequence;
mod key_spec;
mod key_store;
mod key_switching;
mod rings;
