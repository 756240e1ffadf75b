//! A child that was forked within a key goes on with the same key: one uniform half with other errors would be a second
//! key, and the difference of the two needs no secret.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "test code")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

use keywright_client::{ClientLiteral, ClientParameters, KeyStream, Layout};
use keywright_rlwe::{KeyElement, KeySpec, Parameters, ParametersLiteral, SecretDistribution, Security};

/// What `work` gives in a child.
fn in_child(work: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to an array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child runs `work`, which takes no lock that another thread could hold, and ends.
    let child = unsafe { libc::fork() };
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

#[test]
fn a_forked_child_goes_on_with_the_same_key() {
    let mut literal = ParametersLiteral::from_bits(10, &[50, 40], &[50]).unwrap();
    literal.security = Security::InsecureForExperiments;
    let client = ClientParameters::new(ClientLiteral {
        log_n: 10,
        modulus: literal.q[0],
        secret: SecretDistribution::Ternary,
        scale: 1 << 40,
        fraction_bits: 20,
        max: 1 << 20,
        layout: Layout::Coefficients,
        identity: core::array::from_fn(|i| [10, 2, 1, 1].get(i).copied().unwrap_or(0)),
        entry_identity: [0; 20],
        estimate: [0; 3],
    })
    .unwrap();
    let parameters = Parameters::new(literal).unwrap();
    let specs = [KeySpec::new(&parameters, KeyElement::Relinearization, 1, 1, true)];
    let limbs = 2 * specs[0].primes().count();
    let stream = || KeyStream::new(&client, &parameters, &[0x41; 256], &specs, &[7; 32].into()).unwrap();
    let make = |stream: &mut KeyStream, limbs: usize, bytes: &mut Vec<u8>| {
        (0..limbs).for_each(|_| assert!(stream.write_part(bytes).unwrap().is_some()));
    };
    let mut whole = Vec::new();
    make(&mut stream(), limbs, &mut whole);
    for before in 0..limbs {
        let (mut stream, mut bytes) = (stream(), Vec::new());
        make(&mut stream, before, &mut bytes);
        let rest = |stream: &mut KeyStream| {
            let mut rest = bytes.clone();
            make(stream, limbs - before, &mut rest);
            rest
        };
        let child = in_child(|| rest(&mut stream));
        assert!(child == whole, "a child forked after {before} limbs");
        // A grandchild of which nothing was made in between.
        assert!(in_child(|| in_child(|| rest(&mut stream))) == whole, "a grandchild after {before} limbs");
        assert!(rest(&mut stream) == whole, "the parent after {before} limbs");
    }
}
