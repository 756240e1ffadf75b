/// What can be wrong with a header or with fields. Whoever reads them says of which object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The descriptor ends within a field.
    Truncated {
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that were not there.
        missing: u64,
    },
    /// No field took these bytes of the descriptor.
    Trailing {
        /// How many.
        extra: u64,
    },
    /// Not a Keywright object.
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// Written in a format that this build does not know.
    Version {
        /// Version in the header.
        found: u16,
    },
    /// A number outside its range.
    Field {
        /// Which number.
        what: &'static str,
        /// Offending value.
        value: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
}

/// Checks `min <= value <= max`.
pub(crate) fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), FrameError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(FrameError::Field { what, value, min, max }) }
}
