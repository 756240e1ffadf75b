//! Keys of every stage: their digits and levels, and the source of a streamed stage's keys.

mod design;
mod quiet;
mod stage_keys;

pub use design::{DigitRule, KeyDesign, KeyLevels};
pub(crate) use quiet::quiet_key;
pub use stage_keys::StageKeys;
