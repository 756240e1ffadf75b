//! The client's form of the secret, and the public key at `q_0`.

use keywright_frame::packing::{pack_ternary, packed_len, packed_ternary_len, unpack, unpack_ternary};
use keywright_frame::{FieldReader, Kind};
use keywright_ring::sampling::{SecretRng, gaussian, sparse_ternary, ternary};
use keywright_ring::{MIN_LOG_N, Seed, StreamId};
use keywright_rlwe::{
    ENCRYPTION_STREAM, KeyIdentity, MAX_SUBRINGS, PUBLIC_KEY_STREAM, RlweError, SecretDistribution,
};
use zeroize::Zeroizing;

use crate::engine::{BLOCK, CHUNK, Engine, values};
use crate::error::require_len;
use crate::keys::secrets::expand;
use crate::object::{Object, ObjectWriter, unpack_canonical};
use crate::{ClientError, ClientParameters, Sink, Word};

const WHAT: &str = "the secret key";

/// Bytes of a packed secret: two bits per coefficient.
pub const fn secret_bytes(log_n: u32) -> usize {
    packed_ternary_len(1 << log_n)
}

/// Samples a secret of the parameters' distribution, packed. A uniform ternary secret needs no further memory; a sparse
/// one needs a permutation, which allocates `16 N` bytes.
///
/// # Errors
/// [`ClientError::Length`] unless `packed` has [`secret_bytes`]; [`ClientError::Ring`] for a weight above `N`, and for
/// a generator of given entropy in a forked child.
pub fn sample_secret(
    parameters: &ClientParameters,
    rng: &mut SecretRng,
    packed: &mut [u8],
) -> Result<(), ClientError> {
    require_len("bytes of a secret", packed.len(), secret_bytes(parameters.log_n()))?;
    rng.begin()?;
    match parameters.literal().secret {
        SecretDistribution::Ternary => {
            let mut coefficients = values();
            for part in packed.chunks_mut(BLOCK / 4) {
                let coefficients = &mut coefficients[..4 * part.len()];
                ternary(rng, coefficients);
                pack_ternary(coefficients, part);
            }
        }
        SecretDistribution::Sparse { weight } => {
            let mut coefficients = Zeroizing::new(alloc::vec![0; parameters.n()]);
            sparse_ternary(rng, weight, &mut coefficients)?;
            pack_ternary(&coefficients, packed);
        }
    }
    Ok(rng.require_operation()?)
}

/// The secret in evaluation form, for decryption and for encryption with the secret. Secret: the caller wipes it.
///
/// # Errors
/// [`ClientError::Length`].
pub fn expand_secret<E: Engine>(engine: &E, packed: &[u8], out: &mut [E::Word]) -> Result<(), ClientError> {
    require_len("bytes of a secret", packed.len(), secret_bytes(engine.log_n()))?;
    require_len("residues of a secret", out.len(), engine.n())?;
    expand(engine, packed, out);
    Ok(())
}

/// Writes a secret as the object that the full library reads as a secret key.
///
/// # Errors
/// [`ClientError::Length`]; [`ClientError::Sink`].
pub fn write_secret(
    parameters: &ClientParameters,
    packed: &[u8],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require_len("bytes of a secret", packed.len(), secret_bytes(parameters.log_n()))?;
    let identity = &parameters.literal().identity;
    let key = KeyIdentity::of_packed(packed, parameters.literal().secret);
    let mut object = ObjectWriter::start(sink, Kind::SecretKey, identity, &key, &[], packed.len())?;
    object.bytes(packed)?;
    object.finish()
}

/// The packed secret of such an object: a part of `bytes`. Secrets of smaller rings follow it if the server's
/// parameters have some. A client does not need them, and refuses invalid ones.
///
/// # Errors
/// [`ClientError::Format`], [`ClientError::Checksum`], [`ClientError::ForeignParameters`]; [`ClientError::Range`] for a
/// Hamming weight that no sampled secret has; [`ClientError::Rlwe`] for the identity of another secret.
pub fn read_secret<'b>(parameters: &ClientParameters, bytes: &'b [u8]) -> Result<&'b [u8], ClientError> {
    let object = Object::read(WHAT, bytes)?;
    object.fields(Kind::SecretKey, &parameters.literal().identity)?.finish()?;
    let len = secret_bytes(parameters.log_n());
    object.require_body(object.body.len().clamp(len, 2 * len - 1))?;
    let (own, smaller) = object.body.split_at(len);
    check_secret(own, parameters.literal().secret)?;
    check_smaller(smaller)?;
    let (left_key, right_key) = (object.key, KeyIdentity::of_packed(own, parameters.literal().secret));
    if left_key != right_key {
        let (left, right) = ("the header of the secret", "the secret");
        return Err(RlweError::KeyMismatch { left, right, left_key, right_key }.into());
    }
    Ok(own)
}

/// Whether it is ternary, with a weight of its distribution. Its length is that of a ring. Nothing branches on a
/// coefficient.
fn check_secret(packed: &[u8], secret: SecretDistribution) -> Result<(), ClientError> {
    let mut coefficients = values();
    let (mut invalid, mut weight) = (0, 0);
    for part in packed.chunks(BLOCK / 4) {
        let coefficients = &mut coefficients[..4 * part.len()];
        invalid += unpack_ternary(part, coefficients);
        weight += coefficients.iter().map(|c| c.unsigned_abs()).sum::<u64>();
    }
    if invalid > 0 {
        return Err(ClientError::Format { what: WHAT, problem: "it has coefficients that are not ternary" });
    }
    let weights = secret.weights(4 * packed.len());
    let (min, max) = (*weights.start() as u64, *weights.end() as u64);
    crate::error::in_range("nonzero coefficients of a secret", weight, min, max)
}

/// Secrets of smaller rings, from the largest down. Each ring is smaller than the one before and its degree is a power
/// of two, so the bits of their length identify the rings.
fn check_smaller(mut packed: &[u8]) -> Result<(), ClientError> {
    let rings = packed.len().count_ones() as usize;
    if !packed.len().is_multiple_of(secret_bytes(MIN_LOG_N)) || rings > MAX_SUBRINGS {
        return Err(ClientError::Format { what: WHAT, problem: "its length is that of no list of rings" });
    }
    while !packed.is_empty() {
        let (ring, rest) = packed.split_at(1 << packed.len().ilog2());
        check_secret(ring, SecretDistribution::Ternary)?;
        packed = rest;
    }
    Ok(())
}

/// One half of a public key, in evaluation form.
#[derive(Debug, Clone, Copy)]
pub enum Half<'k, W> {
    /// Residues in words, ready for computation.
    Residues(&'k [W]),
    /// Packed residues, as in flash memory or in a file.
    Packed(&'k [u8]),
    /// The seed of uniform residues.
    Seeded(Seed),
}

/// A public key `(b, a)` with `b = -a s + e` modulo `q_0`, with its halves in any form.
#[derive(Debug, Clone, Copy)]
pub struct PublicKey<'k, W> {
    /// `b`.
    pub b: Half<'k, W>,
    /// `a`.
    pub a: Half<'k, W>,
    /// The identity of its secret.
    pub key: KeyIdentity,
}

impl<'k, W: Word> PublicKey<'k, W> {
    /// The key in an object of bytes, which it borrows: packed and seeded. Checks every residue.
    ///
    /// # Errors
    /// [`ClientError::Format`], [`ClientError::Checksum`], [`ClientError::ForeignParameters`],
    /// [`ClientError::Residue`].
    pub fn read(parameters: &ClientParameters, bytes: &'k [u8]) -> Result<Self, ClientError> {
        const WHAT: &str = "the public key";
        let object = Object::read(WHAT, bytes)?;
        let identity = &parameters.literal().entry_identity;
        let mut fields = object.fields(Kind::PublicKey, identity)?;
        object.require_body(parameters.polynomial_bytes())?;
        let seed = fields.take(FieldReader::seed)?;
        fields.finish()?;
        let mut residues = [0u64; CHUNK];
        let width = parameters.modulus().bits();
        for (number, part) in object.body.chunks(packed_len(CHUNK, width)).enumerate() {
            unpack_canonical(parameters.modulus(), part, &mut residues).map_err(|error| match error {
                ClientError::Residue { index, value, modulus } => {
                    ClientError::Residue { index: number * CHUNK + index, value, modulus }
                }
                other => other,
            })?;
        }
        Ok(Self { b: Half::Packed(object.body), a: Half::Seeded(seed), key: object.key })
    }
}

impl<W: Word> Half<'_, W> {
    /// `acc += half * other` for some evaluations from `start` on, a multiple of [`CHUNK`]. `half` and `other` are
    /// whole.
    pub(crate) fn mul_add<E: Engine<Word = W>>(&self, engine: &E, start: usize, acc: &mut [W], other: &[W]) {
        let other = &other[start..start + acc.len()];
        if let Self::Residues(residues) = self {
            return engine.mul_add(acc, &residues[start..start + other.len()], other);
        }
        let mut chunk = [W::default(); CHUNK];
        for (number, (acc, other)) in acc.chunks_mut(CHUNK).zip(other.chunks(CHUNK)).enumerate() {
            let start = start + number * CHUNK;
            match self {
                Self::Packed(bytes) => unpack(engine.modulus().bits(), bytes, start, &mut chunk),
                Self::Seeded(seed) => engine.uniform(seed, PUBLIC_KEY, start, &mut chunk),
                Self::Residues(_) => {}
            }
            engine.mul_add(acc, &chunk, other);
        }
    }
}

/// The stream of the uniform half of a public key modulo `q_0`.
pub(crate) const PUBLIC_KEY: StreamId = StreamId { object: PUBLIC_KEY_STREAM, digit: 0, limb: 0 };
/// The stream of the uniform half of a seeded ciphertext.
pub(crate) const ENCRYPTION: StreamId = StreamId { object: ENCRYPTION_STREAM, digit: 0, limb: 0 };

/// Makes the public key of a secret: its seed, and `b` in evaluation form, written to `b`. `secret` is in evaluation
/// form.
///
/// # Errors
/// [`ClientError::Length`]; [`ClientError::Ring`] for a generator of given entropy in a forked child.
pub fn make_public_key<E: Engine>(
    engine: &E,
    secret: &[E::Word],
    rng: &mut SecretRng,
    b: &mut [E::Word],
) -> Result<Seed, ClientError> {
    require_len("residues of a secret", secret.len(), engine.n())?;
    require_len("residues of a public key", b.len(), engine.n())?;
    rng.begin()?;
    let seed = rng.public_seed();
    let mut errors = values();
    for part in b.chunks_mut(BLOCK) {
        let errors = &mut errors[..part.len()];
        gaussian(rng, errors);
        engine.lift(errors, part);
    }
    engine.forward(b);
    sub_uniform(engine, &seed, PUBLIC_KEY, 0, secret, b);
    rng.require_operation()?;
    Ok(seed)
}

/// `acc -= a secret` for the uniform `a` of a stream, for some evaluations from `start` on, a multiple of [`CHUNK`].
/// `secret` is whole.
pub(crate) fn sub_uniform<E: Engine>(
    engine: &E,
    seed: &Seed,
    id: StreamId,
    start: usize,
    secret: &[E::Word],
    acc: &mut [E::Word],
) {
    let mut chunk = [E::Word::default(); BLOCK];
    for (number, (acc, secret)) in acc.chunks_mut(BLOCK).zip(secret[start..].chunks(BLOCK)).enumerate() {
        let (chunk, secret) = (&mut chunk[..acc.len()], &secret[..acc.len()]);
        engine.uniform(seed, id, start + number * BLOCK, chunk);
        engine.mul_sub(acc, chunk, secret);
    }
}

/// Writes a public key at `q_0`: an object of the server's ring with one prime. `key` is its secret's identity.
///
/// # Errors
/// [`ClientError::Length`]; [`ClientError::Sink`].
pub fn write_public_key<W: Word>(
    parameters: &ClientParameters,
    key: KeyIdentity,
    seed: &Seed,
    b: &[W],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require_len("residues of a public key", b.len(), parameters.n())?;
    let identity = &parameters.literal().entry_identity;
    let body = parameters.polynomial_bytes();
    let mut object = ObjectWriter::start(sink, Kind::PublicKey, identity, &key, &seed.0, body)?;
    object.residues(parameters.modulus().bits(), b)?;
    object.finish()
}
