/// Errors of a header or of fields. The reader adds the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the readers' messages say what the fields are")]
pub enum FrameError {
    /// The descriptor ends within a field.
    Truncated { needed: u64, missing: u64 },
    /// No field uses these bytes of the descriptor.
    Trailing { extra: u64 },
    /// Not a Keywright object.
    Magic { found: [u8; 8] },
    /// The object has a format version that this build does not read.
    Version { found: u16 },
    /// A number outside its range.
    Field { what: &'static str, value: u64, min: u64, max: u64 },
}

/// Checks `min <= value <= max`.
pub(crate) fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), FrameError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(FrameError::Field { what, value, min, max }) }
}
