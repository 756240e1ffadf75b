use keywright_client::{ClientError, Entropy, SystemEntropy};
use zeroize::Zeroizing;

/// The operating system's randomness, or the given bytes.
pub(crate) fn platform(entropy: Option<[u8; 32]>) -> Box<dyn Entropy> {
    let Some(bytes) = entropy.map(Zeroizing::new) else { return Box::new(SystemEntropy) };
    Box::new(move |out: &mut [u8]| -> Result<(), ClientError> {
        out.copy_from_slice(&bytes[..out.len()]);
        Ok(())
    })
}
