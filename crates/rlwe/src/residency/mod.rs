//! Keys that are only partly in memory: read from a file, or derived from others, when a program needs them.
//!
//! A [`KeyStore`] knows the program's steps beforehand. Its own thread makes the keys of coming steps while the current
//! keys are in use; when memory is full, the idle key needed furthest in the future is evicted. A [`KeyLoader`] makes
//! the keys.
//!
//! # No deadlock
//! Operations take as many of their keys as fit, use them, return them and take the next
//! ([`crate::StoredKey::load_some`]), so an operation that waits for memory holds none. The store's thread waits for
//! memory only while no operation does, and it never waits for operations.
//!
//! One case remains: a thread that serves several operations. On a thread of a `rayon` pool, a waiting operation may
//! sit on top of another one on the stack, and would never end. There, and if a thread that holds keys asks for more, a
//! request that would have to wait for other operations fails ([`crate::RlweError::KeyMemory`]). Code that shares a
//! store and a pool among operations runs them one at a time ([`KeyStore::access`]), and an operation does not take
//! keys on several threads at once.
//!
//! # Interruption
//! [`StoreAccess::interrupt`] ends an operation that waits for a key. The thread ends with the store, even during a
//! derivation: it checks before every row.

mod loader;
mod schedule;
mod store;

pub use loader::{Each, KeyLoader, Loaders, Stop};
pub use store::{KeyStore, KeyStoreStatistics, StoreAccess};
