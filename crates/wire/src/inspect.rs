//! Identifies objects in bytes, without their parameters.

use std::io::Read;

use keywright_bfv::BfvLiteral;
use keywright_ckks::CkksLiteral;
use keywright_frame::{CiphertextDescriptor, FORMAT_VERSION, FieldReader, KeyDescriptor, SeededDescriptor};
use keywright_ring::Seed;
use keywright_rlwe::{KeyIdentity, Parameters, ParametersLiteral};

use crate::aggregation::{SumDescriptor, UpdateDescriptor};
use crate::bfv::{BfvCiphertextDescriptor, BfvSeededDescriptor};
use crate::ckks::{CkksCiphertextDescriptor, CkksSeededDescriptor, PlaintextDescriptor};
use crate::key_set::{Directory, KeyEntry};
use crate::master_keys::MasterDescriptor;
use crate::object::Descriptor;
use crate::rlwe::polynomial::PolynomialDescriptor;
use crate::rlwe::secret_key::SecretKeyDescriptor;
use crate::search::AnswerDescriptor;
use crate::stream::header::Header;
use crate::{Identity, Kind, MAGIC, WireError};

/// Bytes that identify the start of an object: magic, version and kind.
pub const HEAD_BYTES: usize = MAGIC.len() + 4;

/// Whether a secret object begins anywhere in some bytes. Misses one whose first [`HEAD_BYTES`] are cut off at the end.
pub fn contains_secret(bytes: &[u8]) -> bool {
    bytes.windows(HEAD_BYTES).any(|head| Kind::code_of(head).is_some_and(Kind::is_secret_code))
}

/// The content of a header.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// The kind of the object.
    pub kind: Kind,
    /// Its format version.
    pub version: u16,
    /// Its parameters.
    pub identity: Identity,
    /// The identity of its secret; for a set, that of its first key, if the reader reaches it.
    pub key: KeyIdentity,
    /// Bytes of the whole object.
    pub bytes: u64,
    /// The kind-specific fields.
    pub content: Content,
}

/// The kind-specific part of [`Info`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// The parameters themselves.
    Parameters(ParametersLiteral),
    /// A secret: nothing is shown.
    SecretKey,
    /// A public key.
    PublicKey {
        /// Seed of its uniform half.
        seed: Seed,
    },
    /// One switching key.
    SwitchingKey(KeyDescriptor),
    /// The keys of a set, in stored order.
    KeySet(Vec<KeyEntry>),
    /// Master keys: the extra primes, and the keys over the chain with these primes.
    MasterKeys(Vec<u64>, Vec<KeyEntry>),
    /// An RLWE ciphertext.
    RlweCiphertext(CiphertextDescriptor),
    /// A seeded RLWE ciphertext.
    SeededRlweCiphertext(SeededDescriptor),
    /// A polynomial.
    Polynomial(PolynomialDescriptor),
    /// CKKS parameters.
    CkksParameters(CkksLiteral),
    /// A CKKS plaintext.
    CkksPlaintext(PlaintextDescriptor),
    /// A CKKS ciphertext.
    CkksCiphertext(CkksCiphertextDescriptor),
    /// A seeded CKKS ciphertext.
    CkksSeededCiphertext(CkksSeededDescriptor),
    /// A compact CKKS ciphertext, or a client's parameters: `keywright_client` reads them.
    Client,
    /// BFV parameters.
    BfvParameters(BfvLiteral),
    /// A BFV ciphertext.
    BfvCiphertext(BfvCiphertextDescriptor),
    /// A seeded BFV ciphertext.
    BfvSeededCiphertext(BfvSeededDescriptor),
    /// An encrypted update.
    EncryptedUpdate(UpdateDescriptor),
    /// A sum of encrypted updates.
    EncryptedSum(SumDescriptor),
    /// An answer of a search.
    SearchAnswer(AnswerDescriptor),
}

/// The ring of some parameters to which an object claims to belong; the parameters' own ring if there is none, so that
/// loading the object reports the mismatch.
///
/// # Errors
/// [`WireError`] if the header is not one that this version can have written.
pub fn ring_of<'p>(reader: &mut impl Read, parameters: &'p Parameters) -> Result<&'p Parameters, WireError> {
    let identity = Header::read(reader)?.identity;
    for ring in parameters.subrings() {
        if Identity::of(ring.literal())? == identity {
            return Ok(ring);
        }
    }
    Ok(parameters)
}

/// Identifies an object from its header alone, whose checksum it verifies. It does not read the body; loading the
/// object shows whether the body is intact and fits its parameters.
///
/// # Errors
/// [`WireError`] if the header is not one that this version can have written.
pub fn inspect(reader: &mut impl Read) -> Result<Info, WireError> {
    let header = Header::read(reader)?;
    let mut fields = FieldReader::new(&header.descriptor);
    let f = &mut fields;
    let content = match header.kind {
        Kind::Parameters => {
            let literal = ParametersLiteral::decode(f)?;
            require_identity(&header, &literal)?;
            Content::Parameters(literal)
        }
        Kind::CkksParameters => {
            let literal = CkksLiteral::decode(f)?;
            require_identity(&header, &literal.rlwe)?;
            Content::CkksParameters(literal)
        }
        Kind::BfvParameters => {
            let literal = BfvLiteral::decode(f)?;
            require_identity(&header, &literal.rlwe)?;
            Content::BfvParameters(literal)
        }
        Kind::SecretKey => {
            SecretKeyDescriptor::decode(f)?;
            Content::SecretKey
        }
        Kind::PublicKey => Content::PublicKey { seed: Seed::decode(f)? },
        Kind::SwitchingKey => Content::SwitchingKey(KeyDescriptor::decode(f)?),
        Kind::KeySet => {
            let directory = Directory::decode(f)?;
            let expected = directory.body_len()?;
            if header.body_len != expected {
                return Err(WireError::Length { what: "the body", found: header.body_len, expected });
            }
            Content::KeySet(directory.entries)
        }
        Kind::MasterKeys => {
            let MasterDescriptor { extra, directory, .. } = MasterDescriptor::decode(f)?;
            let expected = directory.body_len()?;
            if header.body_len != expected {
                return Err(WireError::Length { what: "the body", found: header.body_len, expected });
            }
            Content::MasterKeys(extra, directory.entries)
        }
        Kind::RlweCiphertext => Content::RlweCiphertext(CiphertextDescriptor::decode(f)?),
        Kind::SeededRlweCiphertext => Content::SeededRlweCiphertext(SeededDescriptor::decode(f)?),
        Kind::Polynomial => Content::Polynomial(PolynomialDescriptor::decode(f)?),
        Kind::CkksPlaintext => Content::CkksPlaintext(PlaintextDescriptor::decode(f)?),
        Kind::CkksCiphertext => Content::CkksCiphertext(CkksCiphertextDescriptor::decode(f)?),
        Kind::BfvCiphertext => Content::BfvCiphertext(BfvCiphertextDescriptor::decode(f)?),
        Kind::BfvSeededCiphertext => Content::BfvSeededCiphertext(BfvSeededDescriptor::decode(f)?),
        Kind::CkksSeededCiphertext => Content::CkksSeededCiphertext(CkksSeededDescriptor::decode(f)?),
        Kind::CkksCompactCiphertext | Kind::ClientParameters => {
            f.skip();
            Content::Client
        }
        Kind::EncryptedUpdate => Content::EncryptedUpdate(UpdateDescriptor::decode(f)?),
        Kind::EncryptedSum => Content::EncryptedSum(SumDescriptor::decode(f)?),
        Kind::SearchAnswer => Content::SearchAnswer(AnswerDescriptor::decode(f)?),
    };
    fields.finish()?;
    let bytes = header.object_len()?;
    let key = match header.kind {
        Kind::KeySet | Kind::MasterKeys => Header::read(reader).map_or(header.key, |first| first.key),
        _ => header.key,
    };
    let Header { kind, identity, .. } = header;
    Ok(Info { kind, version: FORMAT_VERSION, identity, key, bytes, content })
}

/// Refuses parameters that differ from those of their header.
fn require_identity(header: &Header, literal: &ParametersLiteral) -> Result<(), WireError> {
    let expected = Identity::of(literal)?;
    if header.identity == expected {
        return Ok(());
    }
    Err(WireError::ForeignParameters { found: header.identity.fingerprint, expected: expected.fingerprint })
}
