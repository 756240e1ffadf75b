//! Secret, public and switching keys of either scheme, and their descriptions.

pub(crate) mod derivations;
pub(crate) mod descriptions;
pub(crate) mod evaluation_keys;
pub(crate) mod generator;
pub(crate) mod master_keys;
mod progress;
pub(crate) mod public_key;
pub(crate) mod secret_key;
pub(crate) mod set_head;
pub(crate) mod switching_key;
