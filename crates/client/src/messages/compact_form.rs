//! Ciphertexts in coefficient form without the parts that their reader does not need: kind `0105` of
//! `docs/reference/format.md`.
//!
//! # Fewer coefficients
//! A reader that needs `n` coefficients of `c_0 + c_1 s` needs `n` coefficients of `c_0`, at the places of the
//! [`Layout`], and all of `c_1`. For a ciphertext made with the secret, whose `c_1` is a seed, these are `n` residues
//! and 32 bytes. A server that computes on sparse slots sets the others to 0. They decrypt to arbitrary values, which
//! its trace to the subring removes together with those that ModRaise adds. The sent data are part of an ordinary
//! ciphertext, so they reveal no more about the secret or the message.
//!
//! # Dropped bits
//! Of a coefficient of `c_i` the value `floor(c_i / 2^d_i)` is kept. The reader takes the middle of the interval, so
//! the error is at most `2^(d_i - 1)`: that much in `c_0`, and in `c_1 s` a sum of `||s||^2` such terms, nearly uniform
//! and independent, of variance `||s||^2 2^(2 d_1) / 12`.

use keywright_frame::packing::{MIN_WIDTH, Residue, packed_len, unpack};
use keywright_frame::{FieldReader, Fields, IdentityBytes, Kind, MessageFields};
use keywright_ring::Seed;
use keywright_rlwe::KeyIdentity;

use crate::engine::{CHUNK, Engine};
use crate::error::{frame_error, in_range, require_len};
use crate::keys::key::ENCRYPTION;
use crate::object::{Object, ObjectWriter, ShortFields, keyed_len};
use crate::{ClientError, ClientParameters, Layout, Sink};

/// The form of a written ciphertext.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// Whole, in evaluation form: kinds `0103` and, made with the secret, `0104` of `docs/reference/format.md`.
    #[default]
    Evaluations,
    /// In [`crate::CompactForm`], without this many low bits of the coefficients of each half: kind `0105`. For a
    /// ciphertext made with the secret, the second half is a seed, and nothing of it can be dropped.
    Compact(Dropped),
}

/// Low bits that are dropped from the coefficients of `c_0` and of `c_1`.
pub type Dropped = [u32; 2];

/// The second half of a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondHalf<'b> {
    /// Uniform residues, in evaluation form, from the stream of a seed.
    Seeded(Seed),
    /// Packed coefficients.
    Packed(&'b [u8]),
}

/// A ciphertext of this kind as it was read, checked except for its residues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactForm<'b> {
    /// The coefficients of `c_0` that it has.
    pub layout: Layout,
    /// Bits that were dropped.
    pub dropped: Dropped,
    /// Packed coefficients of `c_0`, in the order of the layout's numbers.
    pub c0: &'b [u8],
    /// `c_1`.
    pub c1: SecondHalf<'b>,
    /// Bits of the doubles scale, deviation and magnitude.
    pub message: [u64; 3],
    /// The identity of the secret that encrypts it.
    pub key: KeyIdentity,
}

/// Numbers of a layout, padded to a multiple of eight.
fn padded(count: usize) -> usize {
    count.next_multiple_of(8)
}

pub(crate) fn body_bytes(log_n: u32, width: u32, layout: Layout, dropped: Dropped, seeded: bool) -> usize {
    let c1 = if seeded { 0 } else { packed_len(1 << log_n, width - dropped[1]) };
    packed_len(padded(layout.capacity(log_n)), width - dropped[0]) + c1
}

/// Layout, dropped bits and seed of a ciphertext, and its message.
pub(crate) fn descriptor(
    layout: Layout,
    dropped: Dropped,
    seed: Option<&Seed>,
    message: MessageFields,
) -> Result<ShortFields, ClientError> {
    let mut fields = ShortFields::default();
    match layout {
        Layout::Coefficients => fields.put(&[0, 0]),
        Layout::Slots { log_slots, complex } => fields.put(&[1 + u8::from(complex), log_slots as u8]),
    }
    fields.put(&dropped.map(|bits| bits as u8));
    fields.u8(seed.is_some().into());
    if let Some(seed) = seed {
        fields.seed(seed);
    }
    message.encode(&mut fields).map_err(frame_error(WHAT))?;
    Ok(fields)
}

pub(crate) fn require_dropped(dropped: Dropped, width: u32, seeded: bool) -> Result<(), ClientError> {
    let most = u64::from(width.saturating_sub(MIN_WIDTH));
    in_range("dropped bits", dropped[0].into(), 0, most)?;
    if seeded {
        return in_range("bits dropped from a half that is a seed", dropped[1].into(), 0, 0);
    }
    in_range("dropped bits", dropped[1].into(), 0, most)
}

impl ClientParameters {
    /// Bytes of a ciphertext in a form, made with the secret (`seeded`) or with the public key.
    ///
    /// # Errors
    /// [`ClientError::Range`] for more dropped bits than there are.
    pub fn form_bytes(&self, form: Form, seeded: bool) -> Result<usize, ClientError> {
        let Form::Compact(dropped) = form else {
            return Ok(if seeded { self.seeded_ciphertext_bytes() } else { self.ciphertext_bytes() });
        };
        require_dropped(dropped, self.modulus().bits(), seeded)?;
        let body = body_bytes(self.log_n(), self.modulus().bits(), self.layout(), dropped, seeded);
        Ok(keyed_len(5 + if seeded { 32 } else { 0 } + MessageFields::BYTES, body))
    }
}

impl<'b> CompactForm<'b> {
    /// Reads an object of this kind, of the ring of the given degree and prime.
    ///
    /// # Errors
    /// [`ClientError::Format`], [`ClientError::Checksum`], [`ClientError::ForeignParameters`], [`ClientError::Range`].
    pub fn read(
        log_n: u32,
        width: u32,
        identity: &IdentityBytes,
        bytes: &'b [u8],
    ) -> Result<Self, ClientError> {
        Self::of(&Object::read(WHAT, bytes)?, log_n, width, identity)
    }

    pub(crate) fn of(
        object: &Object<'b>,
        log_n: u32,
        width: u32,
        identity: &IdentityBytes,
    ) -> Result<Self, ClientError> {
        let mut fields = object.fields(Kind::CkksCompactCiphertext, identity)?;
        let [form, log_slots, d0, d1, seeded] = fields.array()?;
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
        require_dropped(dropped, width, seeded == 1)?;
        let seed = if seeded == 1 { Some(fields.take(FieldReader::seed)?) } else { None };
        let message = fields.message()?;
        fields.finish()?;
        object.require_body(body_bytes(log_n, width, layout, dropped, seed.is_some()))?;
        let (c0, rest) = object.body.split_at(packed_len(padded(layout.capacity(log_n)), width - dropped[0]));
        let c1 = seed.map_or(SecondHalf::Packed(rest), SecondHalf::Seeded);
        Ok(Self { layout, dropped, c0, c1, message, key: object.key })
    }

    /// The residues of `c_0`: the middle of each interval, and 0 for missing ones.
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

/// The middle of the interval of a coefficient without its low bits; at most the last residue for the highest interval,
/// which may end above the modulus.
fn middle<E: Engine>(engine: &E, word: E::Word, dropped: u32, index: usize) -> Result<E::Word, ClientError> {
    let (q, value) = (engine.modulus().value(), word.to_u64());
    if value > (q - 1) >> dropped {
        return Err(ClientError::Residue { index, value: value << dropped, modulus: q });
    }
    Ok(E::Word::from_u64(((value << dropped) + ((1 << dropped) >> 1)).min(q - 1)))
}

/// Writes both halves of a ciphertext in coefficient form, as a server's answer. `key` is that of the answer's owner;
/// `message` has the bits of scale, deviation and magnitude.
///
/// # Errors
/// [`ClientError::Range`] for more dropped bits than there are; [`ClientError::Length`]; [`ClientError::Sink`].
pub fn write_compact<E: Engine>(
    engine: &E,
    identity: &IdentityBytes,
    key: KeyIdentity,
    layout: Layout,
    dropped: Dropped,
    message: [u64; 3],
    halves: [&[E::Word]; 2],
    sink: &mut dyn Sink,
) -> Result<(), ClientError> {
    let width = engine.modulus().bits();
    require_dropped(dropped, width, false)?;
    for half in halves {
        require_len("coefficients of a ciphertext", half.len(), engine.n())?;
    }
    let message = MessageFields { log_slots: None, real: true, numbers: message };
    let fields = descriptor(layout, dropped, None, message)?;
    let body = body_bytes(engine.log_n(), width, layout, dropped, false);
    let mut object =
        ObjectWriter::start(sink, Kind::CkksCompactCiphertext, identity, &key, fields.as_slice(), body)?;
    let all = Layout::Coefficients;
    put_coefficients(&mut object, engine, layout, dropped[0], halves[0])?;
    put_coefficients(&mut object, engine, all, dropped[1], halves[1])?;
    object.finish()
}

/// The coefficients of a layout, in the order of its numbers, without their low bits.
pub(crate) fn put_coefficients<E: Engine>(
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
