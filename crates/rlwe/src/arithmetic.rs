//! Sums of RLWE ciphertexts: schemes call these after checking that the operands match.

use crate::parallel::{for_each_item, prefix};
use crate::{Parameters, RlweCiphertext};

impl RlweCiphertext {
    /// `self += other`, where `other` has at least as many limbs. Takes over polynomials that only `other` has. The
    /// caller checks that both belong to one key.
    pub fn add_assign(&mut self, other: &Self, parameters: &Parameters) {
        let ring = parameters.ring();
        self.combine(other, |i, x, y| ring.backend().add_assign(ring.modulus(i), x, y), |_, _| {});
    }

    /// `self -= other`, under the same conditions.
    pub fn sub_assign(&mut self, other: &Self, parameters: &Parameters) {
        let ring = parameters.ring();
        self.combine(
            other,
            |i, x, y| ring.backend().sub_assign(ring.modulus(i), x, y),
            |i, x| ring.backend().neg_assign(ring.modulus(i), x),
        );
    }

    /// `self = -self`.
    pub fn neg_assign(&mut self, parameters: &Parameters) {
        let ring = parameters.ring();
        let limbs = self.polys.iter_mut().flat_map(|poly| poly.limbs_mut().enumerate()).collect();
        for_each_item(limbs, |_, (i, limb)| ring.backend().neg_assign(ring.modulus(i), limb));
    }

    fn combine(
        &mut self,
        other: &Self,
        pair: impl Fn(usize, &mut [u64], &[u64]) + Sync + Send,
        alone: impl Fn(usize, &mut [u64]),
    ) {
        self.key = self.key.or(other.key);
        let (limbs, shared) = (self.level() + 1, self.polys.len().min(other.polys.len()));
        debug_assert!(other.level() >= self.level(), "limbs to add to every limb");
        let pairs = self.polys.iter_mut().zip(&other.polys);
        let pairs = pairs.flat_map(|(x, y)| x.limbs_mut().zip(y.limbs()).enumerate()).collect();
        for_each_item(pairs, |_, (i, (x, y)): (usize, (&mut [u64], &[u64]))| pair(i, x, y));
        for poly in &other.polys[shared..] {
            let mut copy = prefix(poly, limbs);
            copy.limbs_mut().enumerate().for_each(|(i, limb)| alone(i, limb));
            self.polys.push(copy);
        }
    }
}
