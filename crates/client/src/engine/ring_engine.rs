use core::borrow::Borrow;

use keywright_ring::{Backend, Modulus, Ring, Seed, StreamId, backend};
use zeroize::Zeroizing;

use crate::ClientError;
use crate::engine::{CHUNK, Engine};

/// The arithmetic of `keywright-ring` modulo the first prime of a ring: its kernels on a machine with vector registers,
/// and the ring's table of a few megabytes.
#[derive(Debug)]
pub struct RingEngine<R = Ring> {
    ring: R,
}

impl<'r> RingEngine<&'r Ring> {
    /// The first prime of an existing ring, with its tables.
    pub fn of(ring: &'r Ring) -> Self {
        Self { ring }
    }
}

impl RingEngine {
    /// The ring of one prime on the back end of this process.
    ///
    /// # Errors
    /// [`ClientError::Ring`].
    pub fn new(log_n: u32, modulus: u64) -> Result<Self, ClientError> {
        Self::with_backend(log_n, modulus, backend::default()?)
    }

    /// The same on a given back end.
    ///
    /// # Errors
    /// [`ClientError::Ring`].
    pub fn with_backend(
        log_n: u32,
        modulus: u64,
        backend: &'static dyn Backend,
    ) -> Result<Self, ClientError> {
        Ok(Self { ring: Ring::new(log_n, &[modulus], backend)? })
    }
}

impl<R: Borrow<Ring> + Send + Sync> Engine for RingEngine<R> {
    type Word = u64;

    fn log_n(&self) -> u32 {
        self.ring.borrow().log_n()
    }

    fn modulus(&self) -> &Modulus {
        self.ring.borrow().modulus(0)
    }

    fn forward(&self, limb: &mut [u64]) {
        self.ring.borrow().forward_limb(0, limb);
    }

    fn inverse(&self, limb: &mut [u64]) {
        self.ring.borrow().inverse_limb(0, limb);
    }

    fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        self.ring.borrow().backend().mul_add_assign(self.modulus(), acc, a, b);
    }

    fn mul_sub(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        let (backend, modulus) = (self.ring.borrow().backend(), self.modulus());
        backend.neg_assign(modulus, acc);
        backend.mul_add_assign(modulus, acc, a, b);
        backend.neg_assign(modulus, acc);
    }

    fn lift(&self, values: &[i64], out: &mut [u64]) {
        self.ring.borrow().lift_small(0, values, out);
    }

    fn lift_add(&self, values: &[i64], acc: &mut [u64]) {
        let mut residues = Zeroizing::new([0; CHUNK]);
        for (values, acc) in values.chunks(CHUNK).zip(acc.chunks_mut(CHUNK)) {
            let residues = &mut residues[..acc.len()];
            self.ring.borrow().lift_small(0, values, residues);
            self.ring.borrow().backend().add_assign(self.modulus(), acc, residues);
        }
    }

    fn uniform(&self, seed: &Seed, id: StreamId, start: usize, out: &mut [u64]) {
        self.ring.borrow().backend().expand_part(seed, id, self.modulus(), start, out);
    }
}
