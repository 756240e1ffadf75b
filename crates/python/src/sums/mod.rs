//! Sums of encrypted vectors: one shared key, or one of a threshold of parties.

pub(crate) mod encrypted;
pub(crate) mod key;
pub(crate) mod parameters;
pub(crate) mod threshold_key;
pub(crate) mod threshold_parameters;
pub(crate) mod threshold_party;
