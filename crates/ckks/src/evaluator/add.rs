use keywright_rlwe::for_each_item;

use super::Evaluator;
use crate::{Ciphertext, CkksError, Plaintext};

/// The sign of the second operand.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
}

impl Evaluator<'_> {
    /// `a + b`, at the lower of the two levels.
    ///
    /// # Errors
    /// [`CkksError::ScaleMismatch`], [`CkksError::PackingMismatch`], mixed parameters.
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.sum(a, b, Sign::Plus)
    }

    /// `a - b`, at the lower of the two levels.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.sum(a, b, Sign::Minus)
    }

    /// `a += b`, at the lower of the two levels.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), CkksError> {
        self.sum_assign(a, b, Sign::Plus)
    }

    /// `-a`.
    ///
    /// # Errors
    /// Mixed parameters.
    pub fn neg(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        let mut out = a.clone();
        out.rlwe.neg_assign(self.parameters.rlwe());
        Ok(out)
    }

    /// `a + p`, at the lower of the two levels.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, CkksError> {
        self.sum_plain(a, p, Sign::Plus)
    }

    /// `a - p`, at the lower of the two levels.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, CkksError> {
        self.sum_plain(a, p, Sign::Minus)
    }

    fn sum(&self, a: &Ciphertext, b: &Ciphertext, sign: Sign) -> Result<Ciphertext, CkksError> {
        let level = a.level().min(b.level());
        let mut out = Ciphertext { rlwe: Self::lowered(&a.rlwe, level), ..a.clone_header() };
        self.sum_assign(&mut out, b, sign)?;
        Ok(out)
    }

    fn sum_assign(&self, a: &mut Ciphertext, b: &Ciphertext, sign: Sign) -> Result<(), CkksError> {
        self.require_pair(a, b)?;
        Self::require_scales(a.scale, b.scale)?;
        let level = a.level().min(b.level());
        if level < a.level() {
            a.rlwe = Self::lowered(&a.rlwe, level);
        }
        match sign {
            Sign::Plus => a.rlwe.add_assign(&b.rlwe, self.parameters.rlwe()),
            Sign::Minus => a.rlwe.sub_assign(&b.rlwe, self.parameters.rlwe()),
        }
        a.estimate = a.estimate.plus(b.estimate.misread(b.scale / a.scale));
        Ok(())
    }

    fn sum_plain(&self, a: &Ciphertext, p: &Plaintext, sign: Sign) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        self.require_plain(p)?;
        Self::require_packing(a, p.packing)?;
        Self::require_scales(a.scale, p.scale)?;
        let (ring, level) = (self.parameters.rlwe().ring(), a.level().min(p.level()));
        let mut out = Ciphertext { rlwe: Self::lowered(&a.rlwe, level), ..a.clone_header() };
        let limbs = out.rlwe.polys[0].limbs_mut().zip(p.poly.limbs()).collect();
        for_each_item(limbs, |i, (x, y): (&mut [u64], &[u64])| match sign {
            Sign::Plus => ring.backend().add_assign(ring.modulus(i), x, y),
            Sign::Minus => ring.backend().sub_assign(ring.modulus(i), x, y),
        });
        out.estimate = out.estimate.plus(p.estimate().misread(p.scale / a.scale));
        Ok(out)
    }
}
