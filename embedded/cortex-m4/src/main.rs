//! The thin client on a Cortex-M4 without floating point. Makes every object of `vectors/client.txt` that fits its
//! words again, compares it, and prints the cost: instructions, bytes of polynomials, peak of the stack. Instead of an
//! allocator there is one that refuses.
//!
//! `cargo run --release` in this folder runs it in QEMU.
#![no_std]
#![no_main]

use core::cell::RefCell;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use keywright_client::reduction::{Montgomery, Reduction, ShiftAdd30};
use keywright_client::{
    ClientError, Entropy, Form, Half, PublicKey, SinkError, SmallEngine, encrypt, encrypt_symmetric,
    expand_secret, make_public_key, sample_secret, secret_bytes, write_public_key, write_secret,
};
use keywright_cortex_m4::{Line, Memory, Pattern, entropy, meter, paint};
use keywright_rlwe::KeyIdentity;

/// Length and CRC-32 of the output.
#[derive(Default)]
struct Sum {
    bytes: u64,
    checksum: crc32fast::Hasher,
}

fn line<R: Reduction<Word = u32>>(name: &str, line: &Line, memory: &mut Memory) -> Result<(), ClientError> {
    let parameters = line.parameters()?;
    let (n, log_n) = (parameters.n(), parameters.log_n());
    let numbers = Pattern { count: parameters.capacity(), max: parameters.fixed_point().max() };
    let packed = &mut memory.packed[..secret_bytes(log_n)];
    let (public, mask, limb) = (&mut memory.public[..n], &mut memory.mask[..n], &mut memory.limb[..n]);
    let sum = RefCell::new(Sum::default());
    let mut sink = |bytes: &[u8]| -> Result<(), SinkError> {
        let mut sum = sum.borrow_mut();
        sum.bytes += bytes.len() as u64;
        sum.checksum.update(bytes);
        Ok(())
    };
    let mut index = 0;
    // The cost of a step, and whether its output is right.
    let mut report = |what: &str, work: &mut dyn FnMut() -> Result<(), ClientError>| {
        paint::paint();
        let start = meter::instructions();
        work()?;
        let instructions = meter::instructions() - start;
        let stack = paint::peak();
        let made = core::mem::take(&mut *sum.borrow_mut());
        let seen = (made.bytes, u64::from(made.checksum.finalize()));
        assert!(seen == line.object(index), "{what}: made {seen:?}, known {:?}", line.object(index));
        index += 1;
        hprintln!("| 2^{} | {} | {} | {} | {} | {} |", log_n, name, what, instructions, stack, seen.0);
        Ok::<_, ClientError>(())
    };

    let mut engine = None;
    let mut rng = None;
    report("secret key", &mut || {
        engine = Some(SmallEngine::<R>::new(log_n, parameters.modulus().value())?);
        let rng = rng.insert(entropy(1).generator()?);
        sample_secret(&parameters, rng, packed)?;
        write_secret(&parameters, packed, &mut sink)
    })?;
    let (Some(engine), Some(mut rng)) = (engine, rng) else { panic!("the first step made them") };
    let mut seed = None;
    // The secret shares its memory with the mask.
    report("public key", &mut || {
        expand_secret(&engine, packed, mask)?;
        let made = *seed.insert(make_public_key(&engine, mask, &mut rng, public)?);
        write_public_key(
            &parameters,
            KeyIdentity::of_packed(packed, parameters.literal().secret),
            &made,
            public,
            &mut sink,
        )
    })?;
    let identity = KeyIdentity::of_packed(packed, parameters.literal().secret);
    for (what, form) in
        [("encrypt, secret", Form::Evaluations), ("encrypt, secret, compact", Form::Compact([2, 0]))]
    {
        report(what, &mut || {
            encrypt_symmetric(&engine, &parameters, mask, identity, &numbers, form, &mut rng, limb, &mut sink)
        })?;
    }
    let Some(seed) = seed else { panic!("the second step made it") };
    let key = PublicKey { b: Half::Residues(&*public), a: Half::Seeded(seed), key: identity };
    let mut rng = entropy(2).generator()?;
    for (what, form) in
        [("encrypt, public", Form::Evaluations), ("encrypt, public, compact", Form::Compact([4, 1]))]
    {
        report(what, &mut || {
            encrypt(&engine, &parameters, &key, &numbers, form, &mut rng, mask, limb, &mut sink)
        })?;
    }
    Ok(())
}

#[entry]
fn main() -> ! {
    let Some(mut memory) = Memory::take() else { panic!("main runs once") };
    meter::start();
    hprintln!("| N | reduction | work | instructions | peak of the stack, bytes | bytes written |");
    hprintln!("|---|---|---|---|---|---|");
    let mut compared = 0;
    for text in include_str!("../../../vectors/client.txt").lines() {
        let vector = Line::parse(text);
        if vector.fields[1] >> 30 != 0 {
            continue;
        }
        let result = line::<ShiftAdd30>("shift-add", &vector, &mut memory)
            .and_then(|()| line::<Montgomery<u32>>("Montgomery", &vector, &mut memory));
        if let Err(error) = result {
            panic!("{error}");
        }
        compared += 12;
    }
    assert!(compared > 0, "no vectors of 30 bits");
    hprintln!("{} objects are those of vectors/client.txt; nothing was allocated", compared);
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
