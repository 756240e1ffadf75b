use crate::CkksError;

/// A declared magnitude: the largest absolute value that a message may have. Its owner states it before the message is
/// seen, so that a ciphertext says the same of every message.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Magnitude(f64);

impl Magnitude {
    /// A declaration.
    ///
    /// # Errors
    /// [`CkksError::Magnitude`] if it is not a positive finite number.
    pub fn new(magnitude: f64) -> Result<Self, CkksError> {
        if magnitude.is_normal() && magnitude > 0.0 {
            Ok(Self(magnitude))
        } else {
            Err(CkksError::Magnitude(magnitude))
        }
    }

    /// A power of two from 1 on.
    pub(crate) fn of(power: f64) -> Self {
        debug_assert!(power >= 1.0 && power.is_finite());
        Self(power)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Refuses a message with this largest absolute value.
    ///
    /// # Errors
    /// [`CkksError::AboveMagnitude`].
    pub fn require(self, largest: f64) -> Result<(), CkksError> {
        if largest <= self.0 {
            Ok(())
        } else {
            Err(CkksError::AboveMagnitude { value: largest, magnitude: self.0 })
        }
    }
}
