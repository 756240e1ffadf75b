//! From objects to bytes and back.

use std::io::{BufReader, Read, Write};
use std::path::Path;

use keywright_aggregation::SumParameters;
use keywright_bfv::BfvParameters;
use keywright_ckks::CkksParameters;
use keywright_frame::{
    CiphertextDescriptor, FieldReader, FieldWriter, Fields, KeyDescriptor, MessageFields, SeededDescriptor,
};
use keywright_ring::Seed;
use keywright_rlwe::{KeyIdentity, KeySpec, Parameters, ParametersLiteral};
use zeroize::Zeroizing;

use crate::stream::body::{BodyReader, BodyWriter};
use crate::stream::header::Header;
use crate::{AtomicFile, Identity, Kind, WireError, open_file};

/// The fields that determine the shape of a body. They can be read without the parameters.
pub trait Descriptor: Sized {
    /// Appends the fields.
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError>;
    /// Reads the fields.
    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError>;
}

/// The fields that `keywright-frame` lays out.
macro_rules! descriptors_of_the_frame {
    ($($type:ty)*) => {
        $(impl Descriptor for $type {
            fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
                Ok(Fields::encode(self, out)?)
            }

            fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
                Ok(Fields::decode(fields)?)
            }
        })*
    };
}

descriptors_of_the_frame!(
    ParametersLiteral Seed KeySpec KeyDescriptor CiphertextDescriptor SeededDescriptor MessageFields
);

/// The context for writing or reading objects with descriptors of type `D`: usually their parameters.
pub trait Context<D> {
    /// The literal whose identity an object has.
    fn literal<'a>(&'a self, descriptor: &'a D) -> &'a ParametersLiteral;
}

impl<D> Context<D> for Parameters {
    fn literal<'a>(&'a self, _: &'a D) -> &'a ParametersLiteral {
        self.literal()
    }
}

macro_rules! contexts_of_rlwe {
    ($($parameters:ty)*) => {
        $(impl<D> Context<D> for $parameters {
            fn literal<'a>(&'a self, _: &'a D) -> &'a ParametersLiteral {
                self.rlwe().literal()
            }
        })*
    };
}

contexts_of_rlwe!(CkksParameters BfvParameters SumParameters);

/// The layout of one type of object. Sealed: only this crate implements it.
pub trait Record: Sized {
    /// The context for writing or reading the object.
    type Context: Context<Self::Descriptor>;
    /// Fields of the header that determine the shape of the body.
    type Descriptor: Descriptor;
    /// Code in the header.
    const KIND: Kind;

    /// The identity of its secret, if objects of the kind have one.
    fn key(&self) -> KeyIdentity {
        KeyIdentity::UNKNOWN
    }
    /// Describes an object, after checking that it fits the context.
    fn descriptor(&self, context: &Self::Context) -> Result<Self::Descriptor, WireError>;
    /// Checks a descriptor against the context and returns the length of the body.
    fn body_len(descriptor: &Self::Descriptor, context: &Self::Context) -> Result<u64, WireError>;
    /// Writes exactly that many bytes.
    fn write_body<W: Write>(
        &self,
        body: &mut BodyWriter<W>,
        context: &Self::Context,
    ) -> Result<(), WireError>;
    /// Reads exactly that many bytes.
    fn read_body<R: Read>(
        descriptor: Self::Descriptor,
        body: &mut BodyReader<R>,
        context: &Self::Context,
    ) -> Result<Self, WireError>;
}

/// The parameters of an object.
fn identity<T: Record>(descriptor: &T::Descriptor, context: &T::Context) -> Result<Identity, WireError> {
    Ok(Identity::of(context.literal(descriptor))?)
}

pub(crate) fn header<T: Record>(
    descriptor: &T::Descriptor,
    context: &T::Context,
    key: KeyIdentity,
) -> Result<Header, WireError> {
    let mut fields = FieldWriter::default();
    descriptor.encode(&mut fields)?;
    let body_len = T::body_len(descriptor, context)?;
    Header::new(T::KIND, identity::<T>(descriptor, context)?, key, fields, body_len)
}

fn write<T: Record>(object: &T, writer: impl Write, context: &T::Context) -> Result<(), WireError> {
    let header = header::<T>(&object.descriptor(context)?, context, object.key())?;
    let mut body = BodyWriter::start(writer, header)?;
    object.write_body(&mut body, context)?;
    body.finish()?;
    Ok(())
}

/// Checks everything in a header that can be checked before the body: kind, descriptor, parameters, length.
pub(crate) fn open<T: Record>(header: &Header, context: &T::Context) -> Result<T::Descriptor, WireError> {
    if header.kind != T::KIND {
        return Err(WireError::WrongKind { found: header.kind, expected: T::KIND });
    }
    let mut fields = FieldReader::new(&header.descriptor);
    let descriptor = T::Descriptor::decode(&mut fields)?;
    fields.finish()?;
    let identity = identity::<T>(&descriptor, context)?;
    if header.identity != identity {
        let (found, expected) = (header.identity.fingerprint, identity.fingerprint);
        return Err(WireError::ForeignParameters { found, expected });
    }
    let expected = T::body_len(&descriptor, context)?;
    if header.body_len != expected {
        return Err(WireError::Length { what: "the body", found: header.body_len, expected });
    }
    Ok(descriptor)
}

fn read<T: Record>(reader: &mut impl Read, context: &T::Context) -> Result<T, WireError> {
    let header = Header::read(reader)?;
    read_after::<T>(&header, reader, context)
}

pub(crate) fn read_after<T: Record>(
    header: &Header,
    reader: &mut impl Read,
    context: &T::Context,
) -> Result<T, WireError> {
    let descriptor = open::<T>(header, context)?;
    let mut body = BodyReader::new(reader, header);
    let object = T::read_body(descriptor, &mut body, context)?;
    body.finish()?;
    Ok(object)
}

/// Reads one object that takes all of `available` bytes; refuses a shorter or longer input before reading the body.
fn read_whole<T: Record>(
    mut reader: impl Read,
    available: u64,
    context: &T::Context,
) -> Result<T, WireError> {
    let header = Header::read(&mut reader)?;
    let needed = header.object_len()?;
    if available < needed {
        return Err(WireError::Truncated { what: "the object", needed, missing: needed - available });
    }
    if available > needed {
        return Err(WireError::Trailing { what: "the object", extra: available - needed });
    }
    read_after::<T>(&header, &mut reader, context)
}

/// Objects that may leave their owner.
///
/// An object is written for, and read against, a context: the [`keywright_rlwe::Parameters`] it belongs to (`()` for
/// parameters themselves). The format is described in `docs/reference/format.md`.
pub trait Wire: Record {
    /// Bytes of the whole object.
    ///
    /// # Errors
    /// As [`Wire::write_to`], except for input and output.
    fn encoded_len(&self, context: &Self::Context) -> Result<u64, WireError> {
        header::<Self>(&self.descriptor(context)?, context, self.key())?.object_len()
    }

    /// Writes the object.
    ///
    /// # Errors
    /// [`WireError::Io`]; [`WireError::Rlwe`], [`WireError::Field`] or [`WireError::Residue`] if the object does not
    /// fit the context.
    fn write_to(&self, writer: &mut impl Write, context: &Self::Context) -> Result<(), WireError> {
        write(self, writer, context)
    }

    /// The object as bytes.
    ///
    /// # Errors
    /// As [`Wire::write_to`].
    fn to_bytes(&self, context: &Self::Context) -> Result<Vec<u8>, WireError> {
        let mut bytes = Vec::with_capacity(self.encoded_len(context)? as usize);
        self.write_to(&mut bytes, context)?;
        Ok(bytes)
    }

    /// Reads one object and leaves the reader after it. For any bytes, memory exceeds that of the object by at most one
    /// polynomial.
    ///
    /// # Errors
    /// Any [`WireError`]: an object is returned only if every check passes, including the checksum.
    fn read_from(reader: &mut impl Read, context: &Self::Context) -> Result<Self, WireError> {
        read(reader, context)
    }

    /// The object that takes all of `bytes`.
    ///
    /// # Errors
    /// As [`Wire::read_from`]; [`WireError::Trailing`] if bytes are left over.
    fn from_bytes(bytes: &[u8], context: &Self::Context) -> Result<Self, WireError> {
        read_whole(bytes, bytes.len() as u64, context)
    }

    /// Writes a file, which appears whole or not at all.
    ///
    /// # Errors
    /// As [`Wire::write_to`].
    fn save(&self, path: impl AsRef<Path>, context: &Self::Context) -> Result<(), WireError> {
        let mut file = AtomicFile::create(path)?;
        self.write_to(&mut file, context)?;
        Ok(file.commit()?)
    }

    /// The object that takes all of a file.
    ///
    /// # Errors
    /// As [`Wire::from_bytes`].
    fn load(path: impl AsRef<Path>, context: &Self::Context) -> Result<Self, WireError> {
        let file = open_file(path)?;
        let available = file.metadata()?.len();
        read_whole(BufReader::with_capacity(1 << 16, file), available, context)
    }
}

/// Objects that must not leave their owner. They share the format, but none of the methods: code that loads clients'
/// objects cannot load a secret by accident, and [`Wire::from_bytes`] refuses one by its kind.
pub trait WireSecret: Record {
    /// The secret as bytes, wiped when dropped.
    ///
    /// # Errors
    /// [`WireError::Rlwe`] if it does not belong to the context.
    fn to_secret_bytes(&self, context: &Self::Context) -> Result<Zeroizing<Vec<u8>>, WireError> {
        let len = header::<Self>(&self.descriptor(context)?, context, self.key())?.object_len()?;
        // Never reallocated, so no copy of the secret remains.
        let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize));
        write(self, &mut *bytes, context)?;
        Ok(bytes)
    }

    /// The secret that takes all of `bytes`.
    ///
    /// # Errors
    /// Any [`WireError`].
    fn from_secret_bytes(bytes: &[u8], context: &Self::Context) -> Result<Self, WireError> {
        read_whole(bytes, bytes.len() as u64, context)
    }

    /// Writes a file that only its owner can read, whole or not at all.
    ///
    /// # Errors
    /// As [`WireSecret::to_secret_bytes`]; [`WireError::Io`].
    fn save_secret(&self, path: impl AsRef<Path>, context: &Self::Context) -> Result<(), WireError> {
        let bytes = self.to_secret_bytes(context)?;
        let mut file = AtomicFile::create_private(path)?;
        file.write_all(&bytes)?;
        Ok(file.commit()?)
    }

    /// The secret that takes all of a file.
    ///
    /// # Errors
    /// Any [`WireError`].
    fn load_secret(path: impl AsRef<Path>, context: &Self::Context) -> Result<Self, WireError> {
        let file = open_file(path)?;
        let available = file.metadata()?.len();
        // Unbuffered: a buffer would keep a copy.
        read_whole(file, available, context)
    }
}
