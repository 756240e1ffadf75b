//! Keys of every stage: their digits and levels, and where a streamed stage takes them from.

mod design;
mod stage_keys;

pub use design::{Digits, KeyDesign, KeyLevels};
pub use stage_keys::StageKeys;
