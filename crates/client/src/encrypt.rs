//! Encryption modulo `q_0`: three transforms with the public key, one with the secret.
//!
//! With the public key `(b, a)`: `c_0 = b u + e_0 + m`, `c_1 = a u + e_1`, for a uniform ternary `u` and Gaussian `e_0, e_1`. With the secret:
//! `c_0 = -a s + e + m`, `c_1 = a` from a seed. In evaluation form, in the order of samples of `keywright_rlwe`: the same generator gives
//! the same bytes as the full library at level 0.

use keywright_ring::sampling::{SecretRng, gaussian, ternary};
use zeroize::Zeroize;

use crate::engine::{CHUNK, Engine};
use crate::error::{in_range, require_len};
use crate::frame::{Fields, Kind, ObjectWriter, values};
use crate::key::{ENCRYPTION, PublicKey, sub_uniform};
use crate::{ClientError, ClientParameters, Numbers, Sink};

/// Encrypts numbers under a public key and writes the ciphertext, polynomial by polynomial.
///
/// Working memory is `mask` and `limb`, of `N` words each, wiped on return, and a few kilobytes of stack.
///
/// # Errors
/// Before anything is written: [`ClientError::Length`] for too many numbers or buffers of another length, [`ClientError::NumberRange`].
/// Later: [`ClientError::Sink`]. What was written then is a ciphertext cut short, which no reader takes.
pub fn encrypt<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    key: &PublicKey<'_, E::Word>,
    numbers: &T,
    rng: &mut SecretRng,
    mask: &mut [E::Word],
    limb: &mut [E::Word],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require(engine, parameters, numbers, limb)?;
    require_len("words of the mask", mask.len(), engine.n())?;
    let mut fields = Fields::new();
    fields.put(&[0, 2]);
    parameters.put_message(&mut fields, false);
    let identity = &parameters.literal().identity;
    let body = 2 * parameters.polynomial_bytes();
    let mut object = ObjectWriter::start(sink, Kind::Ciphertext, identity, fields.as_slice(), body)?;
    let result = (|| {
        let mut signs = values();
        for part in mask.chunks_mut(CHUNK) {
            ternary(rng, &mut *signs);
            engine.lift(&*signs, part);
        }
        engine.forward(mask);
        add_errors(engine, rng, limb, |start, sums| add_numbers(parameters, numbers, start, sums));
        key.b.mul_add(engine, limb, mask);
        object.residues(parameters.modulus().bits(), limb)?;
        add_errors(engine, rng, limb, |_, _| ());
        key.a.mul_add(engine, limb, mask);
        object.residues(parameters.modulus().bits(), limb)
    })();
    // With the ciphertext, either of them gives the message away.
    mask.zeroize();
    limb.zeroize();
    result?;
    object.finish()
}

/// Encrypts numbers with the secret, in evaluation form, and writes the ciphertext: half the bytes, as the uniform half is a seed.
///
/// Working memory is `limb`, of `N` words, wiped on return, and a few kilobytes of stack.
///
/// # Errors
/// As [`encrypt`].
pub fn encrypt_symmetric<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    secret: &[E::Word],
    numbers: &T,
    rng: &mut SecretRng,
    limb: &mut [E::Word],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require(engine, parameters, numbers, limb)?;
    require_len("residues of a secret", secret.len(), engine.n())?;
    let seed = rng.public_seed();
    let mut fields = Fields::new();
    fields.put(&[0]).put(&seed.0);
    parameters.put_message(&mut fields, true);
    let identity = &parameters.literal().identity;
    let body = parameters.polynomial_bytes();
    let mut object = ObjectWriter::start(sink, Kind::SeededCiphertext, identity, fields.as_slice(), body)?;
    add_errors(engine, rng, limb, |start, sums| add_numbers(parameters, numbers, start, sums));
    sub_uniform(engine, &seed, ENCRYPTION, secret, limb);
    let result = object.residues(parameters.modulus().bits(), limb);
    limb.zeroize();
    result?;
    object.finish()
}

pub(crate) fn require<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    numbers: &T,
    limb: &[E::Word],
) -> Result<(), ClientError> {
    let (log_n, q) = (u64::from(parameters.log_n()), parameters.modulus().value());
    in_range("log2(N) of the engine", engine.log_n().into(), log_n, log_n)?;
    in_range("modulus of the engine", engine.modulus().value(), q, q)?;
    require_len("words of a polynomial", limb.len(), engine.n())?;
    let capacity = parameters.capacity();
    if numbers.count() > capacity {
        return Err(ClientError::Length {
            what: "numbers to encrypt (at most)",
            found: numbers.count(),
            expected: capacity,
        });
    }
    parameters.fixed_point().require_legal(numbers)
}

/// Errors plus what `add` adds to them, in evaluation form.
fn add_errors<E: Engine>(
    engine: &E,
    rng: &mut SecretRng,
    limb: &mut [E::Word],
    add: impl Fn(usize, &mut [i64]),
) {
    let mut sums = values();
    for (number, part) in limb.chunks_mut(CHUNK).enumerate() {
        gaussian(rng, &mut *sums);
        add(number * CHUNK, &mut *sums);
        engine.lift(&*sums, part);
    }
    engine.forward(limb);
}

/// Adds the coefficients of numbers to coefficients `start..`.
pub(crate) fn add_numbers<T: Numbers + ?Sized>(
    parameters: &ClientParameters,
    numbers: &T,
    start: usize,
    sums: &mut [i64],
) {
    let (layout, format) = (parameters.layout(), parameters.fixed_point());
    for (position, sum) in (start..).zip(sums) {
        if let Some(index) = layout.index(parameters.log_n(), position)
            && index < numbers.count()
        {
            *sum += format.coefficient(numbers.at(index));
        }
    }
}
