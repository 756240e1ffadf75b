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
    let code = unsafe { kw_client_generate(bytes.as_ptr(), bytes.len(), 0, None, null_mut(), &mut client) };
    assert_eq!(code, 0);
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

/// What a client accepts of a server that chooses parameters and keys.
mod demands {
    use keywright_capi::{Limits, kw_client_keys, kw_encryptor_new};
    use keywright_ckks::{CkksLiteral, CkksParameters};
    use keywright_ring::rotation_element;
    use keywright_rlwe::{KeyElement, KeySpec};
    use keywright_thin_server as server;
    use keywright_wire::{KeySetWriter, Wire};

    use super::*;

    const PARAMETERS: c_int = -5;

    fn last() -> String {
        // SAFETY: a text that lives until the next call.
        unsafe { CStr::from_ptr(kw_last_error()) }.to_string_lossy().into_owned()
    }

    unsafe extern "C" fn count(context: *mut c_void, _: *const u8, length: usize) -> c_int {
        // SAFETY: the test passes a counter.
        unsafe { *context.cast::<usize>() += length };
        0
    }

    #[test]
    fn parameters_and_keys_beyond_what_the_caller_accepts_are_refused() {
        let literal = CkksLiteral::from_bits(10, &[50, 40, 40], &[50], 40.0).unwrap().insecure();
        let full = CkksParameters::new(literal.clone()).unwrap();
        let element = KeyElement::Galois(rotation_element(10, 3));
        let specs = [KeySpec::new(full.rlwe(), element, 2, 1, true)];
        let mut head = Vec::new();
        drop(KeySetWriter::new(&mut head, &specs, full.rlwe()).unwrap());
        let mut thin = Vec::new();
        server::parameters_at(&full, 1 << 40, 24, Layout::Coefficients).unwrap().write_to(&mut thin).unwrap();
        let bytes = literal.to_bytes(&()).unwrap();
        let make = |flags| {
            let mut client = null_mut();
            // SAFETY: pointers of this function.
            let code = unsafe {
                kw_client_generate(thin.as_ptr(), thin.len(), flags, None, null_mut(), &mut client)
            };
            (code, client)
        };
        let (code, client) = make(0);
        assert!(
            code == PARAMETERS && client.is_null() && last().contains("less than 128 bits"),
            "{}",
            last()
        );
        assert_eq!(make(2).0, ARGUMENT);
        let mut encryptor = null_mut();
        // SAFETY: pointers of this function; the parameters are refused before the key is read.
        let code = unsafe {
            kw_encryptor_new(thin.as_ptr(), thin.len(), 0, null(), 0, None, null_mut(), &mut encryptor)
        };
        assert!(code == PARAMETERS && encryptor.is_null());

        let (code, client) = make(1);
        assert_eq!(code, 0);
        let keys = |limits: *const Limits| {
            let mut size = 0usize;
            // SAFETY: pointers of this function.
            let code = unsafe {
                kw_client_keys(
                    client,
                    bytes.as_ptr(),
                    bytes.len(),
                    head.as_ptr(),
                    head.len(),
                    limits,
                    None,
                    null_mut(),
                    Some(count),
                    (&raw mut size).cast(),
                )
            };
            (code, size)
        };
        let (code, size) = keys(null());
        assert!(code == 0 && size > 0);
        let exact = Limits { key_bytes: size as u64, key_count: 1 };
        assert_eq!(keys(&exact), (0, size));
        for (limits, what) in [
            (Limits { key_bytes: size as u64 - 1, ..exact }, format!("{size} bytes of keys")),
            (Limits { key_count: 0, ..exact }, "1 keys".into()),
        ] {
            assert_eq!(keys(&limits), (PARAMETERS, 0));
            assert!(last().contains(&what) && last().contains("kw_limits"), "{}", last());
        }
        // SAFETY: it is not used again.
        unsafe { kw_client_free(client) };
    }
}
