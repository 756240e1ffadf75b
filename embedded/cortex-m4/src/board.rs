use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

use cortex_m_semihosting::{debug, hprintln};

/// Refuses every allocation: a request for memory fails loudly.
struct NoHeap;

// SAFETY: it never returns memory.
unsafe impl GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: NoHeap = NoHeap;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    hprintln!("{}", info);
    debug::exit(debug::EXIT_FAILURE);
    loop {}
}
