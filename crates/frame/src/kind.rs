use core::fmt;

/// First bytes of every object. The first is not ASCII, and a transfer that rewrites line ends changes the last three.
pub const MAGIC: [u8; 8] = *b"\x89KWRT\r\n\x1a";

/// The kind of an object. Codes with the top bit set are secrets: no method that a server calls reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// `keywright_rlwe::ParametersLiteral`.
    Parameters = 0x0001,
    /// `keywright_rlwe::PublicKey`.
    PublicKey = 0x0002,
    /// `keywright_rlwe::SwitchingKey`.
    SwitchingKey = 0x0003,
    /// `keywright_rlwe::EvaluationKeys`: a directory and switching keys.
    KeySet = 0x0004,
    /// `keywright_rlwe::RlweCiphertext`.
    RlweCiphertext = 0x0005,
    /// `keywright_rlwe::SeededRlweCiphertext`.
    SeededRlweCiphertext = 0x0006,
    /// A `keywright_ring::Poly` in either form.
    Polynomial = 0x0007,
    /// `keywright_rlwe::derive::MasterKeys`: extra primes, a directory and switching keys.
    MasterKeys = 0x0008,
    /// `keywright_ckks::CkksLiteral`.
    CkksParameters = 0x0101,
    /// `keywright_ckks::Plaintext`.
    CkksPlaintext = 0x0102,
    /// `keywright_ckks::Ciphertext`.
    CkksCiphertext = 0x0103,
    /// `keywright_ckks::SeededCiphertext`.
    CkksSeededCiphertext = 0x0104,
    /// A CKKS ciphertext from or for a thin client, in coefficient form: `keywright_client::CompactForm`.
    CkksCompactCiphertext = 0x0105,
    /// The data of a server that a thin client needs: `keywright_client::ClientParameters`.
    ClientParameters = 0x0106,
    /// `keywright_bfv::BfvLiteral`.
    BfvParameters = 0x0201,
    /// `keywright_bfv::Ciphertext`.
    BfvCiphertext = 0x0203,
    /// `keywright_bfv::SeededCiphertext`.
    BfvSeededCiphertext = 0x0204,
    /// `keywright_aggregation::EncryptedUpdate`.
    EncryptedUpdate = 0x0301,
    /// `keywright_aggregation::EncryptedSum`.
    EncryptedSum = 0x0302,
    /// `keywright_search::Answer`.
    SearchAnswer = 0x0401,
    /// `keywright_rlwe::SecretKey`.
    SecretKey = 0x8001,
}

impl Kind {
    /// All kinds, by code.
    pub const ALL: [Self; 21] = [
        Self::Parameters,
        Self::PublicKey,
        Self::SwitchingKey,
        Self::KeySet,
        Self::RlweCiphertext,
        Self::SeededRlweCiphertext,
        Self::Polynomial,
        Self::MasterKeys,
        Self::CkksParameters,
        Self::CkksPlaintext,
        Self::CkksCiphertext,
        Self::CkksSeededCiphertext,
        Self::CkksCompactCiphertext,
        Self::ClientParameters,
        Self::BfvParameters,
        Self::BfvCiphertext,
        Self::BfvSeededCiphertext,
        Self::EncryptedUpdate,
        Self::EncryptedSum,
        Self::SearchAnswer,
        Self::SecretKey,
    ];

    /// Code in the header.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Whether it belongs to a secret, whose identity its descriptor starts with. The keys of a set have their own,
    /// since they are unknown when its directory is written; encrypted updates and sums belong to joint keys.
    pub const fn has_key(self) -> bool {
        matches!(
            self,
            Self::PublicKey
                | Self::SwitchingKey
                | Self::RlweCiphertext
                | Self::SeededRlweCiphertext
                | Self::CkksCiphertext
                | Self::CkksSeededCiphertext
                | Self::CkksCompactCiphertext
                | Self::BfvCiphertext
                | Self::BfvSeededCiphertext
                | Self::SearchAnswer
                | Self::SecretKey
        )
    }

    /// Whether the object must stay with its owner.
    pub const fn is_secret(self) -> bool {
        Self::is_secret_code(self.code())
    }

    /// The same for a code, known or not.
    pub const fn is_secret_code(code: u16) -> bool {
        code >> 15 == 1
    }

    /// The code in the first bytes of an object; `None` for bytes that do not start an object, or end before its kind.
    pub fn code_of(bytes: &[u8]) -> Option<u16> {
        let (_, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk::<2>()?;
        rest.first_chunk().map(|&code| u16::from_le_bytes(code))
    }

    /// The kind of a code; `None` for an unknown code.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parameters => "parameters",
            Self::PublicKey => "a public key",
            Self::SwitchingKey => "a switching key",
            Self::KeySet => "a set of switching keys",
            Self::RlweCiphertext => "an RLWE ciphertext",
            Self::SeededRlweCiphertext => "a seeded RLWE ciphertext",
            Self::Polynomial => "a polynomial",
            Self::MasterKeys => "a set of master keys",
            Self::CkksParameters => "CKKS parameters",
            Self::CkksPlaintext => "a CKKS plaintext",
            Self::CkksCiphertext => "a CKKS ciphertext",
            Self::CkksSeededCiphertext => "a seeded CKKS ciphertext",
            Self::CkksCompactCiphertext => "a compact CKKS ciphertext",
            Self::ClientParameters => "a client's parameters",
            Self::BfvParameters => "BFV parameters",
            Self::BfvCiphertext => "a BFV ciphertext",
            Self::BfvSeededCiphertext => "a seeded BFV ciphertext",
            Self::EncryptedUpdate => "an encrypted update",
            Self::EncryptedSum => "an encrypted sum of updates",
            Self::SearchAnswer => "an answer of a search",
            Self::SecretKey => "a secret key",
        })
    }
}
