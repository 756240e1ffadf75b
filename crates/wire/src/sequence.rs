use crate::{Wire, WireError, error::in_range};

/// Objects one after another, as bytes.
///
/// # Errors
/// As [`Wire::write_to`].
pub fn sequence_to_bytes<T: Wire>(objects: &[T], context: &T::Context) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    objects.iter().try_for_each(|object| object.write_to(&mut bytes, context))?;
    Ok(bytes)
}

/// The objects that take all of `bytes`, at least one and at most `max`. Each is checked before the next is read, so
/// memory exceeds that of the bytes by at most one polynomial.
///
/// # Errors
/// Any [`WireError`]; [`WireError::Field`] for none or more than `max`.
pub fn sequence_from_bytes<T: Wire>(
    mut bytes: &[u8],
    context: &T::Context,
    max: usize,
) -> Result<Vec<T>, WireError> {
    let mut objects = Vec::new();
    while !bytes.is_empty() {
        in_range("number of objects in a sequence", objects.len() as u64 + 1, 1, max as u64)?;
        objects.push(T::read_from(&mut bytes, context)?);
    }
    in_range("number of objects in a sequence", objects.len() as u64, 1, max as u64)?;
    Ok(objects)
}
