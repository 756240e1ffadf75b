//! Operations that began before a fork. A key continues as the same key; an encryption does not continue: one uniform
//! half with other errors would be a second ciphertext, and the mean of many has no error.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "test code")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

use keywright_client::{
    Client, ClientError, ClientLiteral, ClientParameters, Encryptor, Form, KeyStream, Layout, Sink,
    SinkError, SystemEntropy,
};
use keywright_ring_testing::children::in_child;
use keywright_rlwe::{KeyElement, KeySpec, Parameters, ParametersLiteral, SecretDistribution};

/// The output of an operation, and whether it succeeds.
type Outcome = (bool, Vec<u8>);

/// Runs an operation whose sink forks at its `place`-th call: the final output of the parent and of the child. `None`
/// if there are fewer calls.
fn forked_within(
    place: usize,
    operation: impl FnOnce(&mut dyn Sink) -> Result<(), ClientError>,
) -> Option<[Outcome; 2]> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to an array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the pipe was made above, and each process owns its copies of the ends.
    let (mut reader, mut writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    let (mut calls, mut child, mut written) = (0, None, Vec::new());
    let mut sink = |bytes: &[u8]| -> Result<(), SinkError> {
        if calls == place {
            // SAFETY: the child continues this thread's work, which takes no lock that another thread could hold, and
            // ends below.
            child = Some(unsafe { libc::fork() });
        }
        calls += 1;
        written.extend_from_slice(bytes);
        Ok(())
    };
    let done = operation(&mut sink).is_ok();
    if child == Some(0) {
        let told = writer.write_all(&[u8::from(done)]).and_then(|()| writer.write_all(&written));
        // SAFETY: ends the child without the parent's destructors.
        unsafe { libc::_exit(told.is_err().into()) };
    }
    drop(writer);
    let child = child?;
    let mut told = Vec::new();
    reader.read_to_end(&mut told).unwrap();
    let mut status = 0;
    // SAFETY: the child was made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    Some([(done, written), (told[0] == 1, told[1..].to_vec())])
}

/// A child never writes anything but its parent's bytes.
fn assert_no_second_errors(mut operation: impl FnMut(&mut dyn Sink) -> Result<(), ClientError>) {
    let mut refused = 0;
    for place in 0.. {
        let Some([(done, parent), (finished, child)]) = forked_within(place, &mut operation) else {
            assert!(place > 1 && refused > 0, "{place} calls of the sink, {refused} refusals");
            return;
        };
        assert!(done && parent.starts_with(&child), "fork in call {place}");
        assert!(!finished || child == parent, "fork in call {place}");
        refused += usize::from(!finished);
    }
}

/// The client of a server's parameters.
fn thin(literal: &ParametersLiteral) -> ClientParameters {
    let numbers = [literal.log_n as u8, literal.q.len() as u8, literal.p.len() as u8, 1];
    ClientParameters::new(ClientLiteral {
        log_n: literal.log_n,
        modulus: literal.q[0],
        secret: SecretDistribution::Ternary,
        scale: 1 << 40,
        fraction_bits: 20,
        max: 1 << 20,
        layout: Layout::Coefficients,
        identity: core::array::from_fn(|i| numbers.get(i).copied().unwrap_or(0)),
        entry_identity: [0; 20],
        estimate: [0; 3],
    })
    .unwrap()
}

#[test]
fn an_encryption_does_not_go_on_in_a_child() {
    let literal = ParametersLiteral::from_bits(11, &[50], &[]).unwrap();
    let parameters = thin(&literal);
    let numbers = vec![31_337i64; 2048];
    let given = || {
        |out: &mut [u8]| -> Result<(), ClientError> {
            out.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
            Ok(())
        }
    };
    let mut client = Client::generate(&parameters, &mut SystemEntropy).unwrap();
    let mut key = Vec::new();
    client.public_key(&mut key).unwrap();
    let mut encryptor = Encryptor::new(&parameters, &key, &mut SystemEntropy).unwrap();
    for form in [Form::Evaluations, Form::Compact([0, 0])] {
        assert_no_second_errors(|sink| client.encrypt(&numbers[..], form, sink));
        assert_no_second_errors(|sink| encryptor.encrypt(&numbers[..], form, sink));
        assert_no_second_errors(|sink| {
            Client::generate(&parameters, &mut given()).unwrap().encrypt(&numbers[..], form, sink)
        });
    }
}

#[test]
fn a_forked_child_goes_on_with_the_same_key() {
    let literal = ParametersLiteral::from_bits(10, &[50, 40], &[50]).unwrap().insecure();
    let client = thin(&literal);
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
        // A grandchild, with nothing made in between.
        assert!(in_child(|| in_child(|| rest(&mut stream))) == whole, "a grandchild after {before} limbs");
        assert!(rest(&mut stream) == whole, "the parent after {before} limbs");
    }
    // Within a call of the sink, above all that of the header.
    for place in 0..=2 * limbs {
        let all = |sink: &mut dyn Sink| stream().write_next(sink, &mut |_| ()).map(|_| ());
        let Some(outcomes) = forked_within(place, all) else { continue };
        assert!(outcomes.iter().all(|(done, bytes)| *done && *bytes == whole), "fork in call {place}");
    }
}
