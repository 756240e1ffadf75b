use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::backend::NttPlan;
use crate::conversion::{Column, Decomposer, ScaledPart};
use crate::primes::{MAX_LOG_N, MIN_LOG_N, is_prime, primitive_root};
use crate::{Backend, Buffer, Coefficient, Evaluation, Modulus, Poly, RingError, ShoupFactor};

/// `Z[X]/(X^N + 1)` modulo a list of distinct primes, with their transforms, on one back end.
///
/// # Invariant
/// Every modulus is a distinct prime, 1 modulo `2N`; `plans[i]` transforms modulo `moduli[i]`.
pub struct Ring {
    log_n: u32,
    moduli: Vec<Modulus>,
    plans: Vec<LazyPlan>,
    backend: &'static dyn Backend,
}

/// The transforms of one prime, made once.
struct LazyPlan {
    #[cfg(feature = "std")]
    psi: u64,
    #[cfg(feature = "std")]
    plan: crate::RaceOnce<Box<dyn NttPlan>>,
    #[cfg(not(feature = "std"))]
    plan: Box<dyn NttPlan>,
}

impl LazyPlan {
    #[cfg(feature = "std")]
    fn new(_: u32, _: &Modulus, psi: u64, _: &'static dyn Backend) -> Self {
        Self { psi, plan: crate::RaceOnce::new() }
    }

    #[cfg(not(feature = "std"))]
    fn new(log_n: u32, modulus: &Modulus, psi: u64, backend: &'static dyn Backend) -> Self {
        Self { plan: backend.plan_ntt(log_n, modulus, psi) }
    }

    #[cfg(feature = "std")]
    #[inline]
    fn get(&self, log_n: u32, modulus: &Modulus, backend: &'static dyn Backend) -> &dyn NttPlan {
        &**self.plan.get_or_init(|| backend.plan_ntt(log_n, modulus, self.psi))
    }

    #[cfg(not(feature = "std"))]
    #[inline]
    fn get(&self, _: u32, _: &Modulus, _: &'static dyn Backend) -> &dyn NttPlan {
        &*self.plan
    }
}

impl Ring {
    /// A ring modulo a list of primes. The transforms of each prime, about `2 N` words of memory per direction, are
    /// precomputed at first use, so a caller that needs only the primes pays nothing. Without the standard library they
    /// are precomputed at once.
    ///
    /// # Errors
    /// [`RingError::Degree`], [`RingError::ModulusRange`], [`RingError::NotPrime`], [`RingError::NoRoot`],
    /// [`RingError::Repeated`].
    pub fn new(log_n: u32, primes: &[u64], backend: &'static dyn Backend) -> Result<Self, RingError> {
        if !(MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
            return Err(RingError::Degree(log_n));
        }
        let mut moduli = Vec::with_capacity(primes.len());
        let mut plans = Vec::with_capacity(primes.len());
        for (i, &q) in primes.iter().enumerate() {
            let modulus = Modulus::new(q)?;
            if !is_prime(q) {
                return Err(RingError::NotPrime(q));
            }
            if primes[..i].contains(&q) {
                return Err(RingError::Repeated(q));
            }
            let psi = primitive_root(&modulus, log_n)?;
            moduli.push(modulus);
            plans.push(LazyPlan::new(log_n, &modulus, psi, backend));
        }
        Ok(Self { log_n, moduli, plans, backend })
    }

    /// `log2` of the degree.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// Degree `N`.
    pub fn n(&self) -> usize {
        1 << self.log_n
    }

    /// The primes, in order.
    pub fn moduli(&self) -> &[Modulus] {
        &self.moduli
    }

    /// Prime `i`.
    #[inline]
    pub fn modulus(&self, i: usize) -> &Modulus {
        &self.moduli[i]
    }

    /// The kernels this ring computes with.
    #[inline]
    pub fn backend(&self) -> &'static dyn Backend {
        self.backend
    }

    /// Transforms one limb to evaluation form modulo prime `i`, in place; canonical in, canonical out.
    #[inline]
    pub fn forward_limb(&self, i: usize, limb: &mut [u64]) {
        self.plan_of(i).forward(limb, &[]);
    }

    /// The same, while prefetching `upcoming` ([`NttPlan::forward`]).
    #[inline]
    pub fn forward_limb_fetching(&self, i: usize, limb: &mut [u64], upcoming: &[u64]) {
        self.plan_of(i).forward(limb, upcoming);
    }

    /// The evaluations modulo prime `i` of integers smaller than it in absolute value, in the ring or a subring, while
    /// prefetching `upcoming` ([`NttPlan::forward_small`]). Constant time in the values.
    #[inline]
    pub fn forward_small_limb(&self, i: usize, values: &[i64], limb: &mut [u64], upcoming: &[u64]) {
        debug_assert!(values.iter().all(|v| v.unsigned_abs() < self.moduli[i].value()));
        self.plan_of(i).forward_small(values, limb, upcoming);
    }

    /// The forward transform modulo prime `i` of a polynomial in `X^(N/M)`, given by its `M` coefficients. It has one
    /// value of each run of `N/M` equal values of [`Self::forward_limb`] ([`NttPlan::forward_subring`]).
    ///
    /// # Panics
    /// Unless `M` is a power of two from `2^`[`MIN_LOG_N`] to `N`.
    #[inline]
    pub fn forward_subring_limb(&self, i: usize, limb: &mut [u64]) {
        let m = limb.len();
        assert!(
            m.is_power_of_two() && m >= 1 << MIN_LOG_N && m <= self.n(),
            "{m} words are not a limb of a subring"
        );
        self.plan_of(i).forward_subring(limb);
    }

    /// Transforms one limb to coefficient form modulo prime `i`, in place; canonical in, canonical out.
    #[inline]
    pub fn inverse_limb(&self, i: usize, limb: &mut [u64]) {
        self.plan_of(i).inverse(limb);
    }

    #[inline]
    fn plan_of(&self, i: usize) -> &dyn NttPlan {
        self.plans[i].get(self.log_n, &self.moduli[i], self.backend)
    }

    /// The transforms of prime `i`, for kernels that fuse them with other work.
    #[inline]
    pub fn plan(&self, i: usize) -> &dyn NttPlan {
        self.plan_of(i)
    }

    /// One limb of evaluations modulo prime `i` to scaled residues ([`NttPlan::inverse_scaled`]).
    #[inline]
    pub fn inverse_scaled(&self, i: usize, limb: &mut [u64], factor: ShoupFactor, out: &mut [u64]) {
        self.plan_of(i).inverse_scaled(limb, factor, out);
    }

    /// Converts the polynomial of the given scaled residues to several primes, each with its column, and begins their
    /// transforms. `outs[k]` is modulo prime `targets[k].0`, and [`NttPlan::finish_block`] ends it. The residues are
    /// read from memory once, part by part.
    pub fn convert_parts(
        &self,
        decomposer: &Decomposer,
        residues: &[&[u64]],
        targets: &[(usize, &Column)],
        outs: &mut [&mut [u64]],
    ) {
        assert!(
            residues.len() == decomposer.sources().len()
                && residues.iter().all(|limb| limb.len() == self.n()),
            "a limb of the ring's degree for every source"
        );
        assert_eq!(targets.len(), outs.len(), "one output per target");
        let words = self.backend.scaled_layout(self.n()).part_words();
        let mut derived = Buffer::unspecified(decomposer.derived_count() * words);
        let mut parts = alloc::vec![&[][..]; residues.len()];
        for part in 0..self.n() / words {
            for (slice, limb) in parts.iter_mut().zip(residues) {
                *slice = &limb[part * words..(part + 1) * words];
            }
            self.backend.derive_terms(decomposer, &parts, &mut derived);
            for (k, (&(i, column), out)) in targets.iter().zip(&mut *outs).enumerate() {
                // Each conversion prefetches its share of the next part.
                let fetch = (k * residues.len() / targets.len(), (k + 1) * residues.len() / targets.len());
                let sources = decomposer.sources();
                let part = ScaledPart { sources, residues, derived: &derived, part, words, fetch };
                self.plan_of(i).convert_part(column, part, out);
            }
        }
    }

    /// Ends the transform of a limb whose parts are all converted, while prefetching two limbs.
    pub fn finish_limb(&self, i: usize, limb: &mut [u64], upcoming: [&[u64]; 2]) {
        let plan = self.plan_of(i);
        let size = limb.len() / plan.blocks();
        for (block, words) in limb.chunks_exact_mut(size).enumerate() {
            let upcoming = upcoming.map(|limb| limb.chunks_exact(size).nth(block).unwrap_or(&[]));
            plan.finish_block(block, words, upcoming);
        }
    }

    /// [`Self::convert_parts`] with the transforms ended.
    pub fn convert_forward(
        &self,
        decomposer: &Decomposer,
        residues: &[&[u64]],
        targets: &[(usize, &Column)],
        outs: &mut [&mut [u64]],
    ) {
        self.convert_parts(decomposer, residues, targets, outs);
        for (&(i, _), out) in targets.iter().zip(outs) {
            self.finish_limb(i, out, [&[]; 2]);
        }
    }

    /// A polynomial modulo the first primes to evaluation form.
    pub fn forward(&self, mut poly: Poly<Coefficient>) -> Poly<Evaluation> {
        for (i, limb) in poly.limbs_mut().enumerate() {
            self.forward_limb(i, limb);
        }
        poly.retype()
    }

    /// A polynomial modulo the first primes to coefficient form.
    pub fn inverse(&self, mut poly: Poly<Evaluation>) -> Poly<Coefficient> {
        for (i, limb) in poly.limbs_mut().enumerate() {
            self.inverse_limb(i, limb);
        }
        poly.retype()
    }

    /// Residues of small signed coefficients modulo prime `i`. Constant time in the values.
    pub fn lift_small(&self, i: usize, coefficients: &[i64], limb: &mut [u64]) {
        debug_assert!(coefficients.iter().all(|c| c.unsigned_abs() < self.moduli[i].value()));
        self.backend.lift_small(&self.moduli[i], coefficients, limb);
    }
}

impl core::fmt::Debug for Ring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Ring(log_n = {}, primes = {}, {:?})", self.log_n, self.moduli.len(), self.backend.kind())
    }
}
