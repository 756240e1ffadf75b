//! What [`SharedWords`] and its like are where the system has no memory that can be sealed: nothing that could be made.

use core::ops::Deref;
use std::io;
use std::vec::Vec;

/// Memory that is being written.
#[derive(Debug)]
pub enum SharedWriter {}

/// Memory that is whole and stays as it is.
#[derive(Debug)]
pub enum SharedFile {}

/// A part of shared memory, mapped to be read.
#[derive(Debug)]
pub enum SharedWords {}

fn unsupported<T>() -> io::Result<T> {
    let message = "this system has no memory that processes share and none can change; Linux has";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

impl SharedWriter {
    /// Refuses.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn new() -> io::Result<Self> {
        unsupported()
    }

    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub fn append<'w>(&mut self, _: impl IntoIterator<Item = &'w [u64]>) -> io::Result<(usize, SharedWords)> {
        match *self {}
    }

    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub fn finish(self, _: &[u8]) -> io::Result<SharedFile> {
        match self {}
    }
}

impl SharedFile {
    /// Refuses.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn of_descriptor(_: i32) -> io::Result<Self> {
        unsupported()
    }

    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub fn tail(&self, _: u64) -> io::Result<Vec<u8>> {
        match *self {}
    }

    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub fn words(&self) -> io::Result<SharedWords> {
        match *self {}
    }

    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }

    /// Nothing.
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
