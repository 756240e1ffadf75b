use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_pool::{EncryptionPool, PoolFileOptions, PoolOptions, WhenEmpty, ZeroKey};
pub(crate) use keywright_ring_testing::rng;
use keywright_rlwe::{KeyGenerator, Parameters, PublicKey, SecretKey};
use zeroize::Zeroizing;

pub(crate) fn parameters() -> CkksParameters {
    CkksParameters::new(CkksLiteral::from_bits(10, &[50, 40], &[50], 36.0).unwrap().insecure()).unwrap()
}

pub(crate) fn keys(parameters: &CkksParameters) -> (Arc<SecretKey>, Arc<PublicKey>) {
    rlwe_keys(parameters.rlwe())
}

pub(crate) fn rlwe_keys(parameters: &Parameters) -> (Arc<SecretKey>, Arc<PublicKey>) {
    let secret = SecretKey::sample(parameters, &mut rng(1)).unwrap();
    let public = KeyGenerator::new(&secret, rng(2)).public_key();
    (Arc::new(secret), Arc::new(public))
}

pub(crate) fn options(capacity: usize, threads: usize, when_empty: WhenEmpty) -> PoolOptions {
    PoolOptions { level: 1, capacity, threads, when_empty, file: None }
}

pub(crate) fn pool<K: ZeroKey + Clone>(key: &K, options: PoolOptions) -> EncryptionPool<K> {
    EncryptionPool::new(key.clone(), options, rng(3)).unwrap()
}

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = format!("keywright-pool-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, capacity: u64) -> PoolFileOptions {
        file_in(&self.0, capacity)
    }
}

pub(crate) fn file_in(folder: &Path, capacity: u64) -> PoolFileOptions {
    PoolFileOptions {
        path: folder.join("entries.pool"),
        key: Zeroizing::new([9; 32]),
        capacity,
        register: Some(folder.join("register")),
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
