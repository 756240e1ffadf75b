//! Keys: their descriptions ([`KeySpec`]), secrets and the keys made from them, sets of keys, and routes through a set.

mod generator;
mod outline;
mod public;
mod ring_secrets;
mod route;
mod row;
mod secret;
mod sequence;
mod set;
mod spec;
mod stored;
mod switching;

pub use generator::KeyGenerator;
pub use public::{PUBLIC_KEY_STREAM, PublicKey};
pub use route::{Hop, KeyRoutes, Route};
pub use row::KeyRow;
pub use secret::{SecretDistribution, SecretKey};
pub use sequence::{KeySequence, SwitchingKeys};
pub use set::{EvaluationKeys, KeyUse, ServedHop};
pub use spec::{KeyElement, KeySpec};
pub use stored::{KeyLayout, KeySource, LoadedKey, StoredKey};
pub use switching::{SwitchingKey, UniformPart, stream_id};
