use core::ffi::{c_int, c_void};
use core::slice::{from_raw_parts, from_raw_parts_mut};

use keywright_client::{ClientError, Form, SinkError};

use crate::ARGUMENT;

/// Receives bytes; returns 0 on success.
pub type Sink = Option<unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int>;
/// Supplies bytes; returns 0 on success.
pub type Entropy = Option<unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> c_int>;

/// `kw_compact`: low bits that are dropped from the coefficients of the halves.
#[repr(C)]
pub struct Compact {
    dropped: [u32; 2],
}

/// The values that C passed; the code of a null pointer.
///
/// # Safety
/// `pointer` is null or valid for `length` values while the result lives.
///
/// # Errors
/// [`ARGUMENT`] for a null pointer to values.
pub unsafe fn slice<'a, T>(pointer: *const T, length: usize) -> Result<&'a [T], c_int> {
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, and valid by the caller's promise.
    if pointer.is_null() { Err(ARGUMENT) } else { Ok(unsafe { from_raw_parts(pointer, length) }) }
}

/// The memory that C passed; the code of a null pointer.
///
/// # Safety
/// As [`slice`], and nothing else refers to the values.
///
/// # Errors
/// As [`slice`].
pub unsafe fn slice_mut<'a, T>(pointer: *mut T, length: usize) -> Result<&'a mut [T], c_int> {
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not null, and valid by the caller's promise.
    if pointer.is_null() { Err(ARGUMENT) } else { Ok(unsafe { from_raw_parts_mut(pointer, length) }) }
}

/// The form that C requests.
///
/// # Safety
/// `compact` is null or valid.
pub unsafe fn form(compact: *const Compact) -> Form {
    // SAFETY: the caller's promise.
    unsafe { compact.as_ref() }.map_or(Form::Evaluations, |compact| Form::Compact(compact.dropped))
}

/// The sink as a function.
pub(crate) fn sink_of(
    sink: Sink,
    context: *mut c_void,
) -> Result<impl FnMut(&[u8]) -> Result<(), SinkError>, c_int> {
    let sink = sink.ok_or(ARGUMENT)?;
    Ok(move |bytes: &[u8]| {
        // SAFETY: the header requires a function with these arguments; `context` is the caller's own.
        let code = unsafe { sink(context, bytes.as_ptr(), bytes.len()) };
        if code == 0 { Ok(()) } else { Err(SinkError("the sink returned an error")) }
    })
}

/// The platform's randomness.
pub(crate) fn entropy_of(
    entropy: Entropy,
    context: *mut c_void,
) -> Result<impl FnMut(&mut [u8]) -> Result<(), ClientError>, c_int> {
    let entropy = entropy.ok_or(ARGUMENT)?;
    Ok(move |out: &mut [u8]| {
        // SAFETY: as for the sink.
        let code = unsafe { entropy(context, out.as_mut_ptr(), out.len()) };
        if code == 0 {
            Ok(())
        } else {
            Err(ClientError::Randomness("the platform's function returned an error"))
        }
    })
}
