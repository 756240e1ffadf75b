//! Attributes the instructions of an encryption with the public key: runs each of its steps alone, then the encryption
//! itself.
//!
//! `cargo run --release --bin phases` in this folder runs it in QEMU.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use keywright_client::reduction::{Montgomery, ShiftAdd30};
use keywright_client::{
    CHUNK, ClientError, Engine, Entropy, Form, Half, Numbers, PublicKey, SinkError, SmallEngine, encrypt,
    expand_secret, make_public_key, sample_secret, secret_bytes, write_public_key,
};
use keywright_cortex_m4::{FRACTION_BITS, Memory, Pattern, entropy, meter, parameters};
use keywright_ring::StreamId;
use keywright_ring::sampling::{SecretRng, gaussian, ternary};
use keywright_rlwe::{KeyIdentity, PUBLIC_KEY_STREAM};

/// Instructions of some work.
fn counted(work: impl FnOnce() -> Result<(), ClientError>) -> Result<u64, ClientError> {
    let start = meter::instructions();
    work()?;
    Ok(meter::instructions() - start)
}

fn phases(log_n: u32, memory: &mut Memory) -> Result<(), ClientError> {
    let parameters = parameters(log_n, ShiftAdd30::MODULUS)?;
    let n = parameters.n();
    let numbers = Pattern { count: n, max: 1 << FRACTION_BITS };
    let packed = &mut memory.packed[..secret_bytes(log_n)];
    let [b, mask, limb] = [&mut *memory.public, memory.mask, memory.limb].map(|words| &mut words[..n]);
    let engine = SmallEngine::<Montgomery<u32>>::new(log_n, ShiftAdd30::MODULUS)?;
    let mut rng = entropy(1).generator()?;
    sample_secret(&parameters, &mut rng, packed)?;
    expand_secret(&engine, packed, mask)?;
    let seed = make_public_key(&engine, mask, &mut rng, b)?;
    let row = |what: &str, times: u64, count: u64| {
        let per = 100 * times * count / n as u64;
        hprintln!(
            "| 2^{} | {} | {} | {} | {}.{:02} |",
            log_n,
            what,
            times,
            times * count,
            per / 100,
            per % 100
        );
        times * count
    };

    let mut values = [0i64; CHUNK];
    let mut words = [0u64; CHUNK];
    let stream = counted(|| {
        (0..n / CHUNK).for_each(|_| rng.fill_words(&mut words));
        Ok(())
    })?;
    let mut sampled = |sampler: fn(&mut SecretRng, &mut [i64])| {
        counted(|| {
            (0..n / CHUNK).for_each(|_| sampler(&mut rng, &mut values));
            Ok(())
        })
    };
    let (errors, signs) = (sampled(gaussian)?, sampled(ternary)?);
    let lift = counted(|| {
        limb.chunks_mut(CHUNK).for_each(|part| engine.lift(&values, part));
        Ok(())
    })?;
    let forward = counted(|| {
        engine.forward(limb);
        Ok(())
    })?;
    let multiply = counted(|| {
        engine.mul_add(limb, b, mask);
        Ok(())
    })?;
    let mut chunk = [0; CHUNK];
    let uniform = counted(|| {
        let id = StreamId { object: PUBLIC_KEY_STREAM, digit: 0, limb: 0 };
        (0..n / CHUNK).for_each(|number| engine.uniform(&seed, id, number * CHUNK, &mut chunk));
        Ok(())
    })?;
    let mut sum = 0;
    let pattern = counted(|| {
        sum = (0..n).map(|i| numbers.at(i)).sum();
        Ok(())
    })?;
    let legal = counted(|| parameters.fixed_point().require_legal(&numbers))?;
    let mut bytes = 0;
    let mut sink = |part: &[u8]| -> Result<(), SinkError> {
        bytes += part.len();
        Ok(())
    };
    let write =
        counted(|| write_public_key(&parameters, KeyIdentity::of_packed(packed, parameters.literal().secret), &seed, b, &mut sink))?;
    let all = [
        row("key stream: ChaCha20", 3, stream),
        row("Gaussian samples of random words", 2, errors - stream),
        row("ternary samples of random words", 1, signs - stream),
        row("residues of samples", 3, lift),
        row("transform", 3, forward),
        row("products", 2, multiply),
        row("uniform half of the key: ChaCha8", 1, uniform),
        row("numbers of the sensor, once to check and once to encrypt", 2, pattern),
        row("check of the numbers", 1, legal - pattern),
        row("packing and checksum", 2, write),
    ]
    .iter()
    .sum::<u64>();

    let key =
        PublicKey { b: Half::Residues(&*b), a: Half::Seeded(seed), key: KeyIdentity::of_packed(packed, parameters.literal().secret) };
    let whole = counted(|| {
        encrypt(&engine, &parameters, &key, &numbers, Form::Evaluations, &mut rng, mask, limb, &mut sink)
    })?;
    row("the rest: placing numbers, moving and wiping", 1, whole.saturating_sub(all));
    row("encryption", 1, whole);
    assert!(sum != i64::MAX && bytes > 0);
    Ok(())
}

#[entry]
fn main() -> ! {
    let Some(mut memory) = Memory::take() else { panic!("main runs once") };
    meter::start();
    hprintln!("| N | step | times | instructions in all | per coefficient |");
    hprintln!("|---|---|---|---|---|");
    for log_n in [12, 14, 16] {
        if let Err(error) = phases(log_n, &mut memory) {
            panic!("{error}");
        }
    }
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
