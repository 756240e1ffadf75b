//! Multiplication, relinearisation and rescaling.

use keywright_ring::Buffer;
use keywright_rlwe::{Decomposed, Finish, KeyElement, RlweCiphertext, noise};

use super::Evaluator;
use crate::{Ciphertext, CkksError, Plaintext};

impl Evaluator<'_> {
    /// `a b`, relinearized and rescaled: one level less than the lower of the two. One division covers the special
    /// primes and the rescaling. Values in slots are multiplied one by one, values in coefficients as polynomials
    /// modulo `X^N + 1`.
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] at level 0, otherwise as [`Self::multiply_lazy`]; a missing key.
    pub fn multiply(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        self.require(b)?;
        if a.level().min(b.level()) == 0 {
            return Err(CkksError::LevelsExhausted { operation: "multiply", needed: 1, available: 0 });
        }
        self.relinearize_product(&self.multiply_lazy(a, b)?, true)
    }

    /// `a^2`, relinearized and rescaled. Two products instead of three.
    ///
    /// # Errors
    /// As [`Self::multiply`].
    pub fn square(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.multiply(a, a)
    }

    /// `a b` of degree 2, neither relinearized nor rescaled, so that a sum of products needs one key switch.
    ///
    /// # Errors
    /// [`CkksError::Degree`], [`CkksError::PackingMismatch`], [`CkksError::Scale`] if the product's scale does not fit
    /// the modulus, mixed parameters.
    pub fn multiply_lazy(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let key = self.require_pair(a, b)?;
        Self::require_degree_one("multiply", a)?;
        Self::require_degree_one("multiply", b)?;
        let (rlwe, level) = (self.parameters.rlwe(), a.level().min(b.level()));
        let scale = a.scale * b.scale;
        let log_q = rlwe.log2_q(level);
        if scale.log2() >= log_q {
            return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level });
        }
        let ring = rlwe.ring();
        let backend = ring.backend();
        let (a0, a1) = (&a.rlwe.polys[0], &a.rlwe.polys[1]);
        let (b0, b1) = (&b.rlwe.polys[0], &b.rlwe.polys[1]);
        let squaring = std::ptr::eq(a, b);
        let c0 = self.make_poly(level, |i, out| backend.mul(ring.modulus(i), a0.limb(i), b0.limb(i), out));
        let c1 = self.make_poly(level, |i, out| {
            let m = ring.modulus(i);
            if squaring {
                backend.mul(m, a0.limb(i), a1.limb(i), out);
                backend.mul_scalar_assign(m, out, m.shoup(2));
            } else {
                backend.mul(m, a0.limb(i), b1.limb(i), out);
                backend.mul_add_assign(m, out, a1.limb(i), b0.limb(i));
            }
        });
        let c2 = self.make_poly(level, |i, out| backend.mul(ring.modulus(i), a1.limb(i), b1.limb(i), out));
        Ok(Ciphertext {
            parameters: self.parameters.clone(),
            rlwe: RlweCiphertext { polys: vec![c0, c1, c2], key },
            scale,
            packing: a.packing,
            estimate: a.estimate_times(b.estimate),
        })
    }

    /// Relinearizes a ciphertext of degree 2 to degree 1. Returns one of degree 1 unchanged.
    ///
    /// # Errors
    /// [`CkksError::Degree`] above 2, a missing key, mixed parameters.
    pub fn relinearize(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if a.degree() == 1 {
            return Ok(a.clone());
        }
        self.relinearize_product(a, false)
    }

    /// Relinearizes a ciphertext of degree 2 and rescales it by one level, with one division for both.
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] at level 0, [`CkksError::Degree`] above 2, a missing key, mixed parameters.
    pub fn relinearize_rescale(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if a.degree() == 1 {
            return self.rescale(a);
        }
        self.relinearize_product(a, true)
    }

    fn relinearize_product(&self, product: &Ciphertext, rescale: bool) -> Result<Ciphertext, CkksError> {
        let (rlwe, level) = (self.parameters.rlwe(), product.level());
        if product.degree() > 2 {
            return Err(CkksError::Degree { operation: "relinearize", degree: product.degree() });
        }
        if rescale && level == 0 {
            return Err(CkksError::LevelsExhausted {
                operation: "relinearize_rescale",
                needed: 1,
                available: 0,
            });
        }
        let key_use = self.keys.best(KeyElement::Relinearization, level, rescale)?;
        let polys = &product.rlwe.polys;
        let decomposed = Decomposed::new(rlwe, key_use.plan.clone(), &polys[2])?;
        let key = key_use.key.load()?;
        let rows = decomposed.rows_of(&key, key_use.coalesce)?;
        let finish = [Finish { addend: [Some(&polys[0]), Some(&polys[1])], automorphism: None }];
        let mut switched = decomposed.switch(&[(&key, rows)], &finish).remove(0);
        switched.key = switched.key.or(product.key());
        let added = product.deviation_of(noise::key_switch(rlwe, &key_use.plan, &key_use.key));
        let mut out = Ciphertext { rlwe: switched, ..product.clone_header() };
        out.estimate = out.estimate.with_noise(added);
        if rescale {
            self.account_for_rescaling(&mut out, level);
        }
        Ok(out)
    }

    /// `a p`, not rescaled: the scale is the product of both. Values in coefficients are multiplied as polynomials.
    ///
    /// # Errors
    /// [`CkksError::PackingMismatch`], [`CkksError::Scale`] if the product's scale does not fit the modulus, mixed
    /// parameters.
    pub fn multiply_plain_lazy(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        self.require_plain(p)?;
        Self::require_packing(a, p.packing)?;
        let (rlwe, level) = (self.parameters.rlwe(), a.level().min(p.level()));
        let scale = a.scale * p.scale;
        let log_q = rlwe.log2_q(level);
        if scale.log2() >= log_q {
            return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level });
        }
        let ring = rlwe.ring();
        let polys = a
            .rlwe
            .polys
            .iter()
            .map(|poly| {
                self.make_poly(level, |i, out| {
                    ring.backend().mul(ring.modulus(i), poly.limb(i), p.poly.limb(i), out);
                })
            })
            .collect();
        Ok(Ciphertext {
            rlwe: RlweCiphertext { polys, key: a.key() },
            scale,
            estimate: a.estimate_times(p.estimate()),
            ..a.clone_header()
        })
    }

    /// `a` times real values in its packing, rescaled. The values are encoded at scale `q_level`, so the scale stays
    /// exactly the same. One level less. Values in coefficients are multiplied as polynomials.
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] at level 0, [`CkksError::Encode`], mixed parameters.
    pub fn multiply_values(&self, a: &Ciphertext, values: &[f64]) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if a.level() == 0 {
            return Err(CkksError::LevelsExhausted { operation: "multiply_values", needed: 1, available: 0 });
        }
        let q = self.parameters.rlwe().modulus(a.level()).value() as f64;
        let plain = self.parameters.encode_real(values, a.packing, a.level(), q)?;
        let product = self.multiply_plain_lazy(a, &plain)?;
        Ok(Ciphertext { scale: a.scale, ..self.rescale(&product)? })
    }

    /// Multiplies by the imaginary unit: exact, consumes no level. The monomial `X^(N/2)` is `i` in every slot.
    ///
    /// # Errors
    /// [`CkksError::PackingMismatch`] for coefficient packing, where the product is another permutation of values.
    pub fn multiply_by_i(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if let crate::Packing::Coefficients = a.packing {
            let right = crate::Packing::Slots { log_slots: self.parameters.max_log_slots() };
            return Err(CkksError::PackingMismatch { left: a.packing, right });
        }
        let ring = self.parameters.rlwe().ring();
        let mut out = a.clone();
        out.estimate.real = false;
        for i in 0..=a.level() {
            let m = ring.modulus(i);
            let mut unit = Buffer::zeroed(ring.n());
            unit[ring.n() / 2] = 1;
            ring.forward_limb(i, &mut unit);
            for (poly, input) in out.rlwe.polys.iter_mut().zip(&a.rlwe.polys) {
                ring.backend().mul(m, input.limb(i), &unit, poly.limb_mut(i));
            }
        }
        Ok(out)
    }
}
