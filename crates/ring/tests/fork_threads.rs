//! A forked child does not wait for threads of its parent, which it does not have.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::thread;

use keywright_ring::sampling::SecretRng;
use keywright_ring::{Buffer, ForkMutex, PerProcess, Process, RaceOnce, RingError};
use keywright_ring_testing::children::in_child;

#[test]
fn children_of_a_process_whose_threads_draw() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut rng = SecretRng::system().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    rng = rng.split().unwrap();
                }
            });
        }
        let mut rng = SecretRng::system().unwrap();
        let seeds: BTreeSet<_> = (0..100).map(|_| in_child(|| rng.public_seed().0.to_vec())).collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(seeds.len(), 100);
    });
}

/// Runs `work` while another thread is inside of `hold`; `hold` calls its argument once it is there.
fn while_held<T>(hold: impl FnOnce(&dyn Fn()) + Send, work: impl FnOnce() -> T) -> T {
    let (inside, entered) = channel();
    let (leave, left) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            hold(&|| {
                inside.send(()).unwrap();
                left.recv().unwrap();
            });
        });
        entered.recv().unwrap();
        let result = work();
        leave.send(()).unwrap();
        result
    })
}

#[test]
fn a_lock_that_a_thread_of_the_parent_holds_is_refused() {
    let mutex = ForkMutex::new(1u8);
    let owner = Process::current().id();
    let refused = || match mutex.lock() {
        Err(RingError::OtherProcess { owner: reported, process, .. }) => {
            u8::from(reported == owner && process == std::process::id())
        }
        _ => 0,
    };
    let hold = |stay: &dyn Fn()| {
        let guard = mutex.lock().unwrap();
        stay();
        drop(guard);
    };
    while_held(hold, || {
        let child = || {
            let first = refused();
            let others =
                thread::scope(|scope| [(); 3].map(|()| scope.spawn(refused)).map(|t| t.join().unwrap()));
            // A child of the child does not have that thread either.
            [vec![first], others.to_vec(), in_child(|| vec![refused()])].concat()
        };
        assert_eq!(in_child(child), [1; 5]);
    });
    assert_eq!(*mutex.lock().unwrap(), 1);
}

#[test]
fn an_open_lock_is_one_in_every_process() {
    let mutex = ForkMutex::new(0u8);
    *mutex.lock().unwrap() += 1;
    let count = || {
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    (0..10).for_each(|_| *mutex.lock().unwrap() += 1);
                });
            }
        });
        let here = *mutex.lock().unwrap();
        [vec![here], in_child(|| vec![*mutex.lock().unwrap() + 1])].concat()
    };
    assert_eq!(in_child(count), [41, 42]);
    assert_eq!(*mutex.lock().unwrap(), 1);
}

#[test]
fn a_value_of_a_process_is_not_its_childs() {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static VALUE: PerProcess<Mutex<u32>> =
        PerProcess::new(|| Mutex::new(NEXT.fetch_add(1, Ordering::Relaxed)));
    let own = *VALUE.get().lock().unwrap();
    assert!(std::ptr::eq(VALUE.get(), VALUE.get()));
    let hold = |stay: &dyn Fn()| {
        let guard = VALUE.get().lock().unwrap();
        stay();
        drop(guard);
    };
    let counts = while_held(hold, || {
        in_child(|| {
            let here = *VALUE.get().lock().unwrap();
            *VALUE.get().lock().unwrap() += 10;
            let there = in_child(|| vec![*VALUE.get().lock().unwrap() as u8]);
            [vec![here as u8, *VALUE.get().lock().unwrap() as u8], there].concat()
        })
    });
    let own = own as u8;
    assert_eq!(counts, [own + 1, own + 11, own + 2]);
    assert_eq!(*VALUE.get().lock().unwrap(), own.into());
}

#[test]
fn nobody_waits_for_who_makes_a_value() {
    let once = RaceOnce::new();
    let make = |stay: &dyn Fn()| {
        once.get_or_init(|| {
            stay();
            vec![1u8]
        });
    };
    while_held(make, || {
        assert_eq!(in_child(|| once.get_or_init(|| vec![2]).clone()), [2]);
        assert_eq!(once.get_or_init(|| vec![3]), &[3]);
    });
    // The last thread drops the value that it made.
    assert_eq!(once.get_or_init(|| vec![4]), &[3]);
    assert!(std::ptr::eq(once.get_or_init(Vec::new), once.get_or_init(Vec::new)));
}

/// All threads take the lock of the cache of buffers often.
#[test]
fn children_of_a_process_whose_threads_take_buffers() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(Buffer::unspecified(1 << 10));
                }
            });
        }
        for _ in 0..50 {
            in_child(|| vec![Buffer::zeroed(1 << 10)[0] as u8]);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
