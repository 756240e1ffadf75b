/// Errors of a header or of fields. The reader adds the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The descriptor ends within a field.
    Truncated {
        /// Bytes of the field.
        needed: u64,
        /// Missing bytes.
        missing: u64,
    },
    /// No field uses these bytes of the descriptor.
    Trailing {
        /// Their number.
        extra: u64,
    },
    /// Not a Keywright object.
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The object has a format version that this build does not read.
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
