use std::fmt;
use std::sync::{Arc, OnceLock};

use keywright_ring::{Buffer, Evaluation, Poly};
use keywright_rlwe::for_each_item;
use zeroize::Zeroize;

use crate::{BfvError, BfvParameters, Packing};

/// Residues modulo `t`.
#[derive(Clone)]
enum Content {
    /// A constant polynomial.
    Constant(u64),
    /// `N` coefficients.
    Polynomial(Vec<u64>),
}

/// An encoded message: a polynomial modulo `t`. It is independent of levels.
#[derive(Clone)]
pub struct Plaintext {
    parameters: BfvParameters,
    packing: Packing,
    content: Content,
    /// The centred polynomial modulo all ciphertext primes, made at the first product with a ciphertext.
    evaluations: Arc<OnceLock<Poly<Evaluation>>>,
}

impl BfvParameters {
    /// Smallest and largest value that represents a residue: `-t/2` to `t - 1`.
    pub fn value_range(&self) -> (i64, i64) {
        let t = self.plaintext_modulus() as i64;
        (-(t / 2), t - 1)
    }

    /// The residue of a value.
    ///
    /// # Errors
    /// [`BfvError::Value`].
    pub(crate) fn residue(&self, index: usize, value: i64) -> Result<u64, BfvError> {
        let (min, max) = self.value_range();
        if value < min || value > max {
            return Err(BfvError::Value { index, value, min, max });
        }
        Ok(self.t().residue(value))
    }

    /// Encodes up to `N` integers in `-t/2 ..= t - 1`, which represent their residues modulo `t`. Zeros fill the
    /// remaining places.
    ///
    /// # Errors
    /// [`BfvError::Value`], [`BfvError::TooManyValues`], [`BfvError::NoSlots`].
    pub fn encode(&self, values: &[i64], packing: Packing) -> Result<Plaintext, BfvError> {
        let n = self.rlwe().n();
        if values.len() > n {
            return Err(BfvError::TooManyValues { count: values.len(), max: n });
        }
        let mut residues = Vec::with_capacity(n);
        for (index, &value) in values.iter().enumerate() {
            residues.push(self.residue(index, value)?);
        }
        if packing == Packing::Slots {
            let coefficients = self.batching()?.to_coefficients(&residues);
            residues.zeroize();
            return Ok(Plaintext::new(self, packing, Content::Polynomial(coefficients)));
        }
        residues.resize(n, 0);
        Ok(Plaintext::new(self, packing, Content::Polynomial(residues)))
    }

    /// The same integer in every slot, or in every coefficient. In slots this is a constant polynomial: encoding,
    /// encryption and multiplication need no transform.
    ///
    /// # Errors
    /// [`BfvError::Value`], [`BfvError::NoSlots`].
    pub fn encode_scalar(&self, value: i64, packing: Packing) -> Result<Plaintext, BfvError> {
        let residue = self.residue(0, value)?;
        let content = match packing {
            Packing::Slots => {
                self.batching()?;
                Content::Constant(residue)
            }
            Packing::Coefficients => Content::Polynomial(vec![residue; self.rlwe().n()]),
        };
        Ok(Plaintext::new(self, packing, content))
    }
}

impl Plaintext {
    fn new(parameters: &BfvParameters, packing: Packing, content: Content) -> Self {
        Self { parameters: parameters.clone(), packing, content, evaluations: Arc::default() }
    }

    /// From decrypted coefficients.
    pub(crate) fn from_residues(parameters: &BfvParameters, packing: Packing, residues: Vec<u64>) -> Self {
        Self::new(parameters, packing, Content::Polynomial(residues))
    }

    /// Parameters of the plaintext.
    pub fn parameters(&self) -> &BfvParameters {
        &self.parameters
    }

    /// The places of its values.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// The constant, if it is a constant polynomial by construction.
    pub(crate) fn constant(&self) -> Option<u64> {
        match self.content {
            Content::Constant(residue) => Some(residue),
            Content::Polynomial(_) => None,
        }
    }

    /// The values, centred: in `(-t/2, t/2]`.
    pub fn decode(&self) -> Vec<i64> {
        let t = self.parameters.t();
        let mut residues = self.residues();
        let values = residues.iter().map(|&r| t.centred(r)).collect();
        residues.zeroize();
        values
    }

    /// The values as residues in `[0, t)`.
    pub fn residues(&self) -> Vec<u64> {
        match (&self.content, self.packing, self.parameters.batching()) {
            (Content::Constant(residue), ..) => vec![*residue; self.parameters.rlwe().n()],
            (Content::Polynomial(coefficients), Packing::Slots, Ok(batching)) => {
                let mut scratch = coefficients.clone();
                let slots = batching.to_slots(&mut scratch);
                scratch.zeroize();
                slots
            }
            (Content::Polynomial(coefficients), ..) => coefficients.clone(),
        }
    }

    /// Euclidean norm and sum of absolute values of the centred coefficients.
    pub(crate) fn norms(&self) -> (f64, f64) {
        let t = self.parameters.t();
        let size = |&residue: &u64| t.centred(residue) as f64;
        match &self.content {
            Content::Constant(residue) => (size(residue).abs(), size(residue).abs()),
            Content::Polynomial(c) => {
                let (squares, sum) =
                    c.iter().map(size).fold((0.0, 0.0), |(a, b), x| (x.mul_add(x, a), b + x.abs()));
                (squares.sqrt(), sum)
            }
        }
    }

    /// `[Q c]_t`, centred, for a coefficient: `round(Q c / t) = (Q c - [Q c]_t) / t`, which is `-[Q c]_t / t` modulo
    /// every prime of `Q` (Kim, Polyakov and Zucca, ePrint 2021/204).
    fn remainder(&self, level: usize, residue: u64) -> i64 {
        let t = self.parameters.t();
        t.centred(t.mul(residue, self.parameters.level_constants(level).q_mod_t))
    }

    /// The remainders of all coefficients, for [`Self::add_scaled_limb`]. The caller wipes them.
    pub(crate) fn remainders(&self, level: usize) -> Vec<i64> {
        match &self.content {
            Content::Constant(residue) => vec![self.remainder(level, *residue)],
            Content::Polynomial(c) => c.iter().map(|&residue| self.remainder(level, residue)).collect(),
        }
    }

    /// `limb += round(Q m / t)` modulo prime `i`, in coefficient form.
    pub(crate) fn add_scaled_limb(&self, i: usize, remainders: &[i64], limb: &mut [u64]) {
        let ring = self.parameters.rlwe().ring();
        let (m, factor) = (ring.modulus(i), self.parameters.negated_t_inverse(i));
        if self.constant().is_some() {
            limb[0] = m.add(limb[0], m.mul_shoup(m.reduce_i64(remainders[0]), factor));
            return;
        }
        let mut scratch = Buffer::unspecified(limb.len());
        ring.lift_small(i, remainders, &mut scratch);
        ring.backend().mul_scalar_add_assign(m, limb, &scratch, factor);
        scratch.zeroize();
    }

    /// `c_0 += round(Q m / t)` in evaluation form, with `Q` the product of the primes of `c_0`.
    pub fn add_scaled_to(&self, c0: &mut Poly<Evaluation>) {
        self.accumulate(c0, false);
    }

    /// `c_0 -= round(Q m / t)` in evaluation form.
    pub(crate) fn subtract_scaled_from(&self, c0: &mut Poly<Evaluation>) {
        self.accumulate(c0, true);
    }

    fn accumulate(&self, c0: &mut Poly<Evaluation>, negate: bool) {
        let ring = self.parameters.rlwe().ring();
        let mut remainders = self.remainders(c0.limb_count() - 1);
        if negate {
            remainders.iter_mut().for_each(|r| *r = -*r);
        }
        for_each_item(c0.limbs_mut().collect(), |i, limb: &mut [u64]| {
            let (m, factor) = (ring.modulus(i), self.parameters.negated_t_inverse(i));
            if self.constant().is_some() {
                // A constant polynomial has the same value at every root of unity.
                let addend = m.mul_shoup(m.reduce_i64(remainders[0]), factor);
                limb.iter_mut().for_each(|x| *x = m.add(*x, addend));
                return;
            }
            let mut scratch = Buffer::unspecified(limb.len());
            ring.forward_small_limb(i, &remainders, &mut scratch, &[]);
            ring.backend().mul_scalar_add_assign(m, limb, &scratch, factor);
            scratch.zeroize();
        });
        remainders.zeroize();
    }

    /// The centred polynomial modulo all ciphertext primes.
    pub(crate) fn evaluations(&self) -> &Poly<Evaluation> {
        if let Some(poly) = self.evaluations.get() {
            return poly;
        }
        // Made outside of the cell: a thread that waits during the initialisation may take up other work that needs the
        // cell.
        let poly = self.transformed();
        self.evaluations.get_or_init(|| poly)
    }

    fn transformed(&self) -> Poly<Evaluation> {
        let parameters = &self.parameters;
        let (ring, t) = (parameters.rlwe().ring(), parameters.t());
        let mut centred = vec![0; ring.n()];
        match &self.content {
            Content::Constant(residue) => centred[0] = t.centred(*residue),
            Content::Polynomial(c) => centred.iter_mut().zip(c).for_each(|(x, &r)| *x = t.centred(r)),
        }
        let mut poly = Poly::unspecified(ring.n(), parameters.max_level() + 1);
        for_each_item(poly.limbs_mut().collect(), |i, limb: &mut [u64]| {
            ring.forward_small_limb(i, &centred, limb, &[]);
        });
        centred.zeroize();
        poly
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plaintext(modulo {}, {})", self.parameters.plaintext_modulus(), self.packing)
    }
}
