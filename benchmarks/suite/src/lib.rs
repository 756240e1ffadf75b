//! What `keywright bench` measures: each work on real keys and ciphertexts, its result decrypted and compared, its time
//! beside the limit that the machine's own rates set.

mod bootstrap;
mod client_modes;
mod derived;
mod key_design;
mod limit;
mod record;
mod relinearization;
mod set;
mod switches;
mod thin_encrypt;
mod video;
mod works;

pub use bootstrap::{BootstrapRequest, Event, bootstrap_names, run_bootstrap};
pub use client_modes::{ModeRecord, ModesRequest, run_client_modes};
pub use derived::{DerivedRecord, DerivedRequest, run_derived, spread_rotations};
pub use key_design::{DesignRecord, DesignRequest, Timing, most_special, run_design};
pub use limit::{Machine, Operations};
pub use record::{BootstrapFigures, Record};
pub use relinearization::{RelinearizationRecord, RelinearizationRequest, run_relinearization};
pub use set::{BenchSet, SETS};
pub use switches::{SwitchRecord, run_switches};
pub use thin_encrypt::run_thin_encrypt;
pub use video::{VideoRecord, VideoRequest, run_video};
pub use works::{BenchError, Request, WORKS, run};
