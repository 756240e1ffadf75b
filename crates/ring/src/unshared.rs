//! Stand-ins for [`SharedWords`] and its like on systems without sealed memory: none can be created.

use core::ops::Deref;
use std::io;
use std::vec::Vec;

/// Memory that is being written.
#[derive(Debug)]
pub enum SharedWriter {}

/// Memory that is complete and sealed.
#[derive(Debug)]
pub enum SharedFile {}

/// A part of shared memory, mapped for reading.
#[derive(Debug)]
pub enum SharedWords {}

fn unsupported<T>() -> io::Result<T> {
    let message = "this system has no sealed shared memory; use Linux, or read the keys in every process";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

impl SharedWriter {
    /// Always fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn new() -> io::Result<Self> {
        unsupported()
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn append<'w>(&mut self, _: impl IntoIterator<Item = &'w [u64]>) -> io::Result<(usize, SharedWords)> {
        match *self {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn finish(self, _: &[u8]) -> io::Result<SharedFile> {
        match self {}
    }
}

impl SharedFile {
    /// Always fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn of_descriptor(_: i32) -> io::Result<Self> {
        unsupported()
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn tail(&self, _: u64) -> io::Result<Vec<u8>> {
        match *self {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn words(&self) -> io::Result<SharedWords> {
        match *self {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }

    /// Unreachable.
    pub fn into_descriptor(self) -> i32 {
        match self {}
    }
}

impl Deref for SharedWords {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match *self {}
    }
}
