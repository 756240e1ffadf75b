//! The functions of `include/keywright_bare.h`: the thin client in memory that the caller supplies, for devices without
//! an operating system. Nothing is allocated, and nothing panics for what C passes. The types and codes are also those
//! of `keywright-capi`.
#![no_std]

mod codes;
mod pointers;

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, align_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use keywright_client::reduction::Montgomery;
use keywright_client::{
    ClientError, ClientParameters, Entropy as _, PublicKey, SmallEngine, encrypt, encrypt_symmetric,
    expand_secret, make_public_key, sample_secret, secret_bytes, write_public_key, write_secret,
};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyIdentity, Security};
use zeroize::Zeroize;

pub use codes::{ARGUMENT, FORMAT, INTERNAL, NUMBERS, OK, PARAMETERS, RANDOMNESS, SINK, code};
pub use pointers::{Compact, Entropy, Sink, form, slice, slice_mut};

/// `KW_INSECURE`.
pub const INSECURE_FLAG: u32 = 1;
/// Marks memory that `kw_bare_init` has filled.
const LIVE: u32 = 0x6B77_6231;
/// `KW_BARE_BYTES`.
const BARE_BYTES: usize = 8192;

type SmallWords = SmallEngine<Montgomery<u32>>;

/// What `kw_bare` holds.
struct State {
    live: AtomicU32,
    busy: AtomicBool,
    parameters: ClientParameters,
    engine: SmallWords,
    rng: SecretRng,
}

/// `kw_bare`: memory of the caller.
#[repr(C, align(8))]
pub struct Bare {
    bytes: [MaybeUninit<u8>; BARE_BYTES],
}

const _: () = assert!(size_of::<State>() <= BARE_BYTES && align_of::<State>() <= align_of::<Bare>());

/// The error of a call, as its code.
struct Refusal(c_int);

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        Self(code(&error))
    }
}

impl From<c_int> for Refusal {
    fn from(code: c_int) -> Self {
        Self(code)
    }
}

fn done(result: Result<(), Refusal>) -> c_int {
    match result {
        Ok(()) => OK,
        Err(Refusal(code)) => code,
    }
}

/// The state in the caller's memory, if it is there.
///
/// # Safety
/// `bare` is null, or valid and either zeroed or passed to `kw_bare_init` before.
unsafe fn shared<'a>(bare: *const Bare) -> Option<&'a State> {
    let state = bare.cast::<State>();
    // SAFETY: the field `live` is valid in zeroed memory, too, and the rest is read only after it is set.
    unsafe {
        (!bare.is_null() && (*ptr::addr_of!((*state).live)).load(Ordering::Acquire) == LIVE).then(|| &*state)
    }
}

/// Runs a call with the state, alone: a second call, such as one from a sink or an interrupt, is refused.
///
/// # Safety
/// As [`shared`].
unsafe fn alone(bare: *mut Bare, work: impl FnOnce(&mut State) -> Result<(), Refusal>) -> c_int {
    // SAFETY: the caller's promise.
    let Some(state) = (unsafe { shared(bare) }) else { return ARGUMENT };
    if state.busy.swap(true, Ordering::Acquire) {
        return ARGUMENT;
    }
    // SAFETY: the flag keeps every other call out of everything but the flags, which are atomic, and the parameters,
    // which no call changes.
    let result = done(work(unsafe { &mut *bare.cast::<State>() }));
    // SAFETY: the state is valid until it is wiped, which needs the flag.
    unsafe { &*ptr::addr_of!((*bare.cast::<State>()).busy) }.store(false, Ordering::Release);
    result
}

/// Polynomials of the caller: `words` of 32 bits each, exactly N.
///
/// # Safety
/// `pointer` is null or valid for N words that nothing else refers to.
unsafe fn polynomial<'a>(state: &State, pointer: *mut u32, words: usize) -> Result<&'a mut [u32], Refusal> {
    if words < state.parameters.n() {
        return Err(Refusal(ARGUMENT));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice_mut(pointer, state.parameters.n()) }?)
}

/// Fills the caller's memory with a client of these parameters, and draws its randomness.
///
/// # Safety
/// Pointers are null or valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_init(
    bare: *mut Bare,
    parameters: *const u8,
    length: usize,
    flags: u32,
    entropy: Entropy,
    context: *mut c_void,
) -> c_int {
    done((|| {
        if bare.is_null() || flags & !INSECURE_FLAG != 0 {
            return Err(Refusal(ARGUMENT));
        }
        // SAFETY: the caller's promise.
        let parameters = ClientParameters::from_bytes(unsafe { slice(parameters, length) }?)?;
        if parameters.security() != Security::Classical128 && flags & INSECURE_FLAG == 0 {
            return Err(Refusal(PARAMETERS));
        }
        let engine = SmallWords::new(parameters.log_n(), parameters.modulus().value())?;
        let rng = pointers::entropy_of(entropy, context)?.generator()?;
        let state =
            State { live: AtomicU32::new(LIVE), busy: AtomicBool::new(false), parameters, engine, rng };
        // SAFETY: not null, valid by the caller's promise, and large and aligned enough by the assertion above.
        unsafe { bare.cast::<State>().write(state) };
        Ok(())
    })())
}

/// Wipes a client. Null and zeroed memory are allowed.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_wipe(bare: *mut Bare) {
    // SAFETY: the caller's promise.
    let Some(state) = (unsafe { shared(bare) }) else { return };
    if state.busy.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: it is live and nobody uses it; afterwards the memory is only bytes.
    unsafe {
        ptr::drop_in_place(bare.cast::<State>());
        (*bare).bytes.zeroize();
    }
}

/// Most numbers in a ciphertext; 0 without a client.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_capacity(bare: *const Bare) -> usize {
    // SAFETY: the caller's promise.
    unsafe { shared(bare) }.map_or(0, |state| state.parameters.capacity())
}

/// Bits of a number after the point; 0 without a client.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_fraction_bits(bare: *const Bare) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { shared(bare) }.map_or(0, |state| state.parameters.fixed_point().fraction_bits())
}

/// Words of a polynomial; 0 without a client.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_words(bare: *const Bare) -> usize {
    // SAFETY: the caller's promise.
    unsafe { shared(bare) }.map_or(0, |state| state.parameters.n())
}

/// Bytes of a secret; 0 without a client.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_secret_bytes(bare: *const Bare) -> usize {
    // SAFETY: the caller's promise.
    unsafe { shared(bare) }.map_or(0, |state| secret_bytes(state.parameters.log_n()))
}

/// Draws a secret into the caller's memory.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_new_secret(bare: *mut Bare, secret: *mut u8, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        alone(bare, |state| Ok(sample_secret(&state.parameters, &mut state.rng, slice_mut(secret, length)?)?))
    }
}

/// Writes a secret as an object.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_write_secret(
    bare: *mut Bare,
    secret: *const u8,
    length: usize,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        alone(bare, |state| {
            let secret = slice(secret, length)?;
            Ok(write_secret(&state.parameters, secret, &mut pointers::sink_of(sink, context)?)?)
        })
    }
}

/// Writes a new public key of a secret.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_public_key(
    bare: *mut Bare,
    secret: *const u8,
    length: usize,
    first: *mut u32,
    second: *mut u32,
    words: usize,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        alone(bare, |state| {
            let (mask, b) = (polynomial(state, first, words)?, polynomial(state, second, words)?);
            let secret = slice(secret, length)?;
            let mut sink = pointers::sink_of(sink, context)?;
            let result = expand_secret(&state.engine, secret, mask)
                .and_then(|()| make_public_key(&state.engine, mask, &mut state.rng, b));
            mask.zeroize();
            let key = KeyIdentity::of_packed(secret, state.parameters.literal().secret);
            Ok(write_public_key(&state.parameters, key, &result?, b, &mut sink)?)
        })
    }
}

/// Encrypts with a secret.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_encrypt(
    bare: *mut Bare,
    secret: *const u8,
    length: usize,
    numbers: *const i64,
    count: usize,
    compact: *const Compact,
    first: *mut u32,
    second: *mut u32,
    words: usize,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        alone(bare, |state| {
            let (mask, limb) = (polynomial(state, first, words)?, polynomial(state, second, words)?);
            let (secret, numbers) = (slice(secret, length)?, slice(numbers, count)?);
            let mut sink = pointers::sink_of(sink, context)?;
            let key = KeyIdentity::of_packed(secret, state.parameters.literal().secret);
            let State { engine, parameters, rng, .. } = state;
            let result = expand_secret(engine, secret, mask).and_then(|()| {
                encrypt_symmetric(engine, parameters, mask, key, numbers, form(compact), rng, limb, &mut sink)
            });
            mask.zeroize();
            Ok(result?)
        })
    }
}

/// Encrypts with a public key, which is read where it is.
///
/// # Safety
/// As [`kw_bare_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_bare_encrypt_public(
    bare: *mut Bare,
    public_key: *const u8,
    length: usize,
    numbers: *const i64,
    count: usize,
    compact: *const Compact,
    first: *mut u32,
    second: *mut u32,
    words: usize,
    sink: Sink,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        alone(bare, |state| {
            let (mask, limb) = (polynomial(state, first, words)?, polynomial(state, second, words)?);
            let key = PublicKey::read(&state.parameters, slice(public_key, length)?)?;
            let numbers = slice(numbers, count)?;
            let mut sink = pointers::sink_of(sink, context)?;
            let State { engine, parameters, rng, .. } = state;
            Ok(encrypt(engine, parameters, &key, numbers, form(compact), rng, mask, limb, &mut sink)?)
        })
    }
}
