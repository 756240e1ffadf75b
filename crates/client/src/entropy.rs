use keywright_ring::{Process, sampling::SecretRng};
use zeroize::Zeroizing;

use crate::ClientError;

/// The platform's randomness: a hardware generator, a browser, an operating system.
pub trait Entropy {
    /// Fills a slice with independent uniform bytes.
    ///
    /// # Errors
    /// [`ClientError::Randomness`] if it fails.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), ClientError>;

    /// A generator of secrets from 32 bytes of the platform. A forked child cannot use its parent's generator: it must
    /// make its own.
    ///
    /// # Errors
    /// [`ClientError::Randomness`] if the platform provides none, or if all bytes are equal: a working generator
    /// returns such bytes with probability `2^-248`, and a missing one always does.
    fn generator(&mut self) -> Result<SecretRng, ClientError> {
        let mut bytes = Zeroizing::new([0; 32]);
        let process = Process::current();
        self.fill(&mut *bytes)?;
        if !process.is_current() {
            return Err(ClientError::Randomness(
                "the platform's function forked, and its parent has the same bytes",
            ));
        }
        if bytes.iter().all(|&byte| byte == bytes[0]) {
            return Err(ClientError::Randomness("32 equal bytes are not random"));
        }
        Ok(SecretRng::from_entropy(&bytes))
    }
}

impl<F: FnMut(&mut [u8]) -> Result<(), ClientError>> Entropy for F {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), ClientError> {
        self(out)
    }
}

/// The operating system's randomness. Its generators reseed themselves in a forked child.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

#[cfg(feature = "std")]
impl Entropy for SystemEntropy {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), ClientError> {
        self.generator()?.fill_bytes(out);
        Ok(())
    }

    fn generator(&mut self) -> Result<SecretRng, ClientError> {
        SecretRng::system()
            .map_err(|_| ClientError::Randomness("the operating system returned no random bytes"))
    }
}
