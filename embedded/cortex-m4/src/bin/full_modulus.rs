//! The client of full modulus of [`full_modulus`] beside the thin one, and their transforms alone, on an emulated
//! Cortex-M4.
//!
//! `cargo run --release --bin full_modulus` in this folder runs it in QEMU, in a minute or two.
#![no_std]
#![no_main]

use cortex_m::peripheral::SCB;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use keywright_cortex_m4::full_modulus::{CHAINS, FullMemory, both, transforms};
use keywright_cortex_m4::meter;

/// Lets code hold doubles in the registers of the single-precision unit, as compilers do for this CPU. Software still
/// does all arithmetic on them.
fn enable_registers() {
    // SAFETY: nothing else runs yet, and the register has no other use.
    unsafe { (*SCB::PTR).cpacr.modify(|access| access | 0xF << 20) };
    cortex_m::asm::dsb();
    cortex_m::asm::isb();
}

#[entry]
fn main() -> ! {
    let Some(mut memory) = FullMemory::take() else { panic!("main runs once") };
    enable_registers();
    meter::start();
    hprintln!("| N | primes of 30 bits | full modulus, instructions | thin, instructions | ratio |");
    hprintln!("|---|---|---|---|---|");
    for (log_n, count) in CHAINS {
        match both(log_n, count, &mut memory) {
            Ok((full, thin)) => {
                hprintln!(
                    "| 2^{} | {} | {} | {} | {}.{} |",
                    log_n,
                    count,
                    full,
                    thin,
                    full / thin,
                    10 * full / thin % 10
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    hprintln!();
    hprintln!("| N | Fourier transform in doubles, instructions | number-theoretic transform | quotient |");
    hprintln!("|---|---|---|---|");
    for log_n in [12, 14, 16] {
        match transforms(log_n, &mut memory) {
            Ok((fourier, ntt)) => {
                hprintln!(
                    "| 2^{} | {} | {} | {}.{} |",
                    log_n,
                    fourier,
                    ntt,
                    fourier / ntt,
                    10 * fourier / ntt % 10
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
