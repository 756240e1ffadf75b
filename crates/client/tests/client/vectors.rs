//! The known answers of `vectors/client.txt`, computed by an independent program: every arithmetic gives these bytes.

use keywright_client::{Client, Encryptor, EngineChoice, Form};

use crate::fixture::{SHIFT_ADD_30, SHIFT_ADD_60, entropy};
use crate::line::{lines, parameters};

#[test]
fn every_arithmetic_makes_the_known_bytes() {
    assert_eq!(lines().len(), 6);
    for fields in lines() {
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
