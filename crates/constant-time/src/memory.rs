//! Requests to valgrind's memcheck. Memory is marked as undefined bit by bit, and so is everything computed from it. A
//! branch on an undefined value, or an address computed from one, is an error.
//!
//! A request is a sequence of instructions that does nothing outside of valgrind (`valgrind.h`, "client requests").

/// `VG_USERREQ__RUNNING_ON_VALGRIND`.
const RUNNING_ON_VALGRIND: usize = 0x1001;
/// `VG_USERREQ__MAKE_MEM_UNDEFINED` of memcheck.
const MAKE_UNDEFINED: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16 | 1;
/// `VG_USERREQ__MAKE_MEM_DEFINED` of memcheck.
const MAKE_DEFINED: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16 | 2;

#[cfg(target_arch = "x86_64")]
fn request(code: usize, address: usize, bytes: usize) -> usize {
    let arguments = [code, address, bytes, 0, 0, 0];
    let mut result = 0usize;
    // SAFETY: rotations of `rdi` by 128 in all and an exchange of `rbx` with itself change nothing. Valgrind reads the
    // arguments and writes `rdx`; its own record of memory does not change values.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") &raw const arguments,
            inout("rdx") result,
            options(nostack),
        );
    }
    std::hint::black_box(&arguments);
    std::mem::take(&mut result)
}

/// Valgrind cannot be asked on other processors.
#[cfg(not(target_arch = "x86_64"))]
fn request(_code: usize, _address: usize, _bytes: usize) -> usize {
    0
}

/// Whether valgrind runs this program.
pub(crate) fn is_watched() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) != 0
}

/// Marks values as secret.
pub(crate) fn make_secret<T: Copy>(values: &[T]) {
    request(MAKE_UNDEFINED, values.as_ptr().addr(), size_of_val(values));
}

/// Marks values as public.
pub(crate) fn make_public<T: Copy>(values: &[T]) {
    request(MAKE_DEFINED, values.as_ptr().addr(), size_of_val(values));
}
