use std::io::{Read, Write};

use keywright_frame::KeyDescriptor;
use keywright_ring::Modulus;
use keywright_rlwe::{KeyIdentity, KeyLayout, KeyRow, KeySpec, Parameters, SwitchingKey, UniformPart};

use super::poly_len;
use crate::object::Record;
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError, error::in_range};

/// Checks a spec as strictly as key generation does, and counts its digits.
pub(crate) fn digits(spec: &KeySpec, parameters: &Parameters) -> Result<usize, WireError> {
    Ok(spec.validate(parameters)?.len())
}

/// Refuses a derived key: its noise is not part of the format, and it can be derived again.
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

/// For every digit a row `b`, and a row `a` unless the key is seeded, over the primes of the spec, in the ring that it
/// names.
impl Record for SwitchingKey {
    type Context = Parameters;
    type Descriptor = KeyDescriptor;
    const KIND: Kind = Kind::SwitchingKey;

    fn key(&self) -> KeyIdentity {
        self.identity()
    }

    fn descriptor(&self, parameters: &Parameters) -> Result<KeyDescriptor, WireError> {
        let ring = parameters.ring_named(self.spec().subring)?;
        self.parameters().require_same(ring, "the switching key", "the parameters it is written for")?;
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
        Ok(halves * digits * poly_len(parameters.ring_named(spec.subring)?, spec.primes()))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        let moduli = key_moduli(self.spec(), parameters.ring_named(self.spec().subring)?);
        let stored: &[KeyRow] = match self.uniform() {
            UniformPart::Stored(rows) => rows,
            UniformPart::Seeded(_) => &[],
        };
        for (j, b) in self.b_rows().iter().enumerate() {
            body.limbs(b.limbs(), moduli.iter().copied())?;
            if let Some(a) = stored.get(j) {
                body.limbs(a.limbs(), moduli.iter().copied())?;
            }
        }
        Ok(())
    }

    fn read_body<R: Read>(
        descriptor: KeyDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        let ring = parameters.ring_named(descriptor.spec.subring)?;
        let moduli = key_moduli(&descriptor.spec, ring);
        let (mut b, mut a) = (Vec::new(), Vec::new());
        for _ in 0..descriptor.digits {
            b.push(body.poly(ring.n(), moduli.iter().copied())?);
            if descriptor.seed.is_none() {
                a.push(body.poly(ring.n(), moduli.iter().copied())?);
            }
        }
        let uniform = descriptor.seed.map_or_else(|| UniformPart::stored(a), UniformPart::Seeded);
        Ok(Self::from_parts(parameters, body.key(), descriptor.spec, b, uniform)?)
    }
}

impl Wire for SwitchingKey {}
