//! What the studies in `benchmarks/` measure in addition to the works of `keywright bench`. `bin/` has a program for
//! each.

mod coefficient_convolution;
mod coefficient_network;
mod derived;
mod error;
mod key_design;
mod packing_keys;
mod relinearization;
mod thin_client;

pub use coefficient_convolution::{ConvolutionRecord, ConvolutionRequest, run_convolution};
pub use coefficient_network::{NetworkLayer, NetworkRecord, NetworkRequest, Step, Turn, run_network};
pub use derived::{DerivedRecord, DerivedRequest, run_derived, spread_rotations};
pub use error::StudyError;
pub use key_design::{DesignRecord, DesignRequest, Timing, most_special, run_design};
pub use packing_keys::{KeyLine, PackingKeys, parsed};
pub use relinearization::{RelinearizationRecord, RelinearizationRequest, run_relinearization};
pub use thin_client::client_modes::{ModeRecord, ModesRequest, run_client_modes};
pub use thin_client::encryption::run_thin_encrypt;
pub use thin_client::switches::{SwitchRecord, run_switches};
pub use thin_client::video::{VideoRecord, VideoRequest, run_video};
