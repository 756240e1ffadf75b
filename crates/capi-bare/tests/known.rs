//! The C interface on this machine: every object of `vectors/client.txt` with a prime of 30 bits, no allocation.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use keywright_capi_bare as bare;

#[path = "../../client/tests/client/line.rs"]
mod line;

/// Counts what a thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a sink has received.
struct Receiver {
    bytes: Vec<u8>,
    checksum: crc32fast::Hasher,
}

impl Receiver {
    fn new() -> Self {
        Self { bytes: Vec::with_capacity(1 << 19), checksum: crc32fast::Hasher::new() }
    }

    /// Whether it is the known object; and starts again.
    fn is(&mut self, [length, checksum]: [u64; 2]) -> bool {
        let checksums = std::mem::take(&mut self.checksum);
        let same = (self.bytes.len() as u64, u64::from(checksums.finalize())) == (length, checksum);
        self.bytes.clear();
        same
    }
}

unsafe extern "C" fn receive(context: *mut c_void, bytes: *const u8, length: usize) -> c_int {
    // SAFETY: the test passes a receiver, and the library its bytes.
    let (receiver, bytes) =
        unsafe { (&mut *context.cast::<Receiver>(), slice::from_raw_parts(bytes, length)) };
    receiver.bytes.extend_from_slice(bytes);
    receiver.checksum.update(bytes);
    0
}

unsafe extern "C" fn counting(context: *mut c_void, bytes: *mut u8, length: usize) -> c_int {
    // SAFETY: the test passes a byte, and the library its memory.
    let (next, bytes) = unsafe { (&mut *context.cast::<u8>(), slice::from_raw_parts_mut(bytes, length)) };
    for byte in bytes {
        *byte = *next;
        *next = next.wrapping_add(1);
    }
    0
}

#[test]
fn makes_the_known_objects_and_allocates_nothing() {
    let mut seen = 0;
    for f in line::lines().into_iter().filter(|f| f[1] >> 30 == 0) {
        let mut parameters = Vec::new();
        line::parameters(&f).write_to(&mut parameters).unwrap();
        let mut known = f[6..].chunks(2).map(|pair| [pair[0], pair[1]]);
        let mut owner = Box::new([0u64; 1024]);
        let client = owner.as_mut_ptr().cast::<bare::Bare>();
        let (mut to, mut next) = (Receiver::new(), 1u8);
        let n = 1usize << f[0];
        let (mut secret, mut first, mut second) = (vec![0u8; n / 4], vec![0u32; n], vec![0u32; n]);
        let max = 1i64 << f[3];
        let (entropy, sink): (bare::Entropy, bare::Sink) = (Some(counting), Some(receive));
        let mut numbers = vec![0i64; n];
        let context = ptr::from_mut(&mut to).cast::<c_void>();
        let state = ptr::from_mut(&mut next).cast::<c_void>();
        // Where another crate of the build needs the standard library, the ring's first use reads the environment.
        // SAFETY: as below.
        unsafe {
            bare::kw_bare_init(client, parameters.as_ptr(), parameters.len(), 1, entropy, state);
            bare::kw_bare_wipe(client);
            *state.cast::<u8>() = 1;
        }
        let before = ALLOCATIONS.with(Cell::get);
        // SAFETY: every pointer is valid for the length passed with it, and `client` is zeroed.
        unsafe {
            // They claim no security.
            let code = bare::kw_bare_init(client, parameters.as_ptr(), parameters.len(), 0, entropy, state);
            assert_eq!(code, bare::PARAMETERS);
            *state.cast::<u8>() = 1;
            bare::kw_bare_wipe(client);
            assert_eq!(bare::kw_bare_capacity(client), 0);
            assert_eq!(
                bare::kw_bare_init(client, parameters.as_ptr(), parameters.len(), 1, entropy, state),
                bare::OK
            );
            assert_eq!(bare::kw_bare_fraction_bits(client), f[3] as u32);
            assert_eq!((bare::kw_bare_words(client), bare::kw_bare_secret_bytes(client)), (n, n / 4));
            let count = bare::kw_bare_capacity(client);
            for (i, number) in numbers[..count].iter_mut().enumerate() {
                *number = 7919 * i as i64 % (2 * max + 1) - max;
            }
            let (s, length, x, y) = (secret.as_mut_ptr(), n / 4, first.as_mut_ptr(), second.as_mut_ptr());
            assert_eq!(bare::kw_bare_new_secret(client, s, length), bare::OK);
            assert_eq!(bare::kw_bare_write_secret(client, s, length, sink, context), bare::OK);
            assert!(to.is(known.next().unwrap()));
            assert_eq!(bare::kw_bare_public_key(client, s, length, x, y, n, sink, context), bare::OK);
            assert!(to.is(known.next().unwrap()));
            let (whole, values) = (ptr::null(), numbers.as_ptr());
            let code = bare::kw_bare_encrypt(client, s, length, values, count, whole, x, y, n, sink, context);
            assert_eq!(code, bare::OK);
            assert!(to.is(known.next().unwrap()));
            let code = bare::kw_bare_encrypt(client, s, length, values, count, whole, x, y, n, None, context);
            assert_eq!(code, bare::ARGUMENT);
            bare::kw_bare_wipe(client);
        }
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "something was allocated");
        assert_eq!(*owner, [0; 1024]);
        seen += 1;
    }
    assert!(seen > 1, "no vectors of 30 bits");
}

/// The header declares the functions, and the memory is as large as it says.
#[test]
fn the_header_has_every_function() {
    let header = include_str!("../include/keywright_bare.h");
    let source = include_str!("../src/lib.rs");
    assert_eq!(size_of::<bare::Bare>(), 8192);
    assert!(header.contains("#define KW_BARE_BYTES 8192"));
    let exported = source.split("extern \"C\" fn ").skip(1).map(|text| text.split('(').next().unwrap());
    for name in exported {
        assert!(header.contains(&format!(" {name}(")), "the header lacks {name}");
    }
}
