//! Measures the depth of the stack: fills the memory below it with a pattern, and counts how much of the pattern
//! remains.

use cortex_m::register::msp;

const PATTERN: u32 = 0xA5A5_5A5A;
/// Words left alone below the stack pointer, where `paint` itself may run.
const MARGIN: usize = 64;
/// Filled words: more than any step takes, which `peak` checks.
const DEPTH: usize = 64 * 1024;

fn bottom() -> *mut u32 {
    (msp::read() as usize - 4 * DEPTH) as *mut u32
}

/// Fills the memory below the stack.
#[inline(never)]
pub fn paint() {
    let bottom = bottom();
    for i in 0..DEPTH - MARGIN {
        // SAFETY: RAM ends above the stack, static memory far below it, and nothing else stands between them.
        unsafe { bottom.add(i).write_volatile(PATTERN) };
    }
}

/// Bytes that have been overwritten since.
#[inline(never)]
pub fn peak() -> usize {
    let bottom = bottom();
    // SAFETY: as above.
    let untouched = (0..DEPTH).take_while(|&i| unsafe { bottom.add(i).read_volatile() } == PATTERN).count();
    assert!(untouched > 0, "the stack is deeper than what was filled");
    4 * (DEPTH - untouched)
}
