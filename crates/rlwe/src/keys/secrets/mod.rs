//! Secret keys.

pub(crate) mod distribution;
pub(crate) mod ring_secrets;
pub(crate) mod secret;
