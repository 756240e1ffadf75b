//! Keys of which only some are in memory: read from a file, or derived from others, when a program needs them.
//!
//! A [`KeyStore`] knows the program's steps beforehand. A thread of its own makes the keys of coming steps while those
//! of the current one are in use; when memory is full, the idle key needed furthest in the future is evicted. What
//! makes keys is a [`KeyLoader`].
//!
//! # No deadlock
//! Operations take as many of their keys as fit, use them, give them back and take the next
//! ([`crate::StoredKey::load_some`]), so that nobody who waits for room holds any. The thread waits for room only while
//! nobody waits for it, and for operations never. Left is a thread that is lent to several operations: on a thread of a
//! `rayon` pool an operation may lie under another one that waits, and would never end. There, and where a thread that
//! holds keys asks for more, what would have to wait for other operations is refused ([`crate::RlweError::KeyMemory`]).
//! Who shares a store and a pool among operations does them one at a time ([`KeyStore::turn`]), and an operation does
//! not take keys on several threads at once.
//!
//! # Interruption
//! An operation that waits for a key is ended by [`Turn::interrupt`]. The thread ends with the store, in the midst of
//! what it derives: it asks before every row.

mod loader;
mod schedule;
mod store;

pub use loader::{KeyLoader, Loaders, Stop};
pub use store::{KeyStore, KeyStoreStatistics, Turn};
