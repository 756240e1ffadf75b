use std::io::{Read, Write};

use keywright_rlwe::{Parameters, SecretKey};
use zeroize::Zeroizing;

use crate::body::{BodyReader, BodyWriter};
use crate::fields::{FieldReader, FieldWriter};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, WireError, WireSecret};

/// A secret needs no further description than its parameters.
pub struct SecretKeyDescriptor;

impl Descriptor for SecretKeyDescriptor {
    fn encode(&self, _: &mut FieldWriter) -> Result<(), WireError> {
        Ok(())
    }

    fn decode(_: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self)
    }
}

/// Two bits per coefficient, the lowest bits first: `00` is 0, `01` is 1, `11` is -1. Neither direction branches on a
/// coefficient.
impl Record for SecretKey {
    type Context = Parameters;
    type Descriptor = SecretKeyDescriptor;
    const KIND: Kind = Kind::SecretKey;

    fn identity(_: &SecretKeyDescriptor, parameters: &Parameters) -> Result<Identity, WireError> {
        Identity::of(parameters.literal())
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<SecretKeyDescriptor, WireError> {
        self.parameters().require_same(parameters, "the secret", "the parameters it is written for")?;
        Ok(SecretKeyDescriptor)
    }

    fn body_len(_: &SecretKeyDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        Ok(parameters.n() as u64 / 4)
    }

    fn write_body<W: Write>(&self, body: &mut BodyWriter<W>, _: &Parameters) -> Result<(), WireError> {
        let quadruples = self.coefficients().as_chunks::<4>().0;
        let pack = |four: &[i64; 4]| four.iter().rev().fold(0, |byte, &c| byte << 2 | (c & 3) as u8);
        let packed = Zeroizing::new(quadruples.iter().map(pack).collect::<Vec<u8>>());
        Ok(body.write_all(&packed)?)
    }

    fn read_body<R: Read>(
        _: SecretKeyDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let n = parameters.n();
        let mut packed = Zeroizing::new(vec![0; n / 4]);
        body.bytes(&mut packed)?;
        let mut coefficients = Zeroizing::new(vec![0i64; n]);
        let mut invalid = 0;
        for (four, &byte) in coefficients.as_chunks_mut::<4>().0.iter_mut().zip(packed.iter()) {
            for (i, coefficient) in four.iter_mut().enumerate() {
                let code = u64::from(byte >> (2 * i)) & 3;
                invalid += (code >> 1 & !code & 1) as usize;
                // Sign-extends two bits.
                *coefficient = (code << 62) as i64 >> 62;
            }
        }
        if invalid > 0 {
            return Err(WireError::SecretCoefficient { count: invalid });
        }
        Ok(Self::from_ternary(parameters, coefficients)?)
    }
}

impl WireSecret for SecretKey {}
