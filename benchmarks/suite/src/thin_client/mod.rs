//! Measurements of thin clients: encryption, the switches that make ciphertexts smaller, and frames of a camera.

pub(crate) mod client_modes;
pub(crate) mod encryption;
pub(crate) mod switches;
pub(crate) mod video;
