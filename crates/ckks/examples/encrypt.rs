//! Encrypts, multiplies, rotates and decrypts, and compares the result with the same arithmetic in the clear.
//!
//! `cargo run --release -p keywright-ckks --example encrypt`

use std::error::Error;

use keywright_ckks::{CkksParameters, Decryptor, Encryptor, Evaluator, Packing};
use keywright_ring::rotation_element;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, SecretKey};

fn main() -> Result<(), Box<dyn Error>> {
    let parameters = CkksParameters::preset("N13_QP214_S38")?;
    let rlwe = parameters.rlwe();
    let top = rlwe.max_level();

    // The client makes the keys that the computation needs: one for products, one for a rotation by 1.
    let mut rng = SecretRng::system()?;
    let secret = SecretKey::sample(rlwe, &mut rng)?;
    let mut generator = KeyGenerator::new(&secret, rng.split()?);
    let public = generator.public_key();
    let rotation = KeyElement::Galois(rotation_element(rlwe.log_n(), 1));
    let specs = [KeyElement::Relinearization, rotation].map(|key| KeySpec::new(rlwe, key, top, 1, true));
    let keys = generator.evaluation_keys(&specs)?;

    let values = [1.0, 2.0, 3.0, 4.0];
    let packing = Packing::Slots { log_slots: 2 };
    let x = Encryptor::new(&parameters, &public, rng.split()?)?.encrypt_real(&values, packing, top)?;

    // The server has keys and ciphertexts, no secret.
    let evaluator = Evaluator::new(&parameters, &keys)?;
    let square = evaluator.square(&x)?;
    let next = evaluator.rotate(&square, 1)?;
    let y = evaluator.add(&square, &next)?;

    let results = Decryptor::new(&parameters, &secret)?.decrypt_real(&y)?;
    println!("x_i^2 + x_(i+1)^2 = {results:.6?}");
    for (i, result) in results.iter().enumerate() {
        let expected = values[i].powi(2) + values[(i + 1) % values.len()].powi(2);
        assert!((result - expected).abs() < 1e-4, "slot {i}: {result} is not {expected}");
    }
    Ok(())
}
