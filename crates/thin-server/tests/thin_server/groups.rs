//! Several small integers in a number.

use keywright_ckks::{CkksLiteral, CkksParameters, Evaluator};
use keywright_client::{Client, ClientError, ClientParameters, Encryptor, Form, Groups, Layout, Numbers};
use keywright_rlwe::EvaluationKeys;
use keywright_thin_server as server;

use crate::fixture::{entropy, numbers};

fn thin(fraction_bits: u32) -> (CkksParameters, ClientParameters) {
    let literal = CkksLiteral::from_bits(10, &[60], &[], 50.0).unwrap().insecure();
    let parameters = CkksParameters::new(literal).unwrap();
    let thin = server::parameters_at(&parameters, 1 << 55, fraction_bits, Layout::Coefficients).unwrap();
    (parameters, thin)
}

#[test]
fn a_group_is_its_digits() {
    let (_, thin) = thin(40);
    for bits in [1, 7, 8, 13, 20, 32] {
        let groups = Groups::new(&thin, bits).unwrap();
        assert_eq!(groups.each(), 40 / bits as usize);
        for count in [0, 1, groups.each() - 1, groups.each(), 3 * groups.each() + 1, 200] {
            let integers: Vec<i64> = numbers(u64::from(bits), count, i64::MAX >> 1)
                .iter()
                .map(|x| x & ((1 << bits) - 1))
                .collect();
            let grouped = groups.group(&integers[..]).unwrap();
            assert_eq!(grouped.count(), groups.count(count));
            let numbers: Vec<i64> = (0..grouped.count()).map(|i| grouped.at(i)).collect();
            for (i, integer) in integers.iter().enumerate() {
                let digit = numbers[i / groups.each()] >> (bits as usize * (i % groups.each()));
                assert_eq!(digit & ((1 << bits) - 1), *integer);
            }
            let mut out = vec![-1; count];
            groups.split(&numbers, &mut out).unwrap();
            assert_eq!(out, integers);
        }
        let full = vec![(1i64 << bits) - 1; groups.each()];
        let grouped = groups.group(&full[..]).unwrap();
        assert!(grouped.at(0) <= thin.fixed_point().max());
        let whole = bits * groups.each() as u32;
        for wrong in [-1, i64::MIN, 1 << whole] {
            let refused = groups.split(&[0, wrong], &mut [0; 1]).err();
            assert_eq!(refused, Some(ClientError::Group { index: 1, bits: whole }));
        }
        for wrong in [-1, i64::MIN, 1 << bits] {
            assert_eq!(
                groups.group(&[0, wrong][..]).err(),
                Some(ClientError::SmallInteger { index: 1, bits })
            );
        }
    }
    for bits in [0, 33, 64] {
        assert!(
            matches!(Groups::new(&thin, bits), Err(ClientError::Range { value, .. }) if value == bits.into())
        );
    }
    let mut behind = [7; 50];
    Groups::new(&thin, 8).unwrap().split(&[0x0102], &mut behind).unwrap();
    assert!(behind[..2] == [2, 1] && behind[2..].iter().all(|&x| x == 0));
}

/// With bits to spare, a server's sum of groups is the group of sums.
#[test]
fn groups_are_added() {
    let (parameters, thin) = thin(40);
    let groups = Groups::new(&thin, 10).unwrap();
    let mut client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let mut key = Vec::new();
    client.public_key(&mut key).unwrap();
    let mut camera = Encryptor::new(&thin, &key, &mut entropy(2)).unwrap();
    let keys = EvaluationKeys::new(parameters.rlwe());
    let evaluator = Evaluator::new(&parameters, &keys).unwrap();
    let mut frames = Vec::new();
    let mut sum = None;
    for frame in 0..4u8 {
        let pixels: Vec<u8> = (0..4096u32).map(|i| (i * 41 + 255) as u8 ^ frame).collect();
        let mut bytes = Vec::new();
        camera.encrypt(&groups.group(&pixels[..]).unwrap(), Form::Evaluations, &mut bytes).unwrap();
        let ciphertext = server::read_upload(&bytes, &parameters, &thin).unwrap();
        match &mut sum {
            None => sum = Some(ciphertext),
            Some(sum) => evaluator.add_assign(sum, &ciphertext).unwrap(),
        }
        frames.push(pixels);
    }
    let sum = sum.unwrap();
    // Split exactly: the bound on the error is below half a unit of 2^-40.
    assert!(sum.estimate.bound() < 0.5 * 2f64.powi(-40));
    let mut answer = Vec::new();
    server::write_answer(&sum, thin.layout(), [0, 0], &mut answer).unwrap();
    let (mut numbers, mut sums) = (vec![0; 1024], vec![0; 4096]);
    client.decrypt(&answer, &mut numbers).unwrap();
    groups.split(&numbers, &mut sums).unwrap();
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(*sum, frames.iter().map(|frame| i64::from(frame[i])).sum::<i64>());
    }
}
