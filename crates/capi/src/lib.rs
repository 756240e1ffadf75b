//! The functions of `include/keywright_client.h`: an adapter of `keywright-client`, without logic.
//!
//! Pointers must be valid for the length passed with them; a null pointer is an error. A panic would be a bug of this
//! library and does not cross the C interface: the call returns `KW_ERROR_INTERNAL`.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

use keywright_capi_bare::{
    ARGUMENT, Compact, Entropy, FORMAT, INSECURE_FLAG, INTERNAL, OK, PARAMETERS, Sink, code, form,
};
use keywright_ckks::CkksLiteral;
use keywright_client::{
    Client, ClientError, ClientParameters, Encryptor, KeySetStream, SinkError, SystemEntropy,
};
use keywright_rlwe::{KeySpec, Parameters, RlweError, Security};
use keywright_wire::{KeySetReader, Wire, WireError};
use zeroize::Zeroizing;

/// `kw_limits`: the most keys, and their most bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    /// Most bytes of keys.
    pub key_bytes: u64,
    /// Most keys.
    pub key_count: u64,
}

const DEFAULT_LIMITS: Limits = Limits { key_bytes: 32 << 30, key_count: 4096 };

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The object behind a pointer to a client or an encryptor. Two concurrent calls would draw the same randomness, so the
/// second one is refused.
pub struct Handle<T> {
    parameters: ClientParameters,
    object: Mutex<T>,
}

impl<T> Handle<T> {
    fn new(parameters: ClientParameters, object: T) -> Self {
        Self { parameters, object: Mutex::new(object) }
    }

    fn alone(&self) -> Result<MutexGuard<'_, T>, Failure> {
        // An object whose call panicked is unusable.
        self.object.try_lock().map_err(|_| Failure::InUse)
    }
}

/// The error of a call.
enum Failure {
    Null(&'static str),
    InUse,
    Flags(u32),
    Client(ClientError),
    Wire(WireError),
    /// Errors without a more specific code.
    Parameters(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<RlweError> for Failure {
    fn from(error: RlweError) -> Self {
        Self::Parameters(error.to_string())
    }
}

impl Failure {
    fn code(&self) -> c_int {
        match self {
            Self::Null(_) | Self::InUse | Self::Flags(_) => ARGUMENT,
            Self::Client(error) => code(error),
            Self::Wire(_) => FORMAT,
            Self::Parameters(_) => PARAMETERS,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Null(what) => format!("{what} is null"),
            Self::InUse => {
                "the client or encryptor is in another call: use a lock, or one for each thread".into()
            }
            Self::Flags(flags) => format!("flags are {flags}; they must be 0 or KW_INSECURE"),
            Self::Client(error) => error.to_string(),
            Self::Wire(error) => error.to_string(),
            Self::Parameters(text) => text.clone(),
        }
    }
}

/// Runs a call, and keeps its error.
fn call(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let (code, text) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => (OK, String::new()),
        Ok(Err(failure)) => (failure.code(), failure.text()),
        Err(_) => (INTERNAL, "a bug of this library; please report it".into()),
    };
    LAST.with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
    code
}

/// The bytes or numbers that C passed.
///
/// # Safety
/// `pointer` is null or valid for `length` values while the result lives.
unsafe fn slice<'a, T>(what: &'static str, pointer: *const T, length: usize) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::Null(what));
    }
    // SAFETY: not null, and valid by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// An object that C holds.
///
/// # Safety
/// `pointer` is null, or came from this library and is not freed.
unsafe fn object<'a, T>(pointer: *const Handle<T>) -> Result<&'a Handle<T>, Failure> {
    // SAFETY: valid by the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Failure::Null("the client or encryptor"))
}

/// The sink as a function.
fn sink_of(sink: Sink, context: *mut c_void) -> Result<impl FnMut(&[u8]) -> Result<(), SinkError>, Failure> {
    let sink = sink.ok_or(Failure::Null("the sink"))?;
    Ok(move |bytes: &[u8]| {
        // SAFETY: the header requires a function with these arguments; `context` is the caller's own.
        let code = unsafe { sink(context, bytes.as_ptr(), bytes.len()) };
        if code == 0 { Ok(()) } else { Err(SinkError("the sink returned an error")) }
    })
}

/// The parameters that C passed, with 128 bits of security unless the caller does without.
///
/// # Safety
/// As [`slice`].
unsafe fn parameters_of(bytes: *const u8, length: usize, flags: u32) -> Result<ClientParameters, Failure> {
    if flags & !INSECURE_FLAG != 0 {
        return Err(Failure::Flags(flags));
    }
    // SAFETY: the caller's promise.
    let parameters = ClientParameters::from_bytes(unsafe { slice("parameters", bytes, length) }?)?;
    if parameters.security() != Security::Classical128 && flags & INSECURE_FLAG == 0 {
        return Err(Failure::Parameters(format!(
            "the parameters have less than 128 bits of security: they switch the check of their keys off, and their \
             ring has degree 2^{}; use another model, or KW_INSECURE for made-up data",
            parameters.log_n()
        )));
    }
    Ok(parameters)
}

/// Refuses more keys than a client makes.
fn require_within(limits: Limits, count: u64, bytes: u64) -> Result<(), Failure> {
    for (what, value, maximum) in
        [("keys", count, limits.key_count), ("bytes of keys", bytes, limits.key_bytes)]
    {
        if value > maximum {
            return Err(Failure::Parameters(format!(
                "{value} {what} are asked for, and at most {maximum} are made; raise kw_limits if you expect this of \
                 the model"
            )));
        }
    }
    Ok(())
}

/// The platform's randomness, or the operating system's.
fn entropy_of(entropy: Entropy, context: *mut c_void) -> Box<dyn keywright_client::Entropy> {
    let Some(entropy) = entropy else { return Box::new(SystemEntropy) };
    Box::new(move |out: &mut [u8]| {
        // SAFETY: as for the sink.
        let code = unsafe { entropy(context, out.as_mut_ptr(), out.len()) };
        if code == 0 {
            Ok(())
        } else {
            Err(ClientError::Randomness("the platform's function returned an error"))
        }
    })
}

/// Passes an object to C.
///
/// # Safety
/// `out` is null or valid for one pointer.
unsafe fn give<T>(out: *mut *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: valid by the caller's promise.
    let place = unsafe { out.as_mut() }.ok_or(Failure::Null("the place of the result"))?;
    *place = Box::into_raw(Box::new(value));
    Ok(())
}

/// The last error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn kw_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// A client with a new secret.
///
/// # Safety
/// Pointers are null or valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_generate(
    parameters: *const u8,
    length: usize,
    flags: u32,
    entropy: Entropy,
    context: *mut c_void,
    client: *mut *mut Handle<Client>,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let parameters = unsafe { parameters_of(parameters, length, flags) }?;
        let generated = Client::generate(&parameters, &mut *entropy_of(entropy, context))?;
        // SAFETY: the caller's promise.
        unsafe { give(client, Handle::new(parameters, generated)) }
    })
}

/// A client with a stored secret.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_from_secret(
    parameters: *const u8,
    length: usize,
    flags: u32,
    secret: *const u8,
    secret_length: usize,
    entropy: Entropy,
    context: *mut c_void,
    client: *mut *mut Handle<Client>,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let parameters = unsafe { parameters_of(parameters, length, flags) }?;
        // SAFETY: the caller's promise.
        let secret = unsafe { slice("secret", secret, secret_length) }?;
        let restored = Client::from_secret_bytes(&parameters, secret, &mut *entropy_of(entropy, context))?;
        // SAFETY: the caller's promise.
        unsafe { give(client, Handle::new(parameters, restored)) }
    })
}

/// Frees a client and wipes its secret.
///
/// # Safety
/// `client` is null or came from this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_free(client: *mut Handle<Client>) {
    if !client.is_null() {
        // SAFETY: it came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(client) });
    }
}

/// Most numbers in a ciphertext.
///
/// # Safety
/// `client` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_capacity(client: *const Handle<Client>) -> usize {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(0, |client| client.parameters.capacity())
}

/// Bits after the point of a number.
///
/// # Safety
/// As [`kw_client_capacity`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_fraction_bits(client: *const Handle<Client>) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(0, |client| client.parameters.fixed_point().fraction_bits())
}

/// Writes the secret.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_secret(
    client: *const Handle<Client>,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { object(client) }?.alone()?.secret_bytes()?;
        Ok(sink_of(sink, context)?(&bytes).map_err(ClientError::from)?)
    })
}

/// Writes a new public key.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_public_key(
    client: *mut Handle<Client>,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    call(|| Ok(unsafe { object(client) }?.alone()?.public_key(&mut sink_of(sink, context)?)?))
}

/// Makes the keys that a server requests, limb by limb, and writes them as a set.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_keys(
    client: *const Handle<Client>,
    parameters: *const u8,
    length: usize,
    head: *const u8,
    head_length: usize,
    limits: *const Limits,
    entropy: Entropy,
    entropy_context: *mut c_void,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let client = unsafe { object(client) }?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice("parameters", parameters, length) }?;
        // SAFETY: the caller's promise.
        let head = unsafe { slice("head of the key set", head, head_length) }?;
        let full = Parameters::new(CkksLiteral::from_bytes(bytes, &())?.rlwe)?;
        let entries = KeySetReader::new(head, &full)?;
        // SAFETY: the caller's promise.
        let limits = unsafe { limits.as_ref() }.copied().unwrap_or(DEFAULT_LIMITS);
        require_within(limits, entries.entries().len() as u64, 0)?;
        let specs: Vec<KeySpec> = entries.entries().iter().map(|entry| entry.spec.clone()).collect();
        let mut session = Zeroizing::new([0; 32]);
        entropy_of(entropy, entropy_context).generator()?.fill_bytes(&mut *session);
        // The client is free for other calls while the keys are made.
        let keys = client.alone()?.keys(&full, &specs, &session)?;
        let mut set = KeySetStream::new(keys, head)?;
        require_within(limits, set.count() as u64, set.bytes())?;
        let mut sink = sink_of(sink, context)?;
        loop {
            let part = set.next_part()?;
            if part.is_empty() {
                return Ok(());
            }
            sink(&part).map_err(ClientError::from)?;
        }
    })
}

/// Encrypts with the secret.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_encrypt(
    client: *mut Handle<Client>,
    numbers: *const i64,
    count: usize,
    compact: *const Compact,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (client, numbers, form) =
            unsafe { (object(client)?, slice("numbers", numbers, count)?, form(compact)) };
        Ok(client.alone()?.encrypt(numbers, form, &mut sink_of(sink, context)?)?)
    })
}

/// Decrypts an answer.
///
/// # Safety
/// As [`kw_client_generate`]; `numbers` is valid for `count` numbers that nothing else refers to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_client_decrypt(
    client: *mut Handle<Client>,
    answer: *const u8,
    length: usize,
    numbers: *mut i64,
    count: usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (client, answer) = unsafe { (object(client)?, slice("answer", answer, length)?) };
        if numbers.is_null() && count > 0 {
            return Err(Failure::Null("numbers"));
        }
        let numbers: &mut [i64] = if count == 0 {
            &mut []
        } else {
            // SAFETY: not null, and valid by the caller's promise.
            unsafe { std::slice::from_raw_parts_mut(numbers, count) }
        };
        Ok(client.alone()?.decrypt(answer, numbers)?)
    })
}

/// An encryptor with a public key.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_encryptor_new(
    parameters: *const u8,
    length: usize,
    flags: u32,
    public_key: *const u8,
    key_length: usize,
    entropy: Entropy,
    context: *mut c_void,
    encryptor: *mut *mut Handle<Encryptor>,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let parameters = unsafe { parameters_of(parameters, length, flags) }?;
        // SAFETY: the caller's promise.
        let key = unsafe { slice("public key", public_key, key_length) }?;
        let prepared = Encryptor::new(&parameters, key, &mut *entropy_of(entropy, context))?;
        // SAFETY: the caller's promise.
        unsafe { give(encryptor, Handle::new(parameters, prepared)) }
    })
}

/// Frees an encryptor.
///
/// # Safety
/// `encryptor` is null or came from this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_encryptor_free(encryptor: *mut Handle<Encryptor>) {
    if !encryptor.is_null() {
        // SAFETY: it came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(encryptor) });
    }
}

/// Encrypts with the public key.
///
/// # Safety
/// As [`kw_client_generate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_encryptor_encrypt(
    encryptor: *mut Handle<Encryptor>,
    numbers: *const i64,
    count: usize,
    compact: *const Compact,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (encryptor, numbers, form) =
            unsafe { (object(encryptor)?, slice("numbers", numbers, count)?, form(compact)) };
        Ok(encryptor.alone()?.encrypt(numbers, form, &mut sink_of(sink, context)?)?)
    })
}
