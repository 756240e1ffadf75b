use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use keywright_pool::{EncryptionPool, PoolError, WhenEmpty};
use keywright_ring::Coefficient;
use keywright_ring::Poly;
use keywright_rlwe::{RlweError, decrypt, noise};

use crate::fixture::{keys, options, parameters, pool, rng};

/// The largest coefficient of a polynomial modulo its first prime, centred.
fn largest(poly: &Poly<Coefficient>, modulus: &keywright_ring::Modulus) -> u64 {
    poly.limb(0).iter().map(|&x| modulus.centered(x).unsigned_abs()).max().unwrap()
}

#[test]
fn threads_never_get_the_same_entry() {
    let parameters = parameters();
    let (secret, _) = keys(&parameters);
    let pool = pool(&secret, options(7, 2, WhenEmpty::Block));
    let seeds = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let zero = pool.take().unwrap();
                    seeds.lock().unwrap().push(zero.seed.0);
                    assert!(pool.metrics().unwrap().fill <= 7);
                }
            });
        }
    });
    let seeds = seeds.into_inner().unwrap();
    assert_eq!(seeds.len(), 400);
    assert_eq!(seeds.iter().collect::<HashSet<_>>().len(), 400);
    let metrics = pool.metrics().unwrap();
    assert_eq!(metrics.taken, 400);
    assert!(metrics.hits <= 400 && metrics.made >= 400);
    assert_eq!(metrics.made, metrics.taken + metrics.fill as u64);
}

#[test]
fn entries_are_encryptions_of_zero_within_the_bound() {
    let parameters = parameters();
    let (secret, public) = keys(&parameters);
    let modulus = parameters.rlwe().modulus(0);
    let from_public = pool(&public, options(2, 0, WhenEmpty::Error));
    let from_secret = pool(&secret, options(2, 0, WhenEmpty::Error));
    assert_eq!(from_public.fill(5).unwrap(), 2);
    assert_eq!(from_secret.fill(1).unwrap(), 1);
    let whole = from_public.take().unwrap();
    let seeded = from_secret.take().unwrap().expand(parameters.rlwe());
    for (zero, variance) in
        [(whole, noise::fresh_public(parameters.rlwe())), (seeded, noise::fresh_symmetric())]
    {
        let error = largest(&decrypt(&secret, &zero, 1), modulus) as f64;
        assert!(error > 0.0 && error <= noise::bound(variance), "{error}");
    }
}

#[test]
fn what_happens_when_it_is_empty_is_chosen() {
    let parameters = parameters();
    let (_, public) = keys(&parameters);

    let errors = pool(&public, options(1, 0, WhenEmpty::Error));
    assert!(matches!(errors.take(), Err(PoolError::Empty { made: 0, taken: 0 })));
    errors.fill(1).unwrap();
    errors.take().unwrap();
    assert!(matches!(errors.take(), Err(PoolError::Empty { made: 1, taken: 1 })));

    let direct = pool(&public, options(1, 0, WhenEmpty::Encrypt));
    direct.fill(9).unwrap();
    let (first, second) = (direct.take().unwrap(), direct.take().unwrap());
    assert_ne!(first, second);
    let metrics = direct.metrics().unwrap();
    assert_eq!((metrics.taken, metrics.hits, metrics.misses()), (2, 1, 1));
    assert!((metrics.hit_rate() - 0.5).abs() < 1e-12);

    let blocks = pool(&public, options(1, 1, WhenEmpty::Block));
    for _ in 0..5 {
        blocks.take().unwrap();
    }
    blocks.close().unwrap();
    assert!(matches!(blocks.take(), Err(PoolError::Stopped(_))));
    assert!(matches!(blocks.take_within(Duration::ZERO), Err(PoolError::Stopped(_))));
}

#[test]
fn bad_options_are_refused() {
    let parameters = parameters();
    let (_, public) = keys(&parameters);
    let new = |options| EncryptionPool::new(public.clone(), options, rng(3)).unwrap_err();
    assert!(matches!(new(options(0, 1, WhenEmpty::Encrypt)), PoolError::Range { value: 0, min: 1, .. }));
    assert!(matches!(new(options(usize::MAX, 1, WhenEmpty::Encrypt)), PoolError::Range { .. }));
    assert!(matches!(new(options(1, 257, WhenEmpty::Encrypt)), PoolError::Range { value: 257, .. }));
    assert!(matches!(new(options(1, 0, WhenEmpty::Block)), PoolError::Stopped(_)));
    let mut high = options(1, 1, WhenEmpty::Encrypt);
    high.level = 2;
    assert!(matches!(new(high), PoolError::Rlwe(RlweError::Level { level: 2, max: 1, .. })));
}
