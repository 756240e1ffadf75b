//! Keys: secrets and the keys made from them, sets of keys, and routes through a set.

mod generator;
mod public;
mod secrets;
mod sequence;
mod sets;
mod switching_keys;

pub use generator::KeyGenerator;
pub use public::{PUBLIC_KEY_STREAM, PublicKey};
pub use secrets::secret::SecretKey;
pub use sequence::{KeySequence, SwitchingKeys};
pub use sets::route::{Hop, KeyRoutes, Route};
pub use sets::set::{EvaluationKeys, KeyUse, ServedHop};
pub use switching_keys::key::{SwitchingKey, UniformPart, stream_id};
pub use switching_keys::layout::KeyLayout;
pub use switching_keys::row::KeyRow;
pub use switching_keys::stored::{KeySource, LoadedKey, StoredKey};
