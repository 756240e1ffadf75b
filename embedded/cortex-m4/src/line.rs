use keywright_client::{ClientError, ClientLiteral, ClientParameters, Layout};
use keywright_rlwe::SecretDistribution;

/// One line of the vectors.
pub struct Line {
    /// Its numbers, as vectors/README.md names them.
    pub fields: [u64; 18],
}

impl Line {
    /// Reads a line.
    ///
    /// # Panics
    /// If it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut fields = [0; 18];
        let mut words = text.split(' ');
        for field in &mut fields {
            *field = words
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or_else(|| panic!("malformed vectors"));
        }
        Self { fields }
    }

    /// The parameters of its client.
    ///
    /// # Errors
    /// The errors of [`ClientParameters::new`].
    pub fn parameters(&self) -> Result<ClientParameters, ClientError> {
        let f = &self.fields;
        let mut identity = [0xA5; 20];
        identity[..4].copy_from_slice(&[f[0] as u8, 1, 0, 1]);
        ClientParameters::new(ClientLiteral {
            log_n: f[0] as u32,
            modulus: f[1],
            secret: SecretDistribution::Ternary,
            scale: f[2],
            fraction_bits: f[3] as u32,
            max: 1 << f[3],
            layout: match f[4] {
                0 => Layout::Coefficients,
                form => Layout::Slots { log_slots: f[5] as u32, complex: form == 2 },
            },
            identity,
            entry_identity: identity,
            // The doubles 1, 2 and 3.
            estimate: [0x3FF0_0000_0000_0000, 0x4000_0000_0000_0000, 0x4008_0000_0000_0000],
        })
    }

    /// Length and checksum of object `index`.
    #[must_use]
    pub fn object(&self, index: usize) -> (u64, u64) {
        (self.fields[6 + 2 * index], self.fields[7 + 2 * index])
    }
}
