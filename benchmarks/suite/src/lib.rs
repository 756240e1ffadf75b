//! What the studies in `benchmarks/` measure in addition to the works of `keywright bench`. `bin/` has a program for
//! each.

mod client_modes;
mod coefficient_convolution;
mod derived;
mod error;
mod key_design;
mod relinearization;
mod switches;
mod thin_encrypt;
mod video;

pub use client_modes::{ModeRecord, ModesRequest, run_client_modes};
pub use coefficient_convolution::{ConvolutionRecord, ConvolutionRequest, run_convolution};
pub use derived::{DerivedRecord, DerivedRequest, run_derived, spread_rotations};
pub use error::StudyError;
pub use key_design::{DesignRecord, DesignRequest, Timing, most_special, run_design};
pub use relinearization::{RelinearizationRecord, RelinearizationRequest, run_relinearization};
pub use switches::{SwitchRecord, run_switches};
pub use thin_encrypt::run_thin_encrypt;
pub use video::{VideoRecord, VideoRequest, run_video};
