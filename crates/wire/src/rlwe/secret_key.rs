use std::io::{Read, Write};
use std::iter;

use keywright_frame::packing::{pack_ternary, packed_ternary_len, unpack_ternary};
use keywright_frame::{FieldReader, FieldWriter};
use keywright_rlwe::{KeyIdentity, Parameters, RlweError, SecretKey};
use zeroize::Zeroizing;

use crate::object::{Descriptor, Record};
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, WireError, WireSecret};

/// A secret needs no description besides its parameters.
pub struct SecretKeyDescriptor;

impl Descriptor for SecretKeyDescriptor {
    fn encode(&self, _: &mut FieldWriter) -> Result<(), WireError> {
        Ok(())
    }

    fn decode(_: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self)
    }
}

/// The coefficients, packed as ternary values, then those of the subrings' secrets. Neither direction branches on a
/// coefficient.
impl Record for SecretKey {
    type Context = Parameters;
    type Descriptor = SecretKeyDescriptor;
    const KIND: Kind = Kind::SecretKey;

    fn key(&self) -> KeyIdentity {
        self.identity()
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<SecretKeyDescriptor, WireError> {
        self.parameters().require_same(parameters, "the secret", "the parameters it is written for")?;
        Ok(SecretKeyDescriptor)
    }

    fn body_len(_: &SecretKeyDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        Ok(rings(parameters).map(|ring| packed_ternary_len(ring.n()) as u64).sum())
    }

    fn write_body<W: Write>(&self, body: &mut BodyWriter<W>, _: &Parameters) -> Result<(), WireError> {
        for secret in iter::once(self).chain(self.subrings()) {
            let coefficients = secret.coefficients();
            let mut packed = Zeroizing::new(vec![0; packed_ternary_len(coefficients.len())]);
            pack_ternary(coefficients, &mut packed);
            body.write_all(&packed)?;
        }
        Ok(())
    }

    fn read_body<R: Read>(
        _: SecretKeyDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let mut secrets = Vec::new();
        for ring in rings(parameters) {
            let mut packed = Zeroizing::new(vec![0; packed_ternary_len(ring.n())]);
            body.bytes(&mut packed)?;
            let mut coefficients = Zeroizing::new(vec![0i64; ring.n()]);
            let invalid = unpack_ternary(&packed, &mut coefficients);
            if invalid > 0 {
                return Err(WireError::SecretCoefficient { count: invalid });
            }
            secrets.push(coefficients);
        }
        let secret = Self::from_ternary(parameters, secrets)?;
        if body.key() != secret.identity() {
            let (left, right) = ("the header of the secret", "the secret");
            let (left_key, right_key) = (body.key(), secret.identity());
            return Err(RlweError::KeyMismatch { left, right, left_key, right_key }.into());
        }
        Ok(secret)
    }
}

/// The rings of a secret's coefficients, in order.
fn rings(parameters: &Parameters) -> impl Iterator<Item = &Parameters> {
    iter::once(parameters).chain(parameters.subrings())
}

impl WireSecret for SecretKey {}
