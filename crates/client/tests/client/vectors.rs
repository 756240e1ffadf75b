//! The known answers of `vectors/client.txt`, computed by an independent program: every arithmetic gives these bytes.

use keywright_client::{Client, ClientLiteral, ClientParameters, Encryptor, EngineChoice, Form, Layout};
use keywright_rlwe::SecretDistribution;

use crate::fixture::{SHIFT_ADD_30, SHIFT_ADD_60, entropy};

fn parameters(fields: &[u64]) -> ClientParameters {
    let mut identity = [0xA5; 20];
    identity[..4].copy_from_slice(&[fields[0] as u8, 1, 0, 1]);
    let log_slots = fields[5] as u32;
    ClientParameters::new(ClientLiteral {
        log_n: fields[0] as u32,
        modulus: fields[1],
        secret: SecretDistribution::Ternary,
        scale: fields[2],
        fraction_bits: fields[3] as u32,
        max: 1 << fields[3],
        layout: match fields[4] {
            0 => Layout::Coefficients,
            form => Layout::Slots { log_slots, complex: form == 2 },
        },
        identity,
        entry_identity: identity,
        estimate: [1f64, 2.0, 3.0].map(f64::to_bits),
    })
    .unwrap()
}

#[test]
fn every_arithmetic_makes_the_known_bytes() {
    let lines: Vec<&str> = include_str!("../../../../vectors/client.txt").lines().collect();
    assert_eq!(lines.len(), 6);
    for line in lines {
        let fields: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let thin = parameters(&fields);
        let max = thin.fixed_point().max();
        let numbers: Vec<i64> = (0..thin.capacity() as i64).map(|i| 7919 * i % (2 * max + 1) - max).collect();
        let shift_add = [SHIFT_ADD_30, SHIFT_ADD_60].contains(&thin.modulus().value());
        for choice in [EngineChoice::Ring, EngineChoice::Montgomery, EngineChoice::ShiftAdd] {
            if choice == EngineChoice::ShiftAdd && !shift_add {
                continue;
            }
            let mut client = Client::generate(&thin, &mut entropy(1)).unwrap().with_engine(choice).unwrap();
            let mut objects = vec![client.secret_bytes().unwrap().to_vec()];
            let mut object = |write: &mut dyn FnMut(&mut Vec<u8>)| {
                let mut bytes = Vec::new();
                write(&mut bytes);
                objects.push(bytes);
            };
            let mut public_key = Vec::new();
            object(&mut |bytes| {
                client.public_key(bytes).unwrap();
                public_key.clone_from(bytes);
            });
            object(&mut |bytes| client.encrypt(&numbers[..], Form::Evaluations, bytes).unwrap());
            object(&mut |bytes| client.encrypt(&numbers[..], Form::Compact([2, 0]), bytes).unwrap());
            let mut sender = Encryptor::with_engine(&thin, &public_key, &mut entropy(2), choice).unwrap();
            object(&mut |bytes| sender.encrypt(&numbers[..], Form::Evaluations, bytes).unwrap());
            object(&mut |bytes| sender.encrypt(&numbers[..], Form::Compact([4, 1]), bytes).unwrap());
            let seen: Vec<u64> =
                objects.iter().flat_map(|o| [o.len() as u64, crc32fast::hash(o).into()]).collect();
            assert_eq!(seen, fields[6..], "{choice:?}, {:?}", &fields[..6]);
        }
    }
}
