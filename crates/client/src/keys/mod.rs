//! A client's keys: the secret, the public key, and switching keys as a stream of bytes.

pub(crate) mod key;
mod key_set_stream;
mod key_stream;
mod randomness_derivation;
mod secrets;

pub use key::{
    Half, PublicKey, expand_secret, make_public_key, read_secret, sample_secret, secret_bytes,
    write_public_key, write_secret,
};
pub use key_set_stream::KeySetStream;
pub use key_stream::{KeyStream, Progress};
