use std::io::{Read, Write};

use keywright_rlwe::ParametersLiteral;

use crate::body::{BodyReader, BodyWriter};
use crate::object::Record;
use crate::{Identity, Kind, Wire, WireError};

/// A literal is all descriptor. Reading does not check it; `Parameters::new` does.
impl Record for ParametersLiteral {
    type Context = ();
    type Descriptor = Self;
    const KIND: Kind = Kind::Parameters;

    fn identity(descriptor: &Self, (): &()) -> Result<Identity, WireError> {
        Ok(Identity::of(descriptor)?)
    }

    fn descriptor(&self, (): &()) -> Result<Self, WireError> {
        Ok(self.clone())
    }

    fn body_len(_: &Self, (): &()) -> Result<u64, WireError> {
        Ok(0)
    }

    fn write_body<W: Write>(&self, _: &mut BodyWriter<W>, (): &()) -> Result<(), WireError> {
        Ok(())
    }

    fn read_body<R: Read>(descriptor: Self, _: &mut BodyReader<R>, (): &()) -> Result<Self, WireError> {
        Ok(descriptor)
    }
}

impl Wire for ParametersLiteral {}
