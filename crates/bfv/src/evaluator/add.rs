use super::Evaluator;
use crate::{BfvError, Ciphertext, Plaintext};

/// The sign of the second operand.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
}

impl Evaluator<'_> {
    /// `a + b`.
    ///
    /// # Errors
    /// [`BfvError::LevelMismatch`], [`BfvError::PackingMismatch`], [`BfvError::NoiseExhausted`], mixed parameters.
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, BfvError> {
        let mut out = a.clone();
        self.add_assign(&mut out, b)?;
        Ok(out)
    }

    /// `a - b`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, BfvError> {
        let mut out = a.clone();
        self.sub_assign(&mut out, b)?;
        Ok(out)
    }

    /// `a += b`.
    ///
    /// # Errors
    /// As [`Self::add`]; `a` is then unchanged.
    pub fn add_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), BfvError> {
        self.sum_assign(a, b, Sign::Plus)
    }

    /// `a -= b`.
    ///
    /// # Errors
    /// As [`Self::add`]; `a` is then unchanged.
    pub fn sub_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), BfvError> {
        self.sum_assign(a, b, Sign::Minus)
    }

    /// `-a`.
    ///
    /// # Errors
    /// Mixed parameters.
    pub fn neg(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.require(a)?;
        let mut out = a.clone();
        out.rlwe.neg_assign(self.parameters.rlwe());
        Ok(out)
    }

    /// `a + p`: adds only the rounding of the scaled plaintext to the noise. A constant plaintext needs no transform.
    ///
    /// # Errors
    /// [`BfvError::PackingMismatch`], [`BfvError::NoiseExhausted`], mixed parameters.
    pub fn add_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, BfvError> {
        self.sum_plain(a, p, Sign::Plus)
    }

    /// `a - p`.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn sub_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, BfvError> {
        self.sum_plain(a, p, Sign::Minus)
    }

    fn sum_assign(&self, a: &mut Ciphertext, b: &Ciphertext, sign: Sign) -> Result<(), BfvError> {
        self.require_pair(a, b)?;
        let operation = if sign == Sign::Plus { "add" } else { "sub" };
        let estimate = a.estimate.plus(b.estimate).checked(operation)?;
        match sign {
            Sign::Plus => a.rlwe.add_assign(&b.rlwe, self.parameters.rlwe()),
            Sign::Minus => a.rlwe.sub_assign(&b.rlwe, self.parameters.rlwe()),
        }
        a.estimate = estimate;
        Ok(())
    }

    fn sum_plain(&self, a: &Ciphertext, p: &Plaintext, sign: Sign) -> Result<Ciphertext, BfvError> {
        self.require_plain(a, p)?;
        // The rounding of Q m / t, at most 1/2. It is a public constant, not random, and the same one may be added
        // often.
        let estimate = a.estimate.plus(crate::NoiseEstimate::fresh(&self.parameters, a.level(), 1.0 / 6.0));
        let mut out =
            a.with(if sign == Sign::Plus { "add_plain" } else { "sub_plain" }, a.rlwe.clone(), estimate)?;
        if let Some(c0) = out.rlwe.polys.first_mut() {
            match sign {
                Sign::Plus => p.add_scaled_to(c0),
                Sign::Minus => p.subtract_scaled_from(c0),
            }
        }
        Ok(out)
    }
}
