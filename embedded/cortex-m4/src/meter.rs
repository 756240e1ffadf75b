//! Instructions since the start, from the system timer: with `-icount shift=0` an instruction is a nanosecond of the
//! emulated clock, and the timer of the board counts at 25 MHz, so one tick is 40 instructions.

use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::Peripherals;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;

const INSTRUCTIONS_PER_TICK: u64 = 1_000_000_000 / 25_000_000;
const RELOAD: u32 = 0x00FF_FFFF;

static WRAPS: AtomicU32 = AtomicU32::new(0);

/// Starts the timer.
pub fn start() {
    let Some(peripherals) = Peripherals::take() else { panic!("the timer is started once") };
    let mut timer = peripherals.SYST;
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(RELOAD);
    timer.clear_current();
    timer.enable_interrupt();
    timer.enable_counter();
}

#[exception]
fn SysTick() {
    WRAPS.fetch_add(1, Ordering::SeqCst);
}

/// Instructions since the start, to 40.
pub fn instructions() -> u64 {
    loop {
        let wraps = WRAPS.load(Ordering::SeqCst);
        let ticks = RELOAD - SYST::get_current();
        if wraps == WRAPS.load(Ordering::SeqCst) {
            let all = u64::from(wraps) * (u64::from(RELOAD) + 1) + u64::from(ticks);
            return all * INSTRUCTIONS_PER_TICK;
        }
    }
}
