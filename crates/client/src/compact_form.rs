//! Ciphertexts in coefficient form, short of what their reader can do without: kind `0105` of `docs/format.md`.
//!
//! # Fewer coefficients
//! Whoever wants `n` coefficients of `c_0 + c_1 s` needs `n` coefficients of `c_0`, at the places of the [`Layout`], and all of `c_1`. Of a ciphertext made with
//! the secret, whose `c_1` is a seed, that leaves `n` residues and 32 bytes. A server that computes on sparse slots sets the others to 0: they decrypt to
//! arbitrary values, which its trace to the subring removes as it removes what raising the modulus adds to them. What is sent is part of an ordinary
//! ciphertext, so it says no more about the secret or the message.
//!
//! # Dropped bits
//! Of a coefficient of `c_i` the value `floor(c_i / 2^d_i)` is kept. The reader takes the middle of what it stands for, so it is off by at most `2^(d_i - 1)`: by that in
//! `c_0`, and in `c_1 s` by a sum of `||s||^2` such terms, nearly uniform and independent, of variance `||s||^2 2^(2 d_1) / 12`.

use keywright_ring::Seed;
use keywright_ring::sampling::{SecretRng, gaussian, ternary};
use zeroize::Zeroize;

use crate::encrypt::{add_numbers, require};
use crate::engine::{CHUNK, Engine};
use crate::error::{in_range, require_len};
use crate::frame::{
    Fields, Identity, Kind, Object, ObjectWriter, Reader, packed_len, seed_of, unpack, values,
};
use crate::key::{ENCRYPTION, PublicKey, sub_uniform};
use crate::parameters::MESSAGE;
use crate::{ClientError, ClientParameters, Layout, Numbers, Sink, Word};

/// Low bits that are dropped from the coefficients of `c_0` and of `c_1`.
pub type Dropped = [u32; 2];

/// The second half of a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondHalf<'b> {
    /// Its uniform residues, in evaluation form, are the stream of a seed.
    Seeded(Seed),
    /// Packed coefficients.
    Packed(&'b [u8]),
}

/// A ciphertext of this kind as it was read, checked but for its residues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactForm<'b> {
    /// Which coefficients of `c_0` there are.
    pub layout: Layout,
    /// Bits that were dropped.
    pub dropped: Dropped,
    /// Packed coefficients of `c_0`, in the order of the layout's numbers.
    pub c0: &'b [u8],
    /// `c_1`.
    pub c1: SecondHalf<'b>,
    /// Bits of the doubles scale, deviation and magnitude.
    pub message: [u64; 3],
}

/// Numbers of a layout, filled up to a multiple of eight.
fn padded(count: usize) -> usize {
    count.next_multiple_of(8)
}

fn body_bytes(log_n: u32, width: u32, layout: Layout, dropped: Dropped, seeded: bool) -> usize {
    let c1 = if seeded { 0 } else { packed_len(1 << log_n, width - dropped[1]) };
    packed_len(padded(layout.capacity(log_n)), width - dropped[0]) + c1
}

fn put_layout(fields: &mut Fields, layout: Layout) {
    match layout {
        Layout::Coefficients => fields.put(&[0, 0]),
        Layout::Slots { log_slots, complex } => fields.put(&[1 + u8::from(complex), log_slots as u8]),
    };
}

fn descriptor(layout: Layout, dropped: Dropped, seed: Option<&Seed>) -> Fields {
    let mut fields = Fields::new();
    put_layout(&mut fields, layout);
    fields.put(&dropped.map(|bits| bits as u8)).put(&[seed.is_some().into()]);
    if let Some(seed) = seed {
        fields.put(&seed.0);
    }
    fields
}

fn require_dropped(dropped: Dropped, width: u32) -> Result<(), ClientError> {
    // Packed residues have at least 12 bits.
    dropped
        .iter()
        .try_for_each(|&bits| in_range("dropped bits", bits.into(), 0, u64::from(width.saturating_sub(12))))
}

impl ClientParameters {
    /// Bytes of a ciphertext in compact form.
    pub fn compact_bytes(&self, dropped: Dropped, seeded: bool) -> usize {
        let body = body_bytes(self.log_n(), self.modulus().bits(), self.layout(), dropped, seeded);
        crate::frame::object_len(5 + if seeded { 32 } else { 0 } + MESSAGE, body)
    }
}

impl<'b> CompactForm<'b> {
    /// Reads an object of this kind, of the ring of the given degree and prime.
    ///
    /// # Errors
    /// [`ClientError::Format`], [`ClientError::Checksum`], [`ClientError::ForeignParameters`], [`ClientError::Range`].
    pub fn read(log_n: u32, width: u32, identity: &Identity, bytes: &'b [u8]) -> Result<Self, ClientError> {
        Self::of(&Object::read(WHAT, bytes)?, log_n, width, identity)
    }

    pub(crate) fn of(
        object: &Object<'b>,
        log_n: u32,
        width: u32,
        identity: &Identity,
    ) -> Result<Self, ClientError> {
        let mut reader = Reader(object.descriptor);
        let [form, log_slots, d0, d1, seeded] = reader.array(WHAT)?;
        in_range("form of the layout", form.into(), 0, 2)?;
        let layout = match form {
            0 => {
                in_range("log2 of the number of slots of a coefficient layout", log_slots.into(), 0, 0)?;
                Layout::Coefficients
            }
            _ => {
                in_range("log2 of the number of slots", log_slots.into(), 0, (log_n - 1).into())?;
                Layout::Slots { log_slots: log_slots.into(), complex: form == 2 }
            }
        };
        in_range("seeded flag of a ciphertext", seeded.into(), 0, 1)?;
        let dropped = [d0, d1].map(u32::from);
        require_dropped(dropped, width)?;
        let seed = if seeded == 1 { Some(seed_of(&mut reader, WHAT)?) } else { None };
        if reader.array(WHAT)? != [1, 0] {
            return Err(ClientError::Format {
                what: WHAT,
                problem: "its values are in slots, not in coefficients",
            });
        }
        let message = [reader.u64(WHAT)?, reader.u64(WHAT)?, reader.u64(WHAT)?];
        reader.finish(WHAT)?;
        object.require(
            WHAT,
            Kind::Compact,
            identity,
            body_bytes(log_n, width, layout, dropped, seed.is_some()),
        )?;
        let (c0, rest) = object.body.split_at(packed_len(padded(layout.capacity(log_n)), width - dropped[0]));
        let c1 = seed.map_or(SecondHalf::Packed(rest), SecondHalf::Seeded);
        Ok(Self { layout, dropped, c0, c1, message })
    }

    /// The residues of `c_0`: the middle of what each stands for, 0 where there is none.
    ///
    /// # Errors
    /// [`ClientError::Residue`].
    pub fn first_half<E: Engine>(&self, engine: &E, out: &mut [E::Word]) -> Result<(), ClientError> {
        let (log_n, capacity) = (engine.log_n(), self.layout.capacity(engine.log_n()));
        out.fill(E::Word::default());
        let width = engine.modulus().bits() - self.dropped[0];
        let mut chunk = [E::Word::default(); CHUNK];
        for start in (0..capacity).step_by(CHUNK) {
            let count = CHUNK.min(padded(capacity) - start);
            unpack(width, self.c0, start, &mut chunk[..count]);
            for (index, &word) in (start..).zip(&chunk[..count]) {
                if index >= capacity {
                    if word != E::Word::default() {
                        return Err(ClientError::Format { what: WHAT, problem: "padding that is not zero" });
                    }
                    continue;
                }
                out[self.layout.position(log_n, index)] = middle(engine, word, self.dropped[0], index)?;
            }
        }
        Ok(())
    }

    /// `c_1` in evaluation form.
    ///
    /// # Errors
    /// [`ClientError::Residue`].
    pub fn second_half<E: Engine>(&self, engine: &E, out: &mut [E::Word]) -> Result<(), ClientError> {
        match self.c1 {
            SecondHalf::Seeded(seed) => engine.uniform(&seed, ENCRYPTION, 0, out),
            SecondHalf::Packed(packed) => {
                unpack(engine.modulus().bits() - self.dropped[1], packed, 0, out);
                for (index, word) in out.iter_mut().enumerate() {
                    *word = middle(engine, *word, self.dropped[1], index)?;
                }
                engine.forward(out);
            }
        }
        Ok(())
    }
}

const WHAT: &str = "the ciphertext";

/// The middle of what a coefficient without its low bits stands for; of the highest interval, which may end above the modulus, at most the last
/// residue.
fn middle<E: Engine>(engine: &E, word: E::Word, dropped: u32, index: usize) -> Result<E::Word, ClientError> {
    let (q, value) = (engine.modulus().value(), word.to_u64());
    if value > (q - 1) >> dropped {
        return Err(ClientError::Residue { index, value: value << dropped, modulus: q });
    }
    Ok(E::Word::from_u64(((value << dropped) + ((1 << dropped) >> 1)).min(q - 1)))
}

/// Writes both halves of a ciphertext in coefficient form: what a server answers with. `message` has the bits of scale, deviation and magnitude.
///
/// # Errors
/// [`ClientError::Range`] for more dropped bits than there are; [`ClientError::Length`]; [`ClientError::Sink`].
pub fn write_compact<E: Engine>(
    engine: &E,
    identity: &Identity,
    layout: Layout,
    dropped: Dropped,
    message: [u64; 3],
    halves: [&[E::Word]; 2],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    let width = engine.modulus().bits();
    require_dropped(dropped, width)?;
    for half in halves {
        require_len("coefficients of a ciphertext", half.len(), engine.n())?;
    }
    let mut fields = descriptor(layout, dropped, None);
    put_message(&mut fields, message);
    let body = body_bytes(engine.log_n(), width, layout, dropped, false);
    let mut object = ObjectWriter::start(sink, Kind::Compact, identity, fields.as_slice(), body)?;
    let all = Layout::Coefficients;
    put_coefficients(&mut object, engine, layout, dropped[0], halves[0])?;
    put_coefficients(&mut object, engine, all, dropped[1], halves[1])?;
    object.finish()
}

fn put_message(fields: &mut Fields, message: [u64; 3]) {
    fields.put(&[1, 0]);
    message.iter().for_each(|bits| _ = fields.put(&bits.to_le_bytes()));
}

/// The coefficients of a layout, in the order of its numbers, without their low bits.
fn put_coefficients<E: Engine>(
    object: &mut ObjectWriter<'_>,
    engine: &E,
    layout: Layout,
    dropped: u32,
    limb: &[E::Word],
) -> Result<(), ClientError> {
    let (log_n, capacity) = (engine.log_n(), layout.capacity(engine.log_n()));
    let mut chunk = [E::Word::default(); CHUNK];
    for start in (0..capacity).step_by(CHUNK) {
        let count = CHUNK.min(padded(capacity) - start);
        for (index, word) in (start..).zip(&mut chunk[..count]) {
            let kept = |position: usize| limb[position].to_u64() >> dropped;
            *word = E::Word::from_u64(if index < capacity { kept(layout.position(log_n, index)) } else { 0 });
        }
        object.residues(engine.modulus().bits() - dropped, &chunk[..count])?;
    }
    Ok(())
}

/// Encrypts numbers with the secret, in evaluation form, and writes only the coefficients that carry them, without `dropped[0]` low bits, and the seed: a
/// few hundred bytes for a few numbers.
///
/// # Errors
/// As [`crate::encrypt_symmetric`]; [`ClientError::Range`] for more dropped bits than there are.
pub fn encrypt_symmetric_compact<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    secret: &[E::Word],
    numbers: &T,
    dropped: u32,
    rng: &mut SecretRng,
    limb: &mut [E::Word],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require(engine, parameters, numbers, limb)?;
    require_len("residues of a secret", secret.len(), engine.n())?;
    require_dropped([dropped, 0], engine.modulus().bits())?;
    let seed = rng.public_seed();
    let mut fields = descriptor(parameters.layout(), [dropped, 0], Some(&seed));
    parameters.put_message(&mut fields, true);
    let (identity, layout) = (&parameters.literal().identity, parameters.layout());
    let body = body_bytes(engine.log_n(), engine.modulus().bits(), layout, [dropped, 0], true);
    let mut object = ObjectWriter::start(sink, Kind::Compact, identity, fields.as_slice(), body)?;
    limb.fill(E::Word::default());
    sub_uniform(engine, &seed, ENCRYPTION, secret, limb);
    engine.inverse(limb);
    add_errors(engine, rng, limb, |start, sums| add_numbers(parameters, numbers, start, sums));
    let result = put_coefficients(&mut object, engine, layout, dropped, limb);
    limb.zeroize();
    result?;
    object.finish()
}

/// Encrypts numbers under a public key and writes the coefficients of `c_0` that carry them and all of `c_1`, without low bits. Working memory as
/// of [`crate::encrypt`].
///
/// # Errors
/// As [`crate::encrypt`]; [`ClientError::Range`] for more dropped bits than there are.
pub fn encrypt_compact<E: Engine, T: Numbers + ?Sized>(
    engine: &E,
    parameters: &ClientParameters,
    key: &PublicKey<'_, E::Word>,
    numbers: &T,
    dropped: Dropped,
    rng: &mut SecretRng,
    mask: &mut [E::Word],
    limb: &mut [E::Word],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    require(engine, parameters, numbers, limb)?;
    require_len("words of the mask", mask.len(), engine.n())?;
    require_dropped(dropped, engine.modulus().bits())?;
    let (identity, layout) = (&parameters.literal().identity, parameters.layout());
    let mut fields = descriptor(layout, dropped, None);
    parameters.put_message(&mut fields, false);
    let body = body_bytes(engine.log_n(), engine.modulus().bits(), layout, dropped, false);
    let mut object = ObjectWriter::start(sink, Kind::Compact, identity, fields.as_slice(), body)?;
    let result = (|| {
        let mut signs = values();
        for part in mask.chunks_mut(CHUNK) {
            ternary(rng, &mut *signs);
            engine.lift(&*signs, part);
        }
        engine.forward(mask);
        let half = |key: &crate::Half<'_, E::Word>, limb: &mut [E::Word]| {
            limb.fill(E::Word::default());
            key.mul_add(engine, limb, mask);
            engine.inverse(limb);
        };
        half(&key.b, limb);
        add_errors(engine, rng, limb, |start, sums| add_numbers(parameters, numbers, start, sums));
        put_coefficients(&mut object, engine, layout, dropped[0], limb)?;
        half(&key.a, limb);
        add_errors(engine, rng, limb, |_, _| ());
        put_coefficients(&mut object, engine, Layout::Coefficients, dropped[1], limb)
    })();
    mask.zeroize();
    limb.zeroize();
    result?;
    object.finish()
}

/// Adds errors, and what `add` adds to them, to residues of coefficients.
fn add_errors<E: Engine>(
    engine: &E,
    rng: &mut SecretRng,
    limb: &mut [E::Word],
    add: impl Fn(usize, &mut [i64]),
) {
    let mut sums = values();
    let mut residues = zeroize::Zeroizing::new([E::Word::default(); CHUNK]);
    let q = engine.modulus().value();
    for (number, part) in limb.chunks_mut(CHUNK).enumerate() {
        gaussian(rng, &mut *sums);
        add(number * CHUNK, &mut *sums);
        engine.lift(&*sums, &mut *residues);
        for (word, residue) in part.iter_mut().zip(residues.iter()) {
            let sum = word.to_u64() + residue.to_u64();
            *word = E::Word::from_u64(sum.min(sum.wrapping_sub(q)));
        }
    }
}
