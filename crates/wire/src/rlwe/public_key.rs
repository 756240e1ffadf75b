use std::io::{Read, Write};

use keywright_ring::Seed;
use keywright_rlwe::{KeyIdentity, Parameters, PublicKey};

use super::{moduli, poly_len, require_shape};
use crate::object::Record;
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError};

/// The seed of `a` in the header, `b` in the body.
impl Record for PublicKey {
    type Context = Parameters;
    type Descriptor = Seed;
    const KIND: Kind = Kind::PublicKey;

    fn key(&self) -> KeyIdentity {
        self.identity()
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<Seed, WireError> {
        self.parameters().require_same(parameters, "the public key", "the parameters it is written for")?;
        require_shape(parameters, self.b().n(), self.b().limb_count(), parameters.max_level() + 1)?;
        Ok(*self.seed())
    }

    fn body_len(_: &Seed, parameters: &Parameters) -> Result<u64, WireError> {
        Ok(poly_len(parameters, 0..=parameters.max_level()))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        body.poly(self.b(), moduli(parameters, parameters.max_level() + 1))
    }

    fn read_body<R: Read>(
        seed: Seed,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let b = body.poly(parameters.n(), moduli(parameters, parameters.max_level() + 1))?;
        Ok(Self::expand(parameters, body.key(), seed, b))
    }
}

impl Wire for PublicKey {}
