use std::io::{Read, Write};

use keywright_ring::{MAX_LOG_N, Modulus, Poly, RingError, Seed};
use keywright_rlwe::{KeyElement, KeyLayout, KeySpec, Parameters, RlweError, SwitchingKey, UniformPart};

use super::poly_len;
use crate::body::{BodyReader, BodyWriter};
use crate::fields::{FieldReader, FieldWriter};
use crate::object::{Descriptor, Record};
use crate::{Identity, Kind, Wire, WireError, error::in_range};

impl Descriptor for KeySpec {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        let (tag, value) = match self.element {
            KeyElement::Galois(element) => (0, element),
            KeyElement::Relinearization => (1, 0),
            KeyElement::Secret(id) => (2, id),
            KeyElement::DenseToSparse(weight) => (3, weight as u64),
            KeyElement::SparseToDense(weight) => (4, weight as u64),
            KeyElement::SparseToDenseGalois { weight, galois } => (5, galois << 32 | weight as u64),
        };
        out.u8(tag);
        out.u64(value);
        out.small("level of a key", self.level)?;
        out.small("alpha of a key", self.alpha)?;
        out.u8(self.seeded.into());
        out.small("number of special primes of a key", self.special.len())?;
        self.special.iter().try_for_each(|&index| out.small("index of a special prime", index))
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let (tag, value) = (fields.u8()?, fields.u64()?);
        let element = match tag {
            0 => KeyElement::Galois(value),
            1 => {
                in_range("element of a relinearisation key", value, 0, 0)?;
                KeyElement::Relinearization
            }
            2 => KeyElement::Secret(value),
            3 => KeyElement::DenseToSparse(weight(value)?),
            4 => KeyElement::SparseToDense(weight(value)?),
            5 => {
                KeyElement::SparseToDenseGalois { weight: weight(value & 0xFFFF_FFFF)?, galois: value >> 32 }
            }
            other => {
                return Err(WireError::Field { what: "type of a key", value: other.into(), min: 0, max: 5 });
            }
        };
        let (level, alpha) = (fields.small()?, fields.small()?);
        let seeded = fields.flag("seeded flag of a key")?;
        let count = fields.small()?;
        let special = (0..count).map(|_| fields.small()).collect::<Result<_, _>>()?;
        Ok(Self { element, level, alpha, special, seeded })
    }
}

/// Hamming weight of an ephemeral secret.
fn weight(value: u64) -> Result<usize, WireError> {
    in_range("weight of an ephemeral secret", value, 1, 1 << MAX_LOG_N)?;
    Ok(value as usize)
}

/// What a stored switching key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDescriptor {
    /// Its specification.
    pub spec: KeySpec,
    /// Number of digits, so of rows.
    pub digits: usize,
    /// Seed of the uniform half if it is seeded.
    pub seed: Option<Seed>,
}

impl Descriptor for KeyDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.spec.encode(out)?;
        out.small("number of digits of a key", self.digits)?;
        if let Some(seed) = &self.seed {
            out.seed(seed);
        }
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let spec = KeySpec::decode(fields)?;
        let digits = fields.small()?;
        let seed = if spec.seeded { Some(fields.seed()?) } else { None };
        Ok(Self { spec, digits, seed })
    }
}

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
        Identity::of(parameters.literal())
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
