use std::path::PathBuf;

use zeroize::Zeroizing;

/// Most slots of one file.
pub const MAX_CAPACITY: u64 = 1 << 32;

/// The storage of a pool's entries on the disk.
#[derive(Debug)]
pub struct PoolFileOptions {
    /// The data file, created if it does not exist.
    pub path: PathBuf,
    /// The key that encrypts it. A holder of the key and the file can read messages encrypted with its entries.
    pub key: Zeroizing<[u8; 32]>,
    /// Number of slots of a new file.
    pub capacity: u64,
    /// Folder of the register; by default [`super::default_register`].
    pub register: Option<PathBuf>,
}
