//! Times filling Chem's cache, and encryption with it and without it, for CKKS and BFV. Prints one JSON object per
//! line. `cargo run --release -p keywright-pool --example cache`

use std::time::Instant;

use keywright_bfv::{BfvLiteral, BfvParameters};
use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_pool::PoolError;
use keywright_pool::insecure::{ChemBfv, ChemCkks, ChemEncryptor, ChemScheme, InsecureAcknowledged};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyGenerator, PublicKey, SecretKey};

const RUNS: usize = 5;
/// A prime that is 1 modulo `2^14`: the plaintext modulus.
const PLAINTEXT_MODULUS: u64 = 65_537;

fn measure<S: ChemScheme>(
    name: &str,
    key: &PublicKey,
    bits: u32,
    scheme: impl Fn() -> Result<S, PoolError>,
) -> Result<(), PoolError> {
    let level = key.parameters().max_level();
    for _ in 0..RUNS {
        let start = Instant::now();
        let acknowledged = InsecureAcknowledged::ChemIsBroken;
        let chem = ChemEncryptor::new(acknowledged, scheme()?, key, level, bits, 2, SecretRng::system()?)?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{{\"scheme\": \"{name}\", \"bits\": {bits}, \"entries\": {}, \"seconds\": {seconds}, \"bytes\": {}}}",
            chem.cached(),
            chem.bytes()
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One thread, as in the paper's implementation.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let literal = CkksLiteral::from_bits(13, &[60, 40, 40], &[60], 40.0)?;
    let bfv_literal = BfvLiteral { rlwe: literal.rlwe.clone(), plaintext_modulus: PLAINTEXT_MODULUS };
    let (ckks, bfv) = (CkksParameters::new(literal)?, BfvParameters::new(bfv_literal)?);
    let secret = SecretKey::sample(ckks.rlwe(), &mut SecretRng::system()?)?;
    let key = KeyGenerator::new(&secret, SecretRng::system()?).public_key();
    for bits in [16, 32, 64, 128] {
        // The largest message must fit the modulus: with 128 bits its unit is the resolution of the scale.
        let unit = if bits == 128 { ckks.scale().recip() } else { 2f64.powi(-8) };
        measure("CKKS", &key, bits, || ChemCkks::new(&ckks, ckks.max_level(), bits, unit))?;
        measure("BFV", &key, bits, || Ok(ChemBfv::new(&bfv, bfv.max_level())))?;
    }
    Ok(())
}
