//! A program in C on a Cortex-M4: it makes every object of `vectors/client.txt` that fits its words through the C
//! interface, in memory of its own, and compares it. Allocations are refused, as in every program here.
//!
//! `cargo run --release --features c --bin known_c` in this folder runs it in QEMU.
#![no_std]
#![no_main]

use core::ffi::c_int;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use keywright_capi_bare as _;
use keywright_client::SinkError;
use keywright_cortex_m4::Line;

unsafe extern "C" {
    /// crates/capi-bare/examples/known.c
    fn known_answers(
        parameters: *const u8,
        length: usize,
        fraction_bits: u32,
        answers: *const [u64; 2],
    ) -> c_int;
}

#[entry]
fn main() -> ! {
    let mut compared = 0;
    for text in include_str!("../../../../vectors/client.txt").lines() {
        let line = Line::parse(text);
        if line.fields[1] >> 30 != 0 {
            continue;
        }
        let (mut bytes, mut length) = ([0; 512], 0);
        let mut sink = |part: &[u8]| -> Result<(), SinkError> {
            bytes[length..length + part.len()].copy_from_slice(part);
            length += part.len();
            Ok(())
        };
        match line.parameters().and_then(|parameters| parameters.write_to(&mut sink)) {
            Ok(()) => {}
            Err(error) => panic!("{error}"),
        }
        let answers: [[u64; 2]; 6] = core::array::from_fn(|index| line.object(index).into());
        // SAFETY: the pointers are valid for the length and for six answers.
        let step = unsafe { known_answers(bytes.as_ptr(), length, line.fields[3] as u32, answers.as_ptr()) };
        assert!(step == 0, "N = 2^{}: step {step} of known.c fails", line.fields[0]);
        compared += answers.len();
        hprintln!("N = 2^{}: {} objects through the C interface", line.fields[0], answers.len());
    }
    assert!(compared > 0, "no vectors of 30 bits");
    hprintln!("{} objects made in C are those of vectors/client.txt; nothing was allocated", compared);
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
