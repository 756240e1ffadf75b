//! Source secrets of keys between rings: secrets of one ring in the representation of another.

use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::{Parameters, SecretKey};

impl SecretKey {
    /// Part `part` of this secret `s = sum_i X^i s_i(Y)`, `Y = X^k`, in the smaller ring of `Y`: `s_0`, or
    /// `Y s_{k - part}`.
    pub(crate) fn part_in(&self, ring: &Parameters, part: usize) -> Self {
        let (n, k) = (ring.n(), self.parameters().n() / ring.n());
        let (s, mut out) = (self.coefficients(), Zeroizing::new(Vec::with_capacity(n)));
        if part == 0 {
            out.extend(s.iter().step_by(k));
        } else {
            let mut component = s[k - part..].iter().step_by(k);
            // Y^n = -1.
            out.extend(component.next_back().map(|last| -last));
            out.extend(component);
        }
        Self::from_coefficients(ring, out)
    }

    /// This secret `s'(Y)` in the larger ring of `X`: `s'(X^k)`.
    pub(crate) fn embedded_in(&self, ring: &Parameters) -> Self {
        let k = ring.n() / self.parameters().n();
        let mut out = Zeroizing::new(alloc::vec![0; ring.n()]);
        out.iter_mut().step_by(k).zip(self.coefficients()).for_each(|(out, &s)| *out = s);
        Self::from_coefficients(ring, out)
    }
}
