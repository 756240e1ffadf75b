//! The measurements of `keywright bench`: each operation on real keys and ciphertexts, with its result decrypted and
//! compared, and its time next to the limit that the machine's own rates set.

mod bootstrap;
mod limit;
pub mod measuring;
mod record;
mod set;
mod works;

pub use bootstrap::{BootstrapRequest, Event, bootstrap_names, bootstrap_parameters, run_bootstrap};
pub use limit::{KernelCounts, MachineRates};
pub use record::{BootstrapFigures, Record};
pub use set::{BenchSet, NTT_LOG_Q, SETS};
pub use works::{BenchError, Request, WORKS, run};
