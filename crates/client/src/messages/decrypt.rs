//! Decryption modulo `q_0`: one transform for a ciphertext in evaluation form, two for one in [`CompactForm`].

use keywright_frame::packing::{Residue, packed_len};
use keywright_frame::{CiphertextDescriptor, Fields, Kind};
use keywright_rlwe::KeyIdentity;

use crate::engine::{Engine, wipe};
use crate::error::{in_range, require_len};
use crate::messages::compact_form::CompactForm;
use crate::numbers::Descale;
use crate::object::{Object, unpack_canonical};
use crate::{ClientError, ClientParameters, Layout};

const WHAT: &str = "the ciphertext";

/// A ciphertext at level 0, checked except for its residues.
pub struct Answer<'b> {
    halves: Halves<'b>,
    scale_bits: u64,
    key: KeyIdentity,
}

enum Halves<'b> {
    /// Both halves in evaluation form.
    Evaluations(&'b [u8]),
    /// In coefficient form.
    Compact(CompactForm<'b>),
}

impl<'b> Answer<'b> {
    /// Reads a server's answer: a ciphertext of degree 1 at level 0 with its values in coefficients, whole or without
    /// low bits.
    ///
    /// # Errors
    /// [`ClientError::Format`], [`ClientError::Checksum`], [`ClientError::ForeignParameters`], [`ClientError::Range`].
    pub fn read(parameters: &ClientParameters, bytes: &'b [u8]) -> Result<Self, ClientError> {
        let object = Object::read(WHAT, bytes)?;
        let identity = &parameters.literal().identity;
        if object.is(Kind::CkksCompactCiphertext) {
            let width = parameters.modulus().bits();
            let form = CompactForm::of(&object, parameters.log_n(), width, identity)?;
            if form.layout != parameters.layout() && form.layout != Layout::Coefficients {
                return Err(ClientError::Format { what: WHAT, problem: "its numbers have another layout" });
            }
            return Ok(Self { scale_bits: form.message[0], key: form.key, halves: Halves::Compact(form) });
        }
        let mut fields = object.fields(Kind::CkksCiphertext, identity)?;
        let CiphertextDescriptor { level, polynomials } = fields.take(CiphertextDescriptor::decode)?;
        in_range("level of an answer", level as u64, 0, 0)?;
        in_range("number of polynomials of an answer", polynomials as u64, 2, 2)?;
        object.require_body(2 * parameters.polynomial_bytes())?;
        // Deviation and magnitude are its maker's estimate, which decryption does not need.
        let [scale_bits, ..] = fields.message()?;
        fields.finish()?;
        Ok(Self { halves: Halves::Evaluations(object.body), scale_bits, key: object.key })
    }

    /// The identity of the secret that encrypts it.
    pub fn key(&self) -> KeyIdentity {
        self.key
    }

    /// Decrypts to residues of coefficients, into `limb`, which the caller wipes. `secret` is in evaluation form;
    /// `other` is working memory, and holds half of the ciphertext afterwards.
    ///
    /// # Errors
    /// [`ClientError::Length`]; [`ClientError::Residue`]; [`ClientError::Format`] for padding that is not zero.
    pub fn coefficients<E: Engine>(
        &self,
        engine: &E,
        secret: &[E::Word],
        limb: &mut [E::Word],
        other: &mut [E::Word],
    ) -> Result<(), ClientError> {
        let (n, width) = (engine.n(), engine.modulus().bits());
        require_len("residues of a secret", secret.len(), n)?;
        require_len("words of a polynomial", limb.len(), n)?;
        require_len("words of working memory", other.len(), n)?;
        match &self.halves {
            Halves::Evaluations(body) => {
                let (c0, c1) = body.split_at(packed_len(n, width));
                unpack_canonical(engine.modulus(), c0, limb)?;
                unpack_canonical(engine.modulus(), c1, other)?;
                engine.mul_add(limb, other, secret);
                engine.inverse(limb);
            }
            Halves::Compact(form) => {
                form.second_half(engine, other)?;
                limb.fill(E::Word::default());
                engine.mul_add(limb, other, secret);
                engine.inverse(limb);
                form.first_half(engine, other)?;
                let modulus = engine.modulus();
                for (a, b) in limb.iter_mut().zip(&*other) {
                    *a = E::Word::from_u64(modulus.add(a.to_u64(), b.to_u64()));
                }
            }
        }
        Ok(())
    }

    /// Decrypts numbers, in units of their last place, in the order of the parameters' layout, as many as `numbers`
    /// holds.
    ///
    /// # Errors
    /// As [`Self::coefficients`]; [`ClientError::Range`] for a scale that does not suit the numbers' format,
    /// [`ClientError::Length`] for more numbers than a ciphertext has.
    pub fn numbers<E: Engine>(
        &self,
        engine: &E,
        parameters: &ClientParameters,
        secret: &[E::Word],
        limb: &mut [E::Word],
        other: &mut [E::Word],
        numbers: &mut [i64],
    ) -> Result<(), ClientError> {
        if numbers.len() > parameters.capacity() {
            let (found, expected) = (numbers.len(), parameters.capacity());
            return Err(ClientError::Length { what: "numbers to decrypt (at most)", found, expected });
        }
        let width = parameters.modulus().bits();
        let descale = Descale::new(self.scale_bits, parameters.fixed_point().fraction_bits(), width)?;
        let result = self.coefficients(engine, secret, limb, other);
        if result.is_ok() {
            let q = engine.modulus().value() as i64;
            let number = move |word: E::Word| descale.number(centred(q, word.to_u64()));
            parameters.layout().read(parameters.log_n(), limb, numbers, number);
        }
        // The other buffer holds a half of the ciphertext.
        wipe(limb);
        result
    }
}

/// The representative of a residue in `(-q/2, q/2]`, without a branch.
#[inline(always)]
fn centred(q: i64, residue: u64) -> i64 {
    let residue = residue as i64;
    residue - (q & (((q >> 1) - residue) >> 63))
}
