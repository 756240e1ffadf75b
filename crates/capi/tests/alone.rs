//! Two concurrent calls would draw the same randomness, so the second one is refused.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};

use keywright_capi::{
    Handle, kw_client_capacity, kw_client_encrypt, kw_client_free, kw_client_generate, kw_last_error,
};
use keywright_client::{Client, ClientLiteral, ClientParameters, Layout};
use keywright_rlwe::SecretDistribution;

const ARGUMENT: c_int = -1;

/// A client, and the results of calls from within a sink.
struct Within {
    client: *mut Handle<Client>,
    codes: Vec<c_int>,
    capacity: usize,
}

unsafe extern "C" fn again(context: *mut c_void, _: *const u8, _: usize) -> c_int {
    // SAFETY: the test passes one, and reads it after the call.
    let within = unsafe { &mut *context.cast::<Within>() };
    // SAFETY: the client lives.
    within.capacity = unsafe { kw_client_capacity(within.client) };
    // SAFETY: the client lives, and there are no numbers.
    within
        .codes
        .push(unsafe { kw_client_encrypt(within.client, null(), 0, null(), Some(ignore), null_mut()) });
    // SAFETY: a text that lives until the next call.
    let said = unsafe { CStr::from_ptr(kw_last_error()) };
    c_int::from(!said.to_string_lossy().contains("in another call"))
}

unsafe extern "C" fn ignore(_: *mut c_void, _: *const u8, _: usize) -> c_int {
    0
}

#[test]
fn a_call_within_a_call_is_refused_and_ends_with_it() {
    let mut identity = [0; 20];
    identity[0] = 12;
    let parameters = ClientParameters::new(ClientLiteral {
        log_n: 12,
        modulus: (1 << 60) - (1 << 18) + 1,
        secret: SecretDistribution::Ternary,
        scale: 1 << 54,
        fraction_bits: 30,
        max: 1 << 30,
        layout: Layout::Coefficients,
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })
    .unwrap();
    let mut bytes = Vec::new();
    parameters.write_to(&mut bytes).unwrap();
    let mut client = null_mut();
    // SAFETY: pointers of this function.
    let made = unsafe { kw_client_generate(bytes.as_ptr(), bytes.len(), None, null_mut(), &mut client) };
    assert_eq!(made, 0);
    let mut within = Within { client, codes: Vec::new(), capacity: 0 };
    let context = (&raw mut within).cast();
    // SAFETY: the client lives, and so does the context.
    assert_eq!(unsafe { kw_client_encrypt(client, null(), 0, null(), Some(again), context) }, 0);
    assert!(!within.codes.is_empty() && within.codes.iter().all(|&code| code == ARGUMENT));
    assert_eq!(within.capacity, 1 << 12);
    // SAFETY: as before.
    assert_eq!(unsafe { kw_client_encrypt(client, null(), 0, null(), Some(ignore), null_mut()) }, 0);
    // SAFETY: it is not used again.
    unsafe { kw_client_free(client) };
}
