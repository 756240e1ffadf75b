use keywright_client::{ClientError, ClientParameters};

#[path = "../../../crates/client/tests/client/line_parameters.rs"]
mod line_parameters;

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
        line_parameters::parameters(&self.fields)
    }

    /// Length and checksum of object `index`.
    #[must_use]
    pub fn object(&self, index: usize) -> (u64, u64) {
        (self.fields[6 + 2 * index], self.fields[7 + 2 * index])
    }
}
