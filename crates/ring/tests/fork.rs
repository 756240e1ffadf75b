//! A forked child draws nothing that its parent or a sibling draws, for every kind of draw and every kind of fork.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;

use keywright_ring::sampling::{SecretRng, gaussian, ternary};
use keywright_ring::{Process, RingError};
use keywright_ring_testing::children::{ForkCall, in_child_by};
use zeroize::Zeroizing;

/// The output of one draw, as long as the longest.
type Drawn = [u8; 256];

/// Draws in every available way.
const WAYS: [fn(&mut SecretRng) -> Drawn; 7] = [
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
        let mut out = [0; 256];
        rng.fill_bytes(&mut out[..32]);
        out
    },
    |rng| {
        let mut out = [0; 256];
        out[..32].copy_from_slice(&rng.public_seed().0);
        out
    },
    |rng| {
        let mut samples = [0; 256];
        gaussian(rng, &mut samples);
        samples.map(|sample| sample as u8)
    },
    |rng| {
        let mut samples = [0; 256];
        ternary(rng, &mut samples);
        samples.map(|sample| sample as u8)
    },
];

fn words(words: &[u64]) -> Drawn {
    let mut out = [0; 256];
    out.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    out
}

fn given(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&Zeroizing::new([byte; 32]))
}

/// Draws of the parent before, of two children, of a grandchild, and of the parent after: all differ.
#[test]
fn nothing_is_drawn_twice() {
    for call in [ForkCall::Library, ForkCall::System] {
        for (number, draw) in WAYS.into_iter().enumerate() {
            for mut rng in [SecretRng::system().unwrap(), given(number as u8)] {
                // Part of a chunk is computed and not yet drawn.
                rng.next_word();
                let mut seen = BTreeSet::from([draw(&mut rng)]);
                for _ in 0..2 {
                    seen.insert(in_child_by(call, || draw(&mut rng)));
                    seen.insert(in_child_by(call, || in_child_by(call, || draw(&mut rng))));
                    seen.insert(in_child_by(call, || {
                        rng.next_word();
                        in_child_by(call, || draw(&mut rng))
                    }));
                }
                seen.insert(draw(&mut rng));
                assert_eq!(seen.len(), 8, "{call:?}, draw {number}");
            }
        }
    }
}

/// The parent continues as if it had no children.
#[test]
fn a_parent_is_not_disturbed() {
    let (mut forking, mut alone) = (given(9), given(9));
    for draw in WAYS {
        in_child_by(ForkCall::Library, || draw(&mut forking));
        in_child_by(ForkCall::System, || draw(&mut forking));
        assert_eq!(draw(&mut forking), draw(&mut alone));
    }
    assert_eq!(forking.split().unwrap().next_word(), alone.split().unwrap().next_word());
}

#[test]
fn a_copy_of_given_entropy_is_refused() {
    let owner = Process::current().id();
    for call in [ForkCall::Library, ForkCall::System] {
        for drawn in [false, true] {
            let mut rng = given(3);
            let answer = in_child_by(call, || {
                if drawn {
                    rng.next_word();
                }
                let refused = |result: Result<(), RingError>| {
                    let process = std::process::id();
                    result == Err(RingError::Forked { owner, process })
                };
                [u8::from(refused(rng.begin())), refused(rng.split().map(drop)).into()]
            });
            assert_eq!(answer, [1, 1]);
            rng.split().unwrap();
        }
    }
}

#[test]
fn what_a_child_makes_itself_is_its_own() {
    for call in [ForkCall::Library, ForkCall::System] {
        let mut copied = given(4);
        copied.split().unwrap();
        let same = in_child_by(call, || {
            let (mut system, mut copied) = (SecretRng::system().unwrap(), given(4));
            system.split().unwrap();
            copied.split().unwrap();
            copied.next_word().to_le_bytes()
        });
        assert_eq!(same, copied.next_word().to_le_bytes());
    }
}

#[test]
fn what_children_split_off_differs() {
    let mut rng = SecretRng::system().unwrap();
    let draws: BTreeSet<_> =
        (0..4).map(|_| in_child_by(ForkCall::System, || rng.split().unwrap().public_seed().0)).collect();
    assert_eq!(draws.len(), 4);
}

#[test]
fn a_process_knows_itself() {
    let parent = Process::current();
    assert!(parent.is_current());
    for call in [ForkCall::Library, ForkCall::System] {
        let answer = in_child_by(call, || {
            let child = Process::current();
            [u8::from(parent.is_current()), child.is_current().into(), (parent == child).into()]
        });
        assert_eq!(answer, [0, 1, 0]);
    }
}
