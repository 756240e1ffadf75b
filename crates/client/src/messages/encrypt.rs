//! Encryption modulo `q_0`: three transforms with the public key, one with the secret.
//!
//! With the public key `(b, a)`: `c_0 = b u + e_0 + m`, `c_1 = a u + e_1`, for a uniform ternary `u` and Gaussian
//! `e_0, e_1`. With the secret: `c_0 = -a s + e + m`, `c_1 = a` from a seed. Samples are drawn in the order of
//! `keywright_rlwe` for every [`Form`]: the same generator gives the same bytes as the full library at level 0.

use keywright_frame::packing::Residue;
use keywright_frame::{CiphertextDescriptor, Fields, Kind, SeededDescriptor};
use keywright_ring::Seed;
use keywright_ring::sampling::{SecretRng, gaussian, ternary};
use keywright_rlwe::KeyIdentity;

use crate::engine::{BLOCK, Engine, residue, values, wipe};
use crate::error::{frame_error, in_range, require_len};
use crate::keys::key::{ENCRYPTION, PublicKey, sub_uniform};
use crate::messages::compact_form::{Form, body_bytes, descriptor, put_coefficients, require_dropped};
use crate::object::{ObjectWriter, ShortFields};
use crate::{ClientError, ClientParameters, Layout, Numbers, Sink, Word};

/// Encrypts numbers under a public key and writes the ciphertext, half by half.
///
/// Working memory is `mask` and `limb`, of `N` words each, and a few kilobytes of stack; secrets in it are wiped on
/// return.
///
/// # Errors
/// Before anything is written: [`ClientError::Length`] for too many numbers or buffers of the wrong length,
/// [`ClientError::NumberRange`], [`ClientError::Range`] for more dropped bits than there are, [`ClientError::Ring`] for
/// a generator of given entropy in a forked child. Later: [`ClientError::Sink`]; the output is then a ciphertext cut
/// short, which readers refuse.
pub fn encrypt<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    key: &PublicKey<'_, E::Word>,
    numbers: &T,
    form: Form,
    rng: &mut SecretRng,
    mask: &mut [E::Word],
    limb: &mut [E::Word],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require(engine, parameters, numbers, form, false, limb)?;
    rng.begin()?;
    require_len("words of the mask", mask.len(), engine.n())?;
    let mut halves = Halves::start(engine, parameters, &key.key, form, None, sink)?;
    let mut signs = values();
    for part in mask.chunks_mut(BLOCK) {
        let signs = &mut signs[..part.len()];
        ternary(rng, signs);
        engine.lift(signs, part);
    }
    engine.forward(mask);
    let result =
        halves.half(Some(numbers), rng, limb, |start, acc| key.b.mul_add(engine, start, acc, mask)).and_then(
            |()| halves.half(None::<&T>, rng, limb, |start, acc| key.a.mul_add(engine, start, acc, mask)),
        );
    // With the ciphertext, it reveals the message.
    wipe(mask);
    result?;
    halves.finish()
}

/// Encrypts numbers with the secret, in evaluation form, and writes the ciphertext: half the bytes, as the uniform half
/// is a seed. `key` is the secret's identity ([`KeyIdentity::of_packed`]).
///
/// Working memory is `limb`, of `N` words, and a few kilobytes of stack; secrets in it are wiped on return.
///
/// # Errors
/// As [`encrypt`].
pub fn encrypt_symmetric<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    secret: &[E::Word],
    key: KeyIdentity,
    numbers: &T,
    form: Form,
    rng: &mut SecretRng,
    limb: &mut [E::Word],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require(engine, parameters, numbers, form, true, limb)?;
    rng.begin()?;
    require_len("residues of a secret", secret.len(), engine.n())?;
    let seed = rng.public_seed();
    let mut halves = Halves::start(engine, parameters, &key, form, Some(&seed), sink)?;
    halves.half(Some(numbers), rng, limb, |start, acc| {
        sub_uniform(engine, &seed, ENCRYPTION, start, secret, acc);
    })?;
    halves.finish()
}

fn require<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    numbers: &T,
    form: Form,
    seeded: bool,
    limb: &[E::Word],
) -> Result<(), ClientError> {
    let (log_n, q) = (u64::from(parameters.log_n()), parameters.modulus().value());
    in_range("log2(N) of the engine", engine.log_n().into(), log_n, log_n)?;
    in_range("modulus of the engine", engine.modulus().value(), q, q)?;
    require_len("words of a polynomial", limb.len(), engine.n())?;
    if let Form::Compact(dropped) = form {
        require_dropped(dropped, engine.modulus().bits(), seeded)?;
    }
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

/// The halves of a ciphertext while they are written, in their form.
struct Halves<'a, 's, E> {
    engine: &'a E,
    parameters: &'a ClientParameters,
    form: Form,
    object: ObjectWriter<'s>,
}

impl<'a, 's, E: Engine> Halves<'a, 's, E> {
    /// Writes the header of a ciphertext; with a seed, that of one made with the secret.
    fn start(
        engine: &'a E,
        parameters: &'a ClientParameters,
        key: &KeyIdentity,
        form: Form,
        seed: Option<&Seed>,
        sink: &'s mut dyn Sink,
    ) -> Result<Self, ClientError> {
        let (log_n, width, layout) = (engine.log_n(), engine.modulus().bits(), parameters.layout());
        let message = parameters.message(seed.is_some());
        let (kind, fields, body) = match form {
            Form::Compact(dropped) => (
                Kind::CkksCompactCiphertext,
                descriptor(layout, dropped, seed, message)?,
                body_bytes(log_n, width, layout, dropped, seed.is_some()),
            ),
            Form::Evaluations => {
                let (mut fields, half) = (ShortFields::default(), parameters.polynomial_bytes());
                let (kind, shape, body) = match seed {
                    None => {
                        let shape = CiphertextDescriptor { level: 0, polynomials: 2 };
                        (Kind::CkksCiphertext, shape.encode(&mut fields), 2 * half)
                    }
                    Some(&seed) => {
                        let shape = SeededDescriptor { level: 0, seed };
                        (Kind::CkksSeededCiphertext, shape.encode(&mut fields), half)
                    }
                };
                shape.and_then(|()| message.encode(&mut fields)).map_err(frame_error("the ciphertext"))?;
                (kind, fields, body)
            }
        };
        let identity = &parameters.literal().identity;
        let object = ObjectWriter::start(sink, kind, identity, key, fields.as_slice(), body)?;
        Ok(Self { engine, parameters, form, object })
    }

    /// Writes the sum of a product, an error and, in the first half, the numbers. `multiply` adds the product's
    /// evaluations from a given one on.
    fn half<T: Numbers + ?Sized>(
        &mut self,
        numbers: Option<&T>,
        rng: &mut SecretRng,
        limb: &mut [E::Word],
        multiply: impl Fn(usize, &mut [E::Word]),
    ) -> Result<(), ClientError> {
        let engine = self.engine;
        let (log_n, q) = (engine.log_n(), engine.modulus().value());
        let (format, layout) = (*self.parameters.fixed_point(), self.parameters.layout());
        let mut errors = values();
        match self.form {
            Form::Evaluations => {
                if let Some(numbers) = numbers {
                    if numbers.count() < limb.len() {
                        limb.fill(E::Word::default());
                    }
                    // Signed, and small enough for a word: at most a quarter of the modulus.
                    layout.write(log_n, numbers, limb, move |_, number| {
                        E::Word::from_u64(format.coefficient(number) as u64)
                    });
                }
                for part in limb.chunks_mut(BLOCK) {
                    let errors = &mut errors[..part.len()];
                    gaussian(rng, errors);
                    if numbers.is_some() {
                        errors.iter_mut().zip(&*part).for_each(|(sum, word)| *sum += word.to_i64());
                    }
                    engine.lift(errors, part);
                }
                engine.forward(limb);
                // The sink may have forked: no data of an operation that two processes share may leave.
                let result = rng.require_operation().map_err(ClientError::from).and_then(|()| {
                    limb.chunks_mut(BLOCK).enumerate().try_for_each(|(number, part)| {
                        multiply(number * BLOCK, part);
                        self.object.residues(engine.modulus().bits(), part)
                    })
                });
                // For a whole half, the buffer holds the bytes that were sent.
                if result.is_err() {
                    wipe(limb);
                }
                result
            }
            Form::Compact(dropped) => {
                limb.fill(E::Word::default());
                multiply(0, limb);
                engine.inverse(limb);
                for part in limb.chunks_mut(BLOCK) {
                    let errors = &mut errors[..part.len()];
                    gaussian(rng, errors);
                    engine.lift_add(errors, part);
                }
                if let Some(numbers) = numbers {
                    layout.write(log_n, numbers, limb, move |word, number| {
                        // Below 2q, and reduced without a branch.
                        let sum = word.to_u64() + residue(q, format.coefficient(number));
                        E::Word::from_u64(sum.min(sum.wrapping_sub(q)))
                    });
                }
                let (layout, dropped) =
                    if numbers.is_some() { (layout, dropped[0]) } else { (Layout::Coefficients, dropped[1]) };
                let result = rng
                    .require_operation()
                    .map_err(ClientError::from)
                    .and_then(|()| put_coefficients(&mut self.object, engine, layout, dropped, limb));
                // It contains dropped bits and coefficients.
                wipe(limb);
                result
            }
        }
    }

    fn finish(self) -> Result<(), ClientError> {
        self.object.finish()
    }
}
