use std::any::TypeId;
use std::io::{Read, Write};

use keywright_frame::{FieldReader, FieldWriter};
use keywright_ring::{Coefficient, Domain, Evaluation, Poly};
use keywright_rlwe::Parameters;

use super::{moduli, poly_len, require_shape};
use crate::object::{Descriptor, Record};
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError, error::in_range};

/// Shape of a polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolynomialDescriptor {
    /// Whether its entries are evaluations; coefficients if not.
    pub evaluations: bool,
    /// Number of limbs: limb `i` is prime `i` of the parameters, ciphertext primes first.
    pub limbs: usize,
}

impl Descriptor for PolynomialDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        out.u8(self.evaluations.into());
        Ok(out.small("number of limbs of a polynomial", self.limbs)?)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { evaluations: fields.flag("form of a polynomial")?, limbs: fields.small()? })
    }
}

fn is_evaluation<D: Domain>() -> bool {
    TypeId::of::<D>() == TypeId::of::<Evaluation>()
}

impl<D: Domain> Record for Poly<D> {
    type Context = Parameters;
    type Descriptor = PolynomialDescriptor;
    const KIND: Kind = Kind::Polynomial;

    fn descriptor(&self, parameters: &Parameters) -> Result<PolynomialDescriptor, WireError> {
        let limbs = self.limb_count();
        require_shape(parameters, self.n(), limbs, limbs)?;
        Ok(PolynomialDescriptor { evaluations: is_evaluation::<D>(), limbs })
    }

    fn body_len(descriptor: &PolynomialDescriptor, parameters: &Parameters) -> Result<u64, WireError> {
        let form = u64::from(is_evaluation::<D>());
        in_range(
            "form of the polynomial (0 coefficients, 1 evaluations)",
            descriptor.evaluations.into(),
            form,
            form,
        )?;
        let limbs = descriptor.limbs;
        in_range("number of limbs of a polynomial", limbs as u64, 1, parameters.prime_count() as u64)?;
        Ok(poly_len(parameters, 0..limbs))
    }

    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        parameters: &Parameters,
    ) -> Result<(), WireError> {
        body.poly(self, moduli(parameters, self.limb_count()))
    }

    fn read_body<R: Read>(
        descriptor: PolynomialDescriptor,
        body: &mut BodyReader<R>,
        parameters: &Parameters,
    ) -> Result<Self, WireError> {
        body.poly(parameters.n(), moduli(parameters, descriptor.limbs))
    }
}

impl Wire for Poly<Coefficient> {}
impl Wire for Poly<Evaluation> {}
