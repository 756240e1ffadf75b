//! Secret keys.

pub(crate) mod ring_secrets;
pub(crate) mod secret;
