use core::fmt;

/// First bytes of every object. The first is not ASCII, and a transfer that rewrites line ends changes the last three.
pub const MAGIC: [u8; 8] = *b"\x89KWRT\r\n\x1a";

/// The kinds: documentation, code in the header and name of each.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $name:literal;)*) => {
        /// The kind of an object. Codes with the top bit set are secrets: no method that a server calls reads them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Kind {
            $($(#[$doc])* $kind = $code,)*
        }

        impl Kind {
            /// All kinds, by code.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$kind),*];
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $name,)*
                })
            }
        }
    };
}

kinds! {
    /// `keywright_rlwe::ParametersLiteral`.
    Parameters = 0x0001, "parameters";
    /// `keywright_rlwe::PublicKey`.
    PublicKey = 0x0002, "a public key";
    /// `keywright_rlwe::SwitchingKey`.
    SwitchingKey = 0x0003, "a switching key";
    /// `keywright_rlwe::EvaluationKeys`: a directory and switching keys.
    KeySet = 0x0004, "a set of switching keys";
    /// `keywright_rlwe::RlweCiphertext`.
    RlweCiphertext = 0x0005, "an RLWE ciphertext";
    /// `keywright_rlwe::SeededRlweCiphertext`.
    SeededRlweCiphertext = 0x0006, "a seeded RLWE ciphertext";
    /// A `keywright_ring::Poly` in either form.
    Polynomial = 0x0007, "a polynomial";
    /// `keywright_rlwe::derive::MasterKeys`: extra primes, a directory and switching keys.
    MasterKeys = 0x0008, "a set of master keys";
    /// `keywright_ckks::CkksLiteral`.
    CkksParameters = 0x0101, "CKKS parameters";
    /// `keywright_ckks::Plaintext`.
    CkksPlaintext = 0x0102, "a CKKS plaintext";
    /// `keywright_ckks::Ciphertext`.
    CkksCiphertext = 0x0103, "a CKKS ciphertext";
    /// `keywright_ckks::SeededCiphertext`.
    CkksSeededCiphertext = 0x0104, "a seeded CKKS ciphertext";
    /// A CKKS ciphertext from or for a thin client, in coefficient form: `keywright_client::CompactForm`.
    CkksCompactCiphertext = 0x0105, "a compact CKKS ciphertext";
    /// The data of a server that a thin client needs: `keywright_client::ClientParameters`.
    ClientParameters = 0x0106, "a client's parameters";
    /// `keywright_bfv::BfvLiteral`.
    BfvParameters = 0x0201, "BFV parameters";
    /// `keywright_bfv::Ciphertext`.
    BfvCiphertext = 0x0203, "a BFV ciphertext";
    /// `keywright_bfv::SeededCiphertext`.
    BfvSeededCiphertext = 0x0204, "a seeded BFV ciphertext";
    /// `keywright_aggregation::EncryptedUpdate`.
    EncryptedUpdate = 0x0301, "an encrypted update";
    /// `keywright_aggregation::EncryptedSum`.
    EncryptedSum = 0x0302, "an encrypted sum of updates";
    /// `keywright_search::Answer`.
    SearchAnswer = 0x0401, "an answer of a search";
    /// `keywright_rlwe::SecretKey`.
    SecretKey = 0x8001, "a secret key";
}

impl Kind {
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
