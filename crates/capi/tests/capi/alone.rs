//! Two concurrent calls would draw the same randomness, so the second one is refused.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};

use keywright_capi::{
    Handle, kw_client_capacity, kw_client_encrypt, kw_client_free, kw_client_generate, kw_last_error,
};
use keywright_capi_bare::ARGUMENT;
use keywright_client::{Client, Layout};

use crate::client_parameters;

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
    let bytes = client_parameters(Layout::Coefficients);
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

/// A client of a server that chooses parameters and keys.
mod server_chosen {
    use keywright_capi::{
        Limits, kw_client_decrypt, kw_client_from_secret, kw_client_keys, kw_client_secret, kw_encryptor_new,
    };
    use keywright_capi_bare::{FORMAT, PARAMETERS};
    use keywright_ckks::{CkksLiteral, CkksParameters};
    use keywright_ring::rotation_element;
    use keywright_rlwe::{KeyElement, KeySpec};
    use keywright_thin_server as server;
    use keywright_wire::{KeySetReader, KeySetWriter, Wire};

    use super::*;

    fn last() -> String {
        // SAFETY: a text that lives until the next call.
        unsafe { CStr::from_ptr(kw_last_error()) }.to_string_lossy().into_owned()
    }

    unsafe extern "C" fn collect(context: *mut c_void, bytes: *const u8, length: usize) -> c_int {
        // SAFETY: the test passes a vector, and the library bytes that live during the call.
        unsafe { (*context.cast::<Vec<u8>>()).extend(std::slice::from_raw_parts(bytes, length)) };
        0
    }

    #[test]
    fn keys_and_numbers_pass_between_a_client_and_a_server_within_what_the_caller_accepts() {
        let literal = CkksLiteral::from_bits(10, &[50, 40, 40], &[50], 40.0).unwrap().insecure();
        let full = CkksParameters::new(literal.clone()).unwrap();
        let element = KeyElement::Galois(rotation_element(10, 3));
        let specs = [KeySpec::new(full.rlwe(), element, 2, 1, true)];
        let mut head = Vec::new();
        drop(KeySetWriter::new(&mut head, &specs, full.rlwe()).unwrap());
        let mut thin = Vec::new();
        let offered = server::parameters_at(&full, 1 << 40, 24, Layout::Coefficients).unwrap();
        offered.write_to(&mut thin).unwrap();
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
            let mut set = Vec::new();
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
                    Some(collect),
                    (&raw mut set).cast(),
                )
            };
            (code, set)
        };
        let (code, set) = keys(null());
        let made: Result<Vec<_>, _> = KeySetReader::new(&set[..], full.rlwe()).unwrap().collect();
        assert!(code == 0 && made.unwrap().iter().map(|key| key.spec()).eq(&specs));
        let size = set.len();
        let exact = Limits { key_bytes: size as u64, key_count: 1 };
        let (code, again) = keys(&exact);
        assert_eq!((code, again.len()), (0, size));
        for (limits, what) in [
            (Limits { key_bytes: size as u64 - 1, ..exact }, format!("{size} bytes of keys")),
            (Limits { key_count: 0, ..exact }, "1 keys".into()),
        ] {
            assert_eq!(keys(&limits), (PARAMETERS, Vec::new()));
            assert!(last().contains(&what) && last().contains("kw_limits"), "{}", last());
        }

        // A server that computes nothing sends back what it received: numbers with all their bits.
        let (numbers, dropped) = ([9 << 20, -200, 0, 13], [0u32; 2]);
        let compact = (&raw const dropped).cast();
        let (mut sent, mut answer, mut secret) = (Vec::new(), Vec::new(), Vec::new());
        let out = (&raw mut sent).cast();
        // SAFETY: the client lives, and so do the numbers and the vector.
        let code = unsafe { kw_client_encrypt(client, numbers.as_ptr(), 4, compact, Some(collect), out) };
        assert_eq!(code, 0);
        let received = server::read_upload(&sent, &full, &offered).unwrap();
        server::write_answer(&received, offered.layout(), [9, 3], &mut answer).unwrap();
        let decrypt = |client, length| {
            let mut back = [0; 4];
            // SAFETY: the client lives, and so do the answer and the numbers.
            let code = unsafe { kw_client_decrypt(client, answer.as_ptr(), length, back.as_mut_ptr(), 4) };
            (code, back)
        };
        // The error is below half a unit.
        assert_eq!(decrypt(client, answer.len()), (0, numbers));
        assert_eq!(decrypt(client, answer.len() - 1).0, FORMAT);
        let (_, stranger) = make(1);
        assert_ne!(decrypt(stranger, answer.len()).0, 0);
        // SAFETY: the client lives, and so does the vector.
        assert_eq!(unsafe { kw_client_secret(client, Some(collect), (&raw mut secret).cast()) }, 0);
        let mut restored = null_mut();
        let (bytes, length) = (secret.as_ptr(), secret.len());
        // SAFETY: pointers of this function.
        let code = unsafe {
            kw_client_from_secret(
                thin.as_ptr(),
                thin.len(),
                1,
                bytes,
                length,
                None,
                null_mut(),
                &mut restored,
            )
        };
        assert_eq!((code, decrypt(restored, answer.len())), (0, (0, numbers)));
        for client in [client, stranger, restored] {
            // SAFETY: it is not used again.
            unsafe { kw_client_free(client) };
        }
    }
}
