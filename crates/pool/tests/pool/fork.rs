//! A forked child has a copy of its parent's entries, which it must not use, and lacks its threads, for which it must
//! not wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use keywright_ckks::CkksParameters;
use keywright_pool::insecure::{ChemCkks, ChemEncryptor, InsecureAcknowledged};
use keywright_pool::{EncryptionPool, PoolError, PoolFile, WhenEmpty};
use keywright_ring::RingError;
use keywright_ring::sampling::SecretRng;
use keywright_ring_testing::children::in_child;
use keywright_rlwe::{PublicKey, RlweError};

use crate::fixture::{Folder, keys, options, parameters, rng};

fn refused<T>(owner: u32, answer: Result<T, PoolError>) -> u8 {
    let here = std::process::id();
    match answer {
        Err(PoolError::Forked { owner: holder, process }) => (holder == owner && process == here).into(),
        _ => 0,
    }
}

/// The child gets this error however busy the pool's threads are.
#[test]
fn a_pool_is_of_one_process() {
    let (secret, _) = keys(&parameters());
    let owner = std::process::id();
    for when_empty in [WhenEmpty::Encrypt, WhenEmpty::Block, WhenEmpty::Error] {
        let pool =
            EncryptionPool::new(secret.clone(), options(2, 2, when_empty), SecretRng::system().unwrap())
                .unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = pool.take();
                }
            });
            for _ in 0..10 {
                let answers = in_child(|| {
                    vec![
                        refused(owner, pool.take()),
                        refused(owner, pool.take_within(Duration::ZERO)),
                        refused(owner, pool.fill(1)),
                        refused(owner, pool.metrics()),
                        refused(owner, pool.makes_next()),
                        refused(owner, pool.in_file()),
                        refused(owner, pool.close()),
                        u8::from(pool.capacity() == 2 && pool.level() == 1),
                    ]
                });
                assert_eq!(answers, [1; 8], "{when_empty:?}");
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_child_drops_a_pool_that_it_cannot_use() {
    let (secret, _) = keys(&parameters());
    let pool =
        EncryptionPool::new(secret, options(2, 1, WhenEmpty::Block), SecretRng::system().unwrap()).unwrap();
    pool.take().unwrap();
    let mut held = Some(pool);
    assert_eq!(
        in_child(|| {
            drop(held.take());
            vec![1]
        }),
        [1]
    );
    held.unwrap().take().unwrap();
}

#[test]
fn a_file_is_opened_by_every_process_itself() {
    let folder = Folder::new();
    let (secret, _) = keys(&parameters());
    let open = || PoolFile::open(&folder.file(8), &secret, 1, SecretRng::system().unwrap()).unwrap();
    let mut file = open();
    let pool =
        EncryptionPool::new(secret.clone(), options(4, 0, WhenEmpty::Error), SecretRng::system().unwrap())
            .unwrap();
    pool.fill(4).unwrap();
    let zeros: Vec<_> = (0..4).map(|_| pool.take().unwrap()).collect();
    file.store(&secret, &zeros).unwrap();
    let owner = std::process::id();
    let answers = in_child(|| {
        let copied = [
            refused(owner, file.take(&secret, 1)),
            refused(owner, file.store(&secret, &zeros)),
            refused(owner, file.len()),
        ];
        [&copied[..], &open().take(&secret, 1).unwrap()[0].seed.0[..]].concat()
    });
    assert_eq!(answers[..3], [1; 3]);
    let left: Vec<_> = file.take(&secret, 4).unwrap().iter().map(|zero| zero.seed.0.to_vec()).collect();
    assert_eq!(left.len(), 3);
    assert!(!left.contains(&answers[3..].to_vec()), "an entry came twice");
}

fn chem(parameters: &CkksParameters, key: &PublicKey, rng: SecretRng) -> ChemEncryptor<ChemCkks> {
    let scheme = ChemCkks::new(parameters, 1, 40, 1.0 / 256.0).unwrap();
    ChemEncryptor::new(InsecureAcknowledged::ChemIsBroken, scheme, key, 1, 40, 2, rng).unwrap()
}

/// A child's own pool works like its parent's, although rayon's threads belong to the parent.
#[test]
fn a_child_makes_a_pool_of_its_own() {
    let (secret, _) = keys(&parameters());
    let make = || {
        let options = options(8, 0, WhenEmpty::Error);
        let pool = EncryptionPool::new(secret.clone(), options, SecretRng::system().unwrap()).unwrap();
        assert_eq!(pool.fill(8).unwrap(), 8);
        pool.take().unwrap().seed.0.to_vec()
    };
    let own = make();
    let child = in_child(make);
    assert!(child.len() == 32 && child != own);
}

/// Insecure code keeps its promise too: given entropy repeats its output, or fails.
#[test]
fn the_coins_of_chem_are_tossed_once() {
    let parameters = parameters();
    let (_, public) = keys(&parameters);
    let mut given = chem(&parameters, &public, rng(5));
    let answer = in_child(|| {
        let answer = given.encrypt(0);
        vec![matches!(answer, Err(PoolError::Rlwe(RlweError::Ring(RingError::Forked { .. })))).into()]
    });
    assert_eq!(answer, [1]);
    let mut system = chem(&parameters, &public, SecretRng::system().unwrap());
    let mut toss = || system.encrypt(0).unwrap().rlwe.polys[1].limb(0)[0].to_le_bytes().to_vec();
    let (first, second, own) = (in_child(&mut toss), in_child(&mut toss), toss());
    assert!(first != second && first != own && second != own);
}
