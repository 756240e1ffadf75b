//! Keys that are only partly in memory, with operations on several threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use keywright_ring::rotation_element;
use keywright_ring_testing::rng;
use keywright_rlwe::derive::{DerivationPlan, DerivedKeys, MasterKeys};
use keywright_rlwe::residency::{Each, KeyLoader, KeyStore, Loaders, Stop};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeyLayout, KeySpec, Parameters, RlweError, SecretKey,
    StoredKey, SwitchingKey,
};

use crate::fixture::{insecure, masters, same};

fn parameters() -> Parameters {
    insecure(10, &[55, 40, 40], &[55, 55])
}

/// Keys that are copied, and how often.
struct Copies {
    keys: Vec<SwitchingKey>,
    layouts: Vec<Arc<KeyLayout>>,
    count: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
}

impl Copies {
    fn new(keys: Vec<SwitchingKey>) -> Self {
        let layouts = keys.iter().map(|key| key.layout().clone()).collect();
        Self { keys, layouts, count: Arc::default(), broken: Arc::default() }
    }
}

impl KeyLoader for Copies {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        &self.layouts
    }

    fn calls_back(&self) -> bool {
        false
    }

    fn make(&mut self, places: &[usize], each: &mut Each<'_>, _: &Stop<'_>) -> Result<(), RlweError> {
        for &place in places {
            if self.broken.load(Ordering::Relaxed) {
                let spec = &self.layouts[place].spec;
                let (element, level) = (spec.element, spec.level);
                return Err(RlweError::KeySource { element, level, reason: "it is broken".into() });
            }
            self.count.fetch_add(1, Ordering::Relaxed);
            each(place, self.keys[place].clone());
        }
        Ok(())
    }
}

fn specs(parameters: &Parameters, count: i64) -> Vec<KeySpec> {
    let element = |step| KeyElement::Galois(rotation_element(parameters.log_n(), step));
    (1..=count).map(|step| KeySpec::new(parameters, element(step), 2, 1, true)).collect()
}

fn keys(parameters: &Parameters, specs: &[KeySpec]) -> Vec<SwitchingKey> {
    let secret = SecretKey::sample(parameters, &mut rng(1)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(2));
    specs.iter().map(|spec| generator.switching_key(spec).unwrap()).collect()
}

/// A store of `count` keys of one size, `fitting` of which fit, for a program that uses them in access.
fn store(count: i64, fitting: usize) -> (Arc<KeyStore>, EvaluationKeys, Vec<SwitchingKey>) {
    let p = parameters();
    let specs = specs(&p, count);
    let keys = keys(&p, &specs);
    let steps: Vec<_> = specs.iter().map(|spec| vec![spec.clone()]).collect();
    let loader = Copies::new(keys.clone());
    let store = Arc::new(KeyStore::new(loader, &steps, fitting * keys[0].bytes()).unwrap());
    let set = store.keys(&p).unwrap();
    (store, set, keys)
}

fn stored<'s>(set: &'s EvaluationKeys, key: &SwitchingKey) -> &'s StoredKey {
    set.iter().find(|stored| stored.spec() == key.spec()).unwrap()
}

#[test]
fn threads_that_share_one_key_of_room_wait_for_each_other() {
    let (store, set, keys) = store(6, 1);
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let (set, keys, start) = (&set, &keys, &start);
            scope.spawn(move || {
                start.wait();
                for access in 0..50 {
                    let key = &keys[(access * (number + 1)) % keys.len()];
                    assert!(same(&stored(set, key).load().unwrap(), key));
                }
            });
        }
    });
    assert_eq!(store.statistics().unwrap().peak_bytes, keys[0].bytes());
}

#[test]
fn operations_take_what_fits_and_then_the_rest() {
    for fitting in 1..=7 {
        let (store, set, keys) = store(6, fitting);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let mut seen = 0;
                        while seen < keys.len() {
                            let left = keys[seen..].iter().map(|key| stored(&set, key));
                            let loaded = StoredKey::load_some(left).unwrap();
                            assert!(!loaded.is_empty() && loaded.len() <= fitting);
                            loaded.iter().zip(&keys[seen..]).for_each(|(a, b)| assert!(same(a, b)));
                            seen += loaded.len();
                        }
                    }
                });
            }
        });
        let seen = store.statistics().unwrap();
        assert!(seen.peak_bytes <= fitting * keys[0].bytes());
        if fitting >= 6 {
            assert_eq!(seen.loads, 6);
        }
    }
}

#[test]
fn who_holds_keys_or_is_lent_to_others_does_not_wait() {
    let (_store, set, keys) = store(3, 2);
    let first = stored(&set, &keys[0]).load().unwrap();
    let second = stored(&set, &keys[1]).load().unwrap();
    let needed = 3 * keys[0].bytes();
    let refused = |result: Result<_, RlweError>| match result {
        Err(RlweError::KeyMemory { needed: found, element, .. }) => {
            found == needed && element == keys[2].spec().element
        }
        _ => false,
    };
    assert!(refused(stored(&set, &keys[2]).load().map(drop)));
    // A thread outside of a pool may wait; on a pool's thread, the awaited operation could be below it on the stack.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert!(pool.install(|| refused(stored(&set, &keys[2]).load().map(drop))));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| same(&stored(&set, &keys[2]).load().unwrap(), &keys[2]));
        drop((first, second));
        assert!(waiting.join().unwrap());
    });
    // A key that is lent is lent again.
    let again = stored(&set, &keys[2]).load().unwrap();
    assert!(same(&again, &stored(&set, &keys[2]).load().unwrap()));
}

#[test]
fn a_budget_below_the_largest_key_is_refused_at_once() {
    let p = parameters();
    let keys = keys(&p, &specs(&p, 2));
    let bytes = keys[0].bytes();
    let error = KeyStore::new(Copies::new(keys), &[], bytes - 1).unwrap_err();
    assert!(
        matches!(error, RlweError::KeyMemory { needed, budget, .. } if (needed, budget) == (bytes, bytes - 1))
    );
}

#[test]
fn what_cannot_be_made_is_said_and_tried_again() {
    let p = parameters();
    let specs = specs(&p, 2);
    let copies = Copies::new(keys(&p, &specs));
    let (broken, bytes) = (copies.broken.clone(), copies.keys[0].bytes());
    broken.store(true, Ordering::Relaxed);
    let store = Arc::new(KeyStore::new(copies, std::slice::from_ref(&specs), 2 * bytes).unwrap());
    let set = store.keys(&p).unwrap();
    for key in set.iter() {
        assert!(matches!(key.load(), Err(RlweError::KeySource { .. })));
    }
    assert!(matches!(StoredKey::load_some(set.iter()), Err(RlweError::KeySource { .. })));
    broken.store(false, Ordering::Relaxed);
    assert_eq!(StoredKey::load_some(set.iter()).unwrap().len(), 2);
}

/// Panics when it is asked for a key.
struct Panics(Copies);

impl KeyLoader for Panics {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        self.0.layouts()
    }

    fn calls_back(&self) -> bool {
        false
    }

    fn make(&mut self, _: &[usize], _: &mut Each<'_>, _: &Stop<'_>) -> Result<(), RlweError> {
        panic!("on purpose")
    }
}

#[test]
fn nobody_waits_for_a_thread_that_has_ended() {
    let p = parameters();
    let store = Arc::new(KeyStore::new(Panics(Copies::new(keys(&p, &specs(&p, 2)))), &[], 1 << 30).unwrap());
    for key in store.keys(&p).unwrap().iter() {
        assert!(matches!(key.load(), Err(RlweError::KeySource { .. })));
    }
}

/// Makes nothing until it is told to stop.
struct Endless {
    copies: Copies,
    ended: Arc<AtomicBool>,
}

impl KeyLoader for Endless {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        self.copies.layouts()
    }

    fn calls_back(&self) -> bool {
        false
    }

    fn make(&mut self, _: &[usize], _: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError> {
        while !stop() {
            thread::yield_now();
        }
        self.ended.store(true, Ordering::Relaxed);
        Err(RlweError::Interrupted)
    }
}

#[test]
fn who_waits_can_be_interrupted_and_the_thread_ends_with_the_store() {
    let p = parameters();
    let copies = Copies::new(keys(&p, &specs(&p, 2)));
    let (bytes, ended) = (copies.keys[0].bytes(), Arc::<AtomicBool>::default());
    let store = Arc::new(KeyStore::new(Endless { copies, ended: ended.clone() }, &[], bytes).unwrap());
    let set = store.keys(&p).unwrap();
    let [first, second] = set.iter().collect::<Vec<_>>()[..] else { panic!("two keys") };
    // One waits for its key, another for memory, a third for its access.
    let access = store.access(|| false).unwrap();
    thread::scope(|scope| {
        let both = [first, second].map(|key| scope.spawn(move || key.load().map(drop)));
        let (store, asked) = (&store, Arc::new(AtomicUsize::new(0)));
        let third = scope.spawn(move || store.access(|| asked.fetch_add(1, Ordering::Relaxed) == 1).is_err());
        assert!(third.join().unwrap());
        access.interrupt();
        for waiting in both {
            assert!(matches!(waiting.join().unwrap(), Err(RlweError::Interrupted)));
        }
    });
    assert!(matches!(first.load(), Err(RlweError::Interrupted)));
    // The next one is not.
    drop(access);
    assert!(store.access(|| true).is_ok());
    drop((set, store));
    assert!(ended.load(Ordering::Relaxed));
}

/// Waits for a lock before it makes keys.
struct Locked {
    copies: Copies,
    lock: Arc<Mutex<()>>,
}

impl KeyLoader for Locked {
    fn layouts(&self) -> &[Arc<KeyLayout>] {
        self.copies.layouts()
    }

    fn calls_back(&self) -> bool {
        true
    }

    fn make(&mut self, places: &[usize], each: &mut Each<'_>, stop: &Stop<'_>) -> Result<(), RlweError> {
        drop(self.lock.lock().unwrap());
        self.copies.make(places, each, stop)
    }
}

#[test]
fn a_store_is_dropped_under_a_lock_that_its_loader_waits_for() {
    let p = parameters();
    let copies = Copies::new(keys(&p, &specs(&p, 2)));
    let (bytes, lock) = (copies.keys[0].bytes(), Arc::<Mutex<()>>::default());
    let held = lock.lock().unwrap();
    let loaders = Loaders::new(vec![Box::new(Locked { copies, lock: lock.clone() })]);
    drop(KeyStore::new(loaders, &[], bytes).unwrap());
    drop(held);
}

#[test]
fn a_derivation_that_was_interrupted_goes_on() {
    let p = parameters();
    let targets = specs(&p, 9);
    let plan = Arc::new(DerivationPlan::new(&ladder(&p), &targets, 64).unwrap());
    let expected: Vec<_> = plan.derive(0..targets.len()).map(Result::unwrap).collect();
    let mut derivation = plan.derive(0..targets.len());
    // Before every fifth row.
    let (mut derived, mut interrupted, asked) = (Vec::new(), 0, AtomicUsize::new(0));
    loop {
        match derivation.next_unless(&|| asked.fetch_add(1, Ordering::Relaxed) % 5 == 4) {
            None => break,
            Some(Ok(key)) => derived.push(key),
            Some(Err(error)) => {
                assert!(matches!(error, RlweError::Interrupted));
                interrupted += 1;
            }
        }
    }
    assert!(interrupted > 1);
    assert_eq!(derived.len(), expected.len());
    assert!(derived.iter().zip(&expected).all(|(a, b)| same(a, b)));
}

fn ladder(p: &Parameters) -> MasterKeys {
    masters(p, &[55, 55], &SecretKey::sample(p, &mut rng(1)).unwrap(), &[1, 4])
}

#[test]
fn parts_of_a_derivation_have_the_bytes_of_the_whole() {
    let p = parameters();
    let mut specs = specs(&p, 13);
    specs.extend((1..5).map(|step| {
        let element = KeyElement::Galois(rotation_element(p.log_n(), step));
        KeySpec::new(&p, element, 1, 1, true)
    }));
    let plan = Arc::new(DerivationPlan::new(&ladder(&p), &specs, 64).unwrap());
    let layouts = plan.keys().unwrap();
    assert_eq!(layouts.len(), specs.len());
    let whole: Vec<_> = plan.derive(0..specs.len()).map(Result::unwrap).collect();
    assert_eq!(whole.len(), specs.len());
    for (place, layout) in layouts.iter().enumerate() {
        let spec = KeySpec { seeded: false, ..specs[place].clone() };
        assert_eq!(layout.spec, spec);
        let expected = whole.iter().find(|key| *key.spec() == spec).unwrap();
        assert_eq!(**expected.layout(), *layout);
        let alone: Vec<_> = plan.derive([place]).map(Result::unwrap).collect();
        assert!(alone.len() == 1 && same(&alone[0], expected));
    }
    let some: Vec<_> = plan.derive([3, 3, 9, 14]).map(Result::unwrap).collect();
    let expected: BTreeSet<_> = [3, 9, 14].iter().map(|&place| layouts[place].spec.element).collect();
    assert_eq!(some.iter().map(|key| key.spec().element).collect::<BTreeSet<_>>(), expected);
    assert!(some.iter().all(|key| whole.iter().any(|other| same(key, other))));
}

#[test]
fn keys_are_forgotten_and_derived_again_beside_keys_that_are_read() {
    let p = parameters();
    let targets = specs(&p, 12);
    let masters = ladder(&p);
    let plan = Arc::new(DerivationPlan::new(&masters, &targets, 64).unwrap());
    let expected: Vec<_> = plan.derive(0..targets.len()).map(Result::unwrap).collect();
    let relinearization = KeySpec::new(&p, KeyElement::Relinearization, 2, 1, true);
    let read = keys(&p, std::slice::from_ref(&relinearization));
    let steps: Vec<Vec<KeySpec>> = plan.keys().unwrap().into_iter().map(|key| vec![key.spec]).collect();
    let largest = expected[0].bytes();
    for fitting in [1, 4, 20] {
        let derived = DerivedKeys::new(plan.clone(), 2).unwrap();
        let loader = Loaders::new(vec![Box::new(Copies::new(read.clone())), Box::new(derived)]);
        let budget = masters.bytes() + fitting * largest;
        let store = Arc::new(KeyStore::new(loader, &steps, budget).unwrap());
        let set = store.keys(&p).unwrap();
        for _ in 0..2 {
            for key in expected.iter().chain(&read) {
                assert!(same(&stored(&set, key).load().unwrap(), key));
            }
        }
        let seen = store.statistics().unwrap();
        assert!(seen.peak_bytes <= budget);
        assert!(if fitting == 20 { seen.loads == 13 } else { seen.loads > 13 });
    }
    let derived = DerivedKeys::new(plan, 1).unwrap();
    let error = KeyStore::new(derived, &steps, masters.bytes() + largest - 1).unwrap_err();
    assert!(matches!(error, RlweError::KeyMemory { .. }));
}
