//! A forked child draws nothing that its parent or a sibling draws, whichever way the generator is asked and the child came to be.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use keywright_ring::sampling::{SecretRng, gaussian, ternary};
use keywright_ring::{Process, RingError};
use zeroize::Zeroizing;

/// How a child comes to be.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// The library's function, which calls handlers.
    Fork,
    /// The system call, which calls none.
    Call,
}

/// Runs `work` in a child and returns the bytes it gives.
fn in_child(way: Way, work: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to an array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child runs `work`, which takes no lock that another thread could hold, and ends.
    let child = unsafe {
        match way {
            Way::Fork => libc::fork(),
            Way::Call => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t,
        }
    };
    assert!(child >= 0);
    // SAFETY: the pipe was made above, and each process owns its copies of the ends.
    let (mut reader, mut writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    if child == 0 {
        let written = writer.write_all(&work());
        // SAFETY: ends the child without the parent's destructors.
        unsafe { libc::_exit(written.is_err().into()) };
    }
    drop(writer);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let mut status = 0;
    // SAFETY: the child was made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    bytes
}

/// 32 bytes drawn in each of the ways there are.
const WAYS: [fn(&mut SecretRng) -> Vec<u8>; 7] = [
    |rng| words(&[rng.next_word(), rng.next_word(), rng.next_word(), rng.next_word()]),
    |rng| {
        let mut out = [0; 4];
        rng.fill_words(&mut out);
        words(&out)
    },
    |rng| {
        let mut out = [0; 1000];
        rng.fill_words(&mut out);
        words(&out[996..])
    },
    |rng| {
        let mut out = [0; 32];
        rng.fill_bytes(&mut out);
        out.to_vec()
    },
    |rng| rng.public_seed().0.to_vec(),
    |rng| {
        let mut samples = [0; 256];
        gaussian(rng, &mut samples);
        samples.map(|sample| sample as u8).to_vec()
    },
    |rng| {
        let mut samples = [0; 256];
        ternary(rng, &mut samples);
        samples.map(|sample| sample as u8).to_vec()
    },
];

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn given(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&Zeroizing::new([byte; 32]))
}

/// Draws of the parent before, of two children, of a grandchild, and of the parent after: all differ.
#[test]
fn nothing_is_drawn_twice() {
    for way in [Way::Fork, Way::Call] {
        for (number, draw) in WAYS.into_iter().enumerate() {
            for mut rng in [SecretRng::system().unwrap(), given(number as u8)] {
                // Part of a chunk is made and not given out.
                rng.next_word();
                let mut seen = BTreeSet::from([draw(&mut rng)]);
                for _ in 0..2 {
                    seen.insert(in_child(way, || draw(&mut rng)));
                    seen.insert(in_child(way, || in_child(way, || draw(&mut rng))));
                    seen.insert(in_child(way, || {
                        rng.next_word();
                        in_child(way, || draw(&mut rng))
                    }));
                }
                seen.insert(draw(&mut rng));
                assert_eq!(seen.len(), 8, "{way:?}, draw {number}");
            }
        }
    }
}

/// The parent goes on as if it had no children.
#[test]
fn a_parent_is_not_disturbed() {
    let (mut forking, mut alone) = (given(9), given(9));
    for draw in WAYS {
        in_child(Way::Fork, || draw(&mut forking));
        in_child(Way::Call, || draw(&mut forking));
        assert_eq!(draw(&mut forking), draw(&mut alone));
    }
    assert_eq!(forking.split().unwrap().next_word(), alone.split().unwrap().next_word());
}

#[test]
fn a_copy_of_given_entropy_is_refused() {
    let owner = Process::current().id();
    for way in [Way::Fork, Way::Call] {
        for drawn in [false, true] {
            let mut rng = given(3);
            let answer = in_child(way, || {
                if drawn {
                    rng.next_word();
                }
                let refused = |result: Result<(), RingError>| {
                    let process = std::process::id();
                    result == Err(RingError::Forked { owner, process })
                };
                vec![refused(rng.begin()).into(), refused(rng.split().map(drop)).into()]
            });
            assert_eq!(answer, [1, 1]);
            rng.split().unwrap();
        }
    }
}

#[test]
fn what_a_child_makes_itself_is_its_own() {
    for way in [Way::Fork, Way::Call] {
        let same = in_child(way, || {
            let (mut system, mut made) = (SecretRng::system().unwrap(), given(4));
            system.split().unwrap();
            made.split().unwrap();
            words(&[made.next_word()])
        });
        let mut made = given(4);
        made.split().unwrap();
        assert_eq!(same, words(&[made.next_word()]));
    }
}

#[test]
fn what_children_split_off_differs() {
    let mut rng = SecretRng::system().unwrap();
    let draws: BTreeSet<_> =
        (0..4).map(|_| in_child(Way::Call, || rng.split().unwrap().public_seed().0.to_vec())).collect();
    assert_eq!(draws.len(), 4);
}

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
        let seeds: BTreeSet<_> =
            (0..100).map(|_| in_child(Way::Fork, || rng.public_seed().0.to_vec())).collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(seeds.len(), 100);
    });
}

#[test]
fn a_process_knows_itself() {
    let parent = Process::current();
    assert!(parent.is_current());
    for way in [Way::Fork, Way::Call] {
        let answer = in_child(way, || {
            let child = Process::current();
            vec![parent.is_current().into(), child.is_current().into(), (parent == child).into()]
        });
        assert_eq!(answer, [0, 1, 0]);
    }
}
