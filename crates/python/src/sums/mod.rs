//! Sums of encrypted vectors: one shared key, or one of a threshold of parties.

pub(crate) mod shared_key;
pub(crate) mod threshold;
