//! Polynomials in RNS form, with the domain of their entries in the type.

use core::marker::PhantomData;
use zeroize::Zeroize;

use crate::Buffer;

/// Entries are coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coefficient {}

/// Entries are values at the roots of `X^N + 1` (NTT form).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation {}

/// Entries are scaled residues in the order of the back end, see [`crate::conversion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaled {}

/// Which of these forms a [`Poly`] is in.
pub trait Domain: Copy + Send + Sync + 'static {}
impl Domain for Coefficient {}
impl Domain for Evaluation {}
impl Domain for Scaled {}

/// `limbs` residue polynomials of degree below `n`, limb-major and contiguous. The holder knows the primes of the
/// limbs: limb `i` belongs to prime `i` of a [`crate::Ring`] unless stated otherwise.
#[derive(Clone)]
pub struct Poly<D: Domain> {
    n: usize,
    data: Buffer,
    domain: PhantomData<D>,
}

impl<D: Domain> Poly<D> {
    /// The zero polynomial.
    pub fn zero(n: usize, limbs: usize) -> Self {
        Self { n, data: Buffer::zeroed(n * limbs), domain: PhantomData }
    }

    /// A polynomial of unspecified words, for a result that overwrites all of them. They need not be canonical
    /// residues.
    pub fn unspecified(n: usize, limbs: usize) -> Self {
        Self { n, data: Buffer::unspecified(n * limbs), domain: PhantomData }
    }

    /// Ring degree.
    #[inline]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of limbs.
    #[inline]
    pub fn limb_count(&self) -> usize {
        self.data.len() / self.n
    }

    /// Residues modulo one prime.
    #[inline]
    pub fn limb(&self, i: usize) -> &[u64] {
        &self.data[i * self.n..(i + 1) * self.n]
    }

    /// Residues modulo one prime, for writing.
    #[inline]
    pub fn limb_mut(&mut self, i: usize) -> &mut [u64] {
        &mut self.data[i * self.n..(i + 1) * self.n]
    }

    /// All limbs in order.
    pub fn limbs(&self) -> core::slice::ChunksExact<'_, u64> {
        self.data.chunks_exact(self.n)
    }

    /// All limbs in order, for writing.
    pub fn limbs_mut(&mut self) -> core::slice::ChunksExactMut<'_, u64> {
        self.data.chunks_exact_mut(self.n)
    }

    /// All words, limb-major.
    pub fn words(&self) -> &[u64] {
        &self.data
    }

    /// The same words with the type of the other domain, after an in-place transform.
    pub(crate) fn retype<E: Domain>(self) -> Poly<E> {
        Poly { n: self.n, data: self.data, domain: PhantomData }
    }
}

impl<D: Domain> PartialEq for Poly<D> {
    fn eq(&self, other: &Self) -> bool {
        self.n == other.n && self.data[..] == other.data[..]
    }
}

impl<D: Domain> core::fmt::Debug for Poly<D> {
    /// Prints the shape only, since a polynomial may be a secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Poly(n = {}, limbs = {})", self.n, self.limb_count())
    }
}

impl<D: Domain> Zeroize for Poly<D> {
    fn zeroize(&mut self) {
        self.data.zeroize();
    }
}
