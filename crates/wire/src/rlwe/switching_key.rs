use std::io::{Read, Write};

use keywright_frame::KeyDescriptor;
use keywright_ring::{Modulus, Poly, RingError};
use keywright_rlwe::{KeyElement, KeyLayout, KeySpec, Parameters, RlweError, SwitchingKey, UniformPart};

use super::poly_len;
use crate::body::{BodyReader, BodyWriter};
use crate::object::Record;
use crate::{Identity, Kind, Wire, WireError, error::in_range};

/// Checks a spec as strictly as key generation does and counts its digits.
pub(crate) fn digits(spec: &KeySpec, parameters: &Parameters) -> Result<usize, WireError> {
    if let KeyElement::Galois(element) = spec.element {
        let two_n = 2 * parameters.n() as u64;
        if element % 2 == 0 || element >= two_n {
            return Err(RlweError::Ring(RingError::GaloisElement { element, two_n }).into());
        }
    }
    Ok(spec.validate(parameters)?.len())
}

/// Refuses a derived key: its noise is not part of the format, and it can be had again.
pub(crate) fn require_made(key: &impl AsRef<KeyLayout>) -> Result<(), WireError> {
    let key = key.as_ref();
    if key.is_derived() {
        return Err(WireError::DerivedKey { element: key.spec.element });
    }
    Ok(())
}

fn key_moduli<'p>(spec: &KeySpec, parameters: &'p Parameters) -> Vec<&'p Modulus> {
    spec.primes().map(|i| parameters.modulus(i)).collect()
}

/// For every digit a row `b`, and for keys that are not seeded a row `a`, over the primes of the spec.
impl Record for SwitchingKey {
    type Context = Parameters;
    type Descriptor = KeyDescriptor;
    const KIND: Kind = Kind::SwitchingKey;

    fn identity(_: &KeyDescriptor, parameters: &Parameters) -> Result<Identity, WireError> {
        Ok(Identity::of(parameters.literal())?)
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<KeyDescriptor, WireError> {
        self.parameters().require_same(
            parameters,
            "the switching key",
            "the parameters it is written for",
        )?;
        require_made(self)?;
        let seed = match self.uniform() {
            UniformPart::Stored(_) => None,
            UniformPart::Seeded(seed) => Some(*seed),
        };
        Ok(KeyDescriptor { spec: self.spec().clone(), digits: self.digits().len(), seed })
    }

    fn body_len(descriptor: &KeyDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        let spec = &descriptor.spec;
        let digits = digits(spec, parameters)? as u64;
        in_range("number of digits of a key", descriptor.digits as u64, digits, digits)?;
        let halves = if spec.seeded { 1 } else { 2 };
        Ok(halves * digits * poly_len(parameters, spec.primes()))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        let moduli = key_moduli(self.spec(), parameters);
        let stored: &[Poly<_>] = match self.uniform() {
            UniformPart::Stored(rows) => rows,
            UniformPart::Seeded(_) => &[],
        };
        for (j, b) in self.b_rows().iter().enumerate() {
            body.poly(b, moduli.iter().copied())?;
            if let Some(a) = stored.get(j) {
                body.poly(a, moduli.iter().copied())?;
            }
        }
        Ok(())
    }

    fn read_body<R: Read>(
        descriptor: KeyDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let moduli = key_moduli(&descriptor.spec, parameters);
        let (mut b, mut a) = (Vec::new(), Vec::new());
        for _ in 0..descriptor.digits {
            b.push(body.poly(parameters.n(), moduli.iter().copied())?);
            if descriptor.seed.is_none() {
                a.push(body.poly(parameters.n(), moduli.iter().copied())?);
            }
        }
        let uniform = descriptor.seed.map_or(UniformPart::Stored(a), UniformPart::Seeded);
        Ok(Self::from_parts(parameters, descriptor.spec, b, uniform)?)
    }
}

impl Wire for SwitchingKey {}
