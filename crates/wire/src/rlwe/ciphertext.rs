use std::io::{Read, Write};

use keywright_frame::{CiphertextDescriptor, SeededDescriptor};
use keywright_rlwe::{KeyIdentity, Parameters, RlweCiphertext, SeededRlweCiphertext};

use super::{moduli, poly_len, require_shape};
use crate::object::Record;
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError, error::in_range};

/// Most polynomials of one ciphertext: the product of two ciphertexts of degree 3 without relinearization.
pub const MAX_POLYNOMIALS: usize = 7;

/// `c_0`, `c_1`, ... over `q_0 .. q_level`.
impl Record for RlweCiphertext {
    type Context = Parameters;
    type Descriptor = CiphertextDescriptor;
    const KIND: Kind = Kind::RlweCiphertext;

    fn key(&self) -> KeyIdentity {
        self.key
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<CiphertextDescriptor, WireError> {
        in_range(
            "number of polynomials of a ciphertext",
            self.polys.len() as u64,
            2,
            MAX_POLYNOMIALS as u64,
        )?;
        let limbs = self.polys[0].limb_count();
        in_range("number of limbs of a ciphertext", limbs as u64, 1, parameters.max_level() as u64 + 1)?;
        self.polys
            .iter()
            .try_for_each(|poly| require_shape(parameters, poly.n(), poly.limb_count(), limbs))?;
        Ok(CiphertextDescriptor { level: limbs - 1, polynomials: self.polys.len() })
    }

    fn body_len(descriptor: &CiphertextDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        let count = descriptor.polynomials as u64;
        in_range("number of polynomials of a ciphertext", count, 2, MAX_POLYNOMIALS as u64)?;
        parameters.require_level(descriptor.level)?;
        Ok(count * poly_len(parameters, 0..=descriptor.level))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        self.polys.iter().try_for_each(|poly| body.poly(poly, moduli(parameters, self.level() + 1)))
    }

    fn read_body<R: Read>(
        descriptor: CiphertextDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let polys = (0..descriptor.polynomials)
            .map(|_| body.poly(parameters.n(), moduli(parameters, descriptor.level + 1)))
            .collect::<Result<_, _>>()?;
        Ok(Self { polys, key: body.key() })
    }
}

impl Wire for RlweCiphertext {}

/// The seed of `c_1` in the header, `c_0` over `q_0 .. q_level` in the body.
impl Record for SeededRlweCiphertext {
    type Context = Parameters;
    type Descriptor = SeededDescriptor;
    const KIND: Kind = Kind::SeededRlweCiphertext;

    fn key(&self) -> KeyIdentity {
        self.key
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<SeededDescriptor, WireError> {
        let limbs = self.c0.limb_count();
        in_range("number of limbs of a ciphertext", limbs as u64, 1, parameters.max_level() as u64 + 1)?;
        require_shape(parameters, self.c0.n(), limbs, limbs)?;
        Ok(SeededDescriptor { level: limbs - 1, seed: self.seed })
    }

    fn body_len(descriptor: &SeededDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        parameters.require_level(descriptor.level)?;
        Ok(poly_len(parameters, 0..=descriptor.level))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        body.poly(&self.c0, moduli(parameters, self.c0.limb_count()))
    }

    fn read_body<R: Read>(
        descriptor: SeededDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let c0 = body.poly(parameters.n(), moduli(parameters, descriptor.level + 1))?;
        Ok(Self { seed: descriptor.seed, c0, key: body.key() })
    }
}

impl Wire for SeededRlweCiphertext {}
