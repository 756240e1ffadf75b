//! A client of standard CKKS with the same library, and the thin client with as many numbers. It moves numbers to slots
//! by a Fourier transform in doubles, which are software on a Cortex-M4 and hardware on a Cortex-A7. Then it encrypts
//! under a public key modulo every prime of the chain.
//!
//! Counted: encoding, sampling, and for every prime three transforms, two products, the expansion of the seeded half of
//! the key, and packing both halves with their checksums. Tables are in flash memory, as on a device; keys are made
//! where they are used, and not counted.

use keywright_client::reduction::{Montgomery, ShiftAdd30};
use keywright_client::{
    CHUNK, ClientError, Engine, Entropy, Form, Half, Numbers, PublicKey, SinkError, SmallEngine, encrypt,
    expand_secret, make_public_key, sample_secret, secret_bytes, write_public_key,
};
use keywright_ring::primes::is_prime;
use keywright_ring::sampling::{GAUSSIAN_BOUND, SecretRng, gaussian, ternary};
use keywright_ring::{Modulus, StreamId};
use keywright_rlwe::{KeyIdentity, PUBLIC_KEY_STREAM};

use crate::{FRACTION_BITS, MAX_N, Memory, Pattern, Polynomial, entropy, meter, parameters, singleton};

/// Chains that are counted: `log2(N)` and primes of 30 bits. 3 primes at `2^12` and 13 at `2^14` are SEAL-Embedded's.
/// At `2^16`, 27 primes, and twice as many, 1,620 bits. The paper of boosted deflation has 57 of 30 bits there.
pub const CHAINS: [(u32, usize); 4] = [(12, 3), (14, 13), (16, 27), (16, 54)];

/// Bits of the default scale.
const LOG_SCALE: u32 = 25;

/// The memory that a thin client has, and the memory that it does not need.
pub struct FullMemory {
    thin: Memory,
    /// Ternary mask and two errors, a byte each.
    samples: [&'static mut [i8; MAX_N]; 3],
    slots: &'static mut [[f64; 2]; MAX_N / 2],
    message: &'static mut [i64; MAX_N],
    secret: Polynomial,
    c1: Polynomial,
}

impl FullMemory {
    /// All of it, once.
    pub fn take() -> Option<Self> {
        Some(Self {
            thin: Memory::take()?,
            samples: [
                singleton!(: [i8; MAX_N] = [0; MAX_N])?,
                singleton!(: [i8; MAX_N] = [0; MAX_N])?,
                singleton!(: [i8; MAX_N] = [0; MAX_N])?,
            ],
            slots: singleton!(: [[f64; 2]; MAX_N / 2] = [[0.0; 2]; MAX_N / 2])?,
            message: singleton!(: [i64; MAX_N] = [0; MAX_N])?,
            secret: singleton!(: [u32; MAX_N] = [0; MAX_N])?,
            c1: singleton!(: [u32; MAX_N] = [0; MAX_N])?,
        })
    }
}

/// Primes of 30 bits that are 1 modulo `2^17`, the largest first.
fn primes() -> impl Iterator<Item = u64> {
    (1..).map(|k| (1 << 30) - (k << 17) + 1).filter(|&q| is_prime(q))
}

/// The `k`-th power of the primitive `2N`-th root of unity, from a quarter of the circle.
fn root(log_n: u32, k: usize) -> [f64; 2] {
    static SINES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sines.bin"));
    const QUARTER: usize = MAX_N / 2;
    let sine = |k: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&SINES[8 * k..8 * k + 8]);
        f64::from_le_bytes(bytes)
    };
    let k = (k << (16 - log_n)) % (4 * QUARTER);
    let (quadrant, k) = (k / QUARTER, k % QUARTER);
    let (x, y) = (sine(QUARTER - k), sine(k));
    [[x, y], [-y, x], [-x, -y], [y, -x]][quadrant]
}

fn product([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// The inverse of the special transform of CKKS (Cheon, Kim, Kim, Song), `N/2` values in place, in bit-reversed order
/// and without the factor `2/N`. Slot `j` belongs to the root's power `5^j`.
fn fourier(log_n: u32, slots: &mut [[f64; 2]]) {
    let (n, order) = (slots.len(), 4 * slots.len());
    let mut length = n;
    while length >= 2 {
        let (half, quadruple) = (length / 2, 4 * length);
        let mut power = 1;
        for j in 0..half {
            let w = root(log_n, (quadruple - power) * (order / quadruple));
            for block in slots.chunks_exact_mut(length) {
                let (u, v) = (block[j], block[j + half]);
                block[j] = [u[0] + v[0], u[1] + v[1]];
                block[j + half] = product([u[0] - v[0], u[1] - v[1]], w);
            }
            power = 5 * power % quadruple;
        }
        length = half;
    }
}

/// Slots to coefficients: the transform, and rounding at the scale.
fn encode(log_n: u32, slots: &mut [[f64; 2]], message: &mut [i64]) {
    fourier(log_n, slots);
    let n = slots.len();
    let bits = n.ilog2();
    let factor = (1u64 << LOG_SCALE) as f64 / n as f64;
    let round = |x: f64| if x < 0.0 { (x * factor - 0.5) as i64 } else { (x * factor + 0.5) as i64 };
    for i in 0..n {
        let [re, im] = slots[i.reverse_bits() >> (usize::BITS - bits)];
        (message[i], message[i + n]) = (round(re), round(im));
    }
}

/// Slot `j` of a message, by definition.
fn slot(log_n: u32, message: &[i64], j: usize) -> [f64; 2] {
    let order = 2 * message.len();
    let power = (0..j).fold(1, |power, _| 5 * power % order);
    let mut sum = [0.0; 2];
    let mut k = 0;
    for &coefficient in message {
        let w = root(log_n, k);
        sum = [sum[0] + coefficient as f64 * w[0], sum[1] + coefficient as f64 * w[1]];
        k = (k + power) % order;
    }
    sum.map(|x| x / (1u64 << LOG_SCALE) as f64)
}

/// A sensor's number as a double.
fn value(numbers: &Pattern, index: usize) -> f64 {
    numbers.at(index) as f64 / (1u64 << FRACTION_BITS) as f64
}

fn sample(rng: &mut SecretRng, out: &mut [i8], sampler: fn(&mut SecretRng, &mut [i64])) {
    let mut values = [0; CHUNK];
    for part in out.chunks_mut(CHUNK) {
        sampler(rng, &mut values);
        part.iter_mut().zip(values).for_each(|(byte, value)| *byte = value as i8);
    }
}

/// Residues of samples and their addends.
fn lift(engine: &impl Engine<Word = u32>, samples: &[i8], message: Option<&[i64]>, out: &mut [u32]) {
    let mut values = [0; CHUNK];
    for (number, (samples, out)) in samples.chunks(CHUNK).zip(out.chunks_mut(CHUNK)).enumerate() {
        for (i, (value, &sample)) in values.iter_mut().zip(samples).enumerate() {
            *value = i64::from(sample) + message.map_or(0, |message| message[number * CHUNK + i]);
        }
        engine.lift(&values, out);
    }
}

/// Instructions of an encryption at full modulus, which is checked, and of the thin client.
///
/// # Errors
///
/// The errors of the client.
pub fn both(log_n: u32, count: usize, memory: &mut FullMemory) -> Result<(u64, u64), ClientError> {
    Ok((full(log_n, count, memory)?, thin(log_n, &mut memory.thin)?))
}

/// Instructions of an encryption at full modulus, which is checked.
fn full(log_n: u32, count: usize, memory: &mut FullMemory) -> Result<u64, ClientError> {
    let n = 1 << log_n;
    let numbers = Pattern { count: n, max: 1 << FRACTION_BITS };
    let (slots, message) = (&mut memory.slots[..n / 2], &mut memory.message[..n]);
    let packed = &mut memory.thin.packed[..secret_bytes(log_n)];
    let [u, e0, e1] = memory.samples.each_mut().map(|samples| &mut samples[..n]);
    let mut rng = entropy(3).generator()?;
    let mut keys = entropy(4).generator()?;

    let start = meter::instructions();
    for (j, slot) in slots.iter_mut().enumerate() {
        *slot = [value(&numbers, j), value(&numbers, j + n / 2)];
    }
    encode(log_n, slots, message);
    sample(&mut rng, u, ternary);
    sample(&mut rng, e0, gaussian);
    sample(&mut rng, e1, gaussian);
    let mut instructions = meter::instructions() - start;

    // Rounding is at most half a unit in each of N coefficients.
    for j in [0, 1, n / 2 - 1] {
        let seen = slot(log_n, message, j);
        let bound = n as f64 / (1u64 << LOG_SCALE) as f64;
        let wanted = [value(&numbers, j), value(&numbers, j + n / 2)];
        let near = |k: usize| (seen[k] - wanted[k]).max(wanted[k] - seen[k]) <= bound;
        assert!(near(0) && near(1), "slot {j} is {seen:?}, not {wanted:?}");
    }

    let thin_parameters = parameters(log_n, ShiftAdd30::MODULUS)?;
    let mut sampled = false;
    for (index, q) in primes().take(count).enumerate() {
        let engine = SmallEngine::<Montgomery<u32>>::new(log_n, q)?;
        let [secret, b, mask, c0, c1] =
            [&mut *memory.secret, memory.thin.public, memory.thin.mask, memory.thin.limb, memory.c1]
                .map(|words| &mut words[..n]);
        if !sampled {
            sample_secret(&thin_parameters, &mut keys, packed)?;
            sampled = true;
        }
        expand_secret(&engine, packed, secret)?;
        let seed = make_public_key(&engine, secret, &mut keys, b)?;

        let start = meter::instructions();
        lift(&engine, u, None, mask);
        engine.forward(mask);
        lift(&engine, e0, Some(message), c0);
        engine.forward(c0);
        engine.mul_add(c0, b, mask);
        lift(&engine, e1, None, c1);
        engine.forward(c1);
        let mut a = [0; CHUNK];
        for (number, (c1, mask)) in c1.chunks_mut(CHUNK).zip(mask.chunks(CHUNK)).enumerate() {
            let id = StreamId { object: PUBLIC_KEY_STREAM, digit: 0, limb: 0 };
            engine.uniform(&seed, id, number * CHUNK, &mut a);
            engine.mul_add(c1, &a, mask);
        }
        // Each half of a ciphertext is packed as the residues of a public key are.
        let mut bytes = 0;
        let mut sink = |part: &[u8]| -> Result<(), SinkError> {
            bytes += part.len();
            Ok(())
        };
        for half in [&*c0, &*c1] {
            write_public_key(&thin_parameters, KeyIdentity::UNKNOWN, &seed, half, &mut sink)?;
        }
        instructions += meter::instructions() - start;
        assert!(bytes >= 2 * n * 30 / 8, "{bytes} bytes");

        if index == 0 || index == count - 1 {
            engine.mul_add(c0, c1, secret);
            engine.inverse(c0);
            // e_0 + e_1 s + e u, each error at most 29.
            let (bound, modulus) = (GAUSSIAN_BOUND * (1 + 2 * n as i64), Modulus::new(q)?);
            let error = |(&c, &m): (&u32, &i64)| modulus.centered(modulus.reduce_i64(i64::from(c) - m)).abs();
            let worst = c0.iter().zip(&*message).map(error).max();
            assert!(worst <= Some(bound), "an error of {worst:?} modulo {q}");
        }
    }
    Ok(instructions)
}

/// Instructions of the Fourier transform of `N/2` complex numbers in doubles, and of the number-theoretic transform of
/// `N` residues of 30 bits: as many numbers. [`both`] checks what the first makes.
///
/// # Errors
///
/// The errors of the client.
pub fn transforms(log_n: u32, memory: &mut FullMemory) -> Result<(u64, u64), ClientError> {
    let n = 1 << log_n;
    let numbers = Pattern { count: n, max: 1 << FRACTION_BITS };
    let slots = &mut memory.slots[..n / 2];
    for (j, slot) in slots.iter_mut().enumerate() {
        *slot = [value(&numbers, j), value(&numbers, j + n / 2)];
    }
    let start = meter::instructions();
    fourier(log_n, slots);
    let in_doubles = meter::instructions() - start;
    let engine = SmallEngine::<Montgomery<u32>>::new(log_n, ShiftAdd30::MODULUS)?;
    let limb = &mut memory.thin.limb[..n];
    for (index, word) in limb.iter_mut().enumerate() {
        *word = numbers.at(index).unsigned_abs() as u32;
    }
    let start = meter::instructions();
    engine.forward(limb);
    Ok((in_doubles, meter::instructions() - start))
}

/// Instructions of the thin client with as many numbers; the other program checks its output.
fn thin(log_n: u32, memory: &mut Memory) -> Result<u64, ClientError> {
    let parameters = parameters(log_n, ShiftAdd30::MODULUS)?;
    let n = parameters.n();
    let numbers = Pattern { count: n, max: 1 << FRACTION_BITS };
    let packed = &mut memory.packed[..secret_bytes(log_n)];
    let (b, mask, limb) = (&mut memory.public[..n], &mut memory.mask[..n], &mut memory.limb[..n]);
    let engine = SmallEngine::<Montgomery<u32>>::new(log_n, ShiftAdd30::MODULUS)?;
    let mut rng = entropy(1).generator()?;
    sample_secret(&parameters, &mut rng, packed)?;
    expand_secret(&engine, packed, mask)?;
    let seed = make_public_key(&engine, mask, &mut rng, b)?;
    let key =
        PublicKey { b: Half::Residues(&*b), a: Half::Seeded(seed), key: KeyIdentity::of_packed(packed, parameters.literal().secret) };
    let mut bytes = 0;
    let mut sink = |part: &[u8]| -> Result<(), SinkError> {
        bytes += part.len();
        Ok(())
    };
    let start = meter::instructions();
    encrypt(&engine, &parameters, &key, &numbers, Form::Evaluations, &mut rng, mask, limb, &mut sink)?;
    let instructions = meter::instructions() - start;
    assert!(bytes == parameters.ciphertext_bytes(), "{bytes} bytes");
    Ok(instructions)
}
