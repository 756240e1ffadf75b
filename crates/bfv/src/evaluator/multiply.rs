use keywright_ring::conversion::{Column, Decomposer};
use keywright_ring::{Buffer, Evaluation, Poly, Ring, Scaled, ShoupFactor};
use keywright_rlwe::{Decomposed, Finish, KeyElement, RlweCiphertext, for_each_item, noise};

use super::Evaluator;
use crate::{BfvError, Ciphertext};

/// Target primes that are visited together: conversion rows come from a far cache and are read once for all of them.
const GROUP: usize = 4;

impl Evaluator<'_> {
    /// `a b`, relinearized. Values in slots are multiplied one by one; values in coefficients as polynomials modulo
    /// `X^N + 1`.
    ///
    /// # Errors
    /// As [`Self::multiply_lazy`]; a missing key.
    pub fn multiply(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.relinearize(&self.multiply_lazy(a, b)?)
    }

    /// `a^2`, relinearized.
    ///
    /// # Errors
    /// As [`Self::multiply`].
    pub fn square(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.multiply(a, a)
    }

    /// `a b` of degree 2, not relinearized, so that a sum of products needs one key switch (Kim, Polyakov and Zucca,
    /// ePrint 2021/204; `docs/explanation/bfv.md` has the maths).
    ///
    /// # Errors
    /// [`BfvError::Degree`], [`BfvError::LevelMismatch`], [`BfvError::PackingMismatch`], [`BfvError::NoiseExhausted`],
    /// mixed parameters.
    pub fn multiply_lazy(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, BfvError> {
        let key = self.require_pair(a, b)?;
        Self::require_degree_one("multiply", a)?;
        Self::require_degree_one("multiply", b)?;
        let (parameters, level) = (&self.parameters, a.level());
        let scaling = parameters.scaling(level);
        let estimate = a.estimate.times(b.estimate, parameters, level, scaling.log_r).checked("multiply")?;
        let (ring, auxiliary) = (parameters.rlwe().ring(), parameters.auxiliary());

        // The first operand modulo R, then -Q b' modulo R and t b' / R modulo Q.
        let lift = &scaling.lift;
        let factors: Vec<ShoupFactor> = lift.decomposer().sources().iter().map(|s| s.factor).collect();
        let rows = rows_of(ring, &a.rlwe.polys, &factors);
        let a_r = convert(auxiliary, lift.decomposer(), &rows, lift.columns());
        let rows = rows_of(ring, &b.rlwe.polys, &scaling.divided_rows);
        let b_r = convert(auxiliary, lift.decomposer(), &rows, lift.columns());
        let back = scaling.back.decomposer();
        let rows = rows_of(auxiliary, &b_r, &scaling.operand_rows);
        let b_q = convert(ring, back, &rows, &scaling.operand_columns);

        let x_r = tensor(auxiliary, scaling.auxiliary_count, &a_r, &b_r);
        let mut out = tensor(ring, level + 1, &a.rlwe.polys, &b_q);
        let rows = rows_of(auxiliary, &x_r, &scaling.product_rows);
        let remainders = convert(ring, back, &rows, &scaling.remainder_columns);
        let limbs = out
            .iter_mut()
            .zip(&remainders)
            .flat_map(|(x, y)| x.limbs_mut().zip(y.limbs()).enumerate())
            .collect();
        for_each_item(limbs, |_, (i, (x, y)): (usize, (&mut [u64], &[u64]))| {
            ring.backend().add_assign(ring.modulus(i), x, y);
        });
        a.with("multiply", RlweCiphertext { polys: out, key }, estimate)
    }

    /// Relinearizes a ciphertext of degree 2 to degree 1. Returns one of degree 1 unchanged.
    ///
    /// # Errors
    /// [`BfvError::Degree`] above 2, a missing key, [`BfvError::NoiseExhausted`], mixed parameters.
    pub fn relinearize(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.require(a)?;
        let [c0, c1, c2] = match &a.rlwe.polys[..] {
            [_, _] => return Ok(a.clone()),
            [c0, c1, c2] => [c0, c1, c2],
            _ => return Err(BfvError::Degree { operation: "relinearize", degree: a.degree() }),
        };
        let rlwe = self.parameters.rlwe();
        let key_use = self.keys.best(KeyElement::Relinearization, a.level(), false)?;
        let added = noise::key_switch(rlwe, &key_use.plan, &key_use.key);
        let estimate = a.estimate.with_error(&self.parameters, a.level(), added).checked("relinearize")?;
        let decomposed = Decomposed::new(rlwe, key_use.plan.clone(), c2)?;
        let key = key_use.key.load()?;
        let rows = decomposed.rows_of(&key, key_use.coalesce)?;
        let finish = [Finish { addend: [Some(c0), Some(c1)], automorphism: None }];
        let switched = decomposed.switch(&[(&key, rows)], &finish).remove(0);
        a.with("relinearize", switched, estimate)
    }
}

/// The conversion rows of polynomials, one factor per prime.
fn rows_of(ring: &Ring, polys: &[Poly<Evaluation>], factors: &[ShoupFactor]) -> Vec<Poly<Scaled>> {
    let n = ring.n();
    let mut rows: Vec<Poly<Scaled>> = polys.iter().map(|_| Poly::unspecified(n, factors.len())).collect();
    let tasks = rows
        .iter_mut()
        .zip(polys)
        .flat_map(|(rows, poly)| rows.limbs_mut().zip(poly.limbs()).enumerate())
        .collect();
    for_each_item(tasks, |_, (i, (row, limb)): (usize, (&mut [u64], &[u64]))| {
        let mut scratch = Buffer::unspecified(n);
        scratch.copy_from_slice(limb);
        ring.inverse_scaled(i, &mut scratch, factors[i], row);
    });
    rows
}

/// The polynomials of these rows modulo the first primes of `ring`, one for each column.
fn convert(
    ring: &Ring,
    decomposer: &Decomposer,
    rows: &[Poly<Scaled>],
    columns: &[Column],
) -> Vec<Poly<Evaluation>> {
    let mut out: Vec<Poly<Evaluation>> =
        rows.iter().map(|_| Poly::unspecified(ring.n(), columns.len())).collect();
    let mut tasks = Vec::new();
    for (poly, rows) in out.iter_mut().zip(rows) {
        let mut limbs = poly.limbs_mut();
        for (group, columns) in columns.chunks(GROUP).enumerate() {
            let outs: Vec<&mut [u64]> = limbs.by_ref().take(columns.len()).collect();
            tasks.push((group * GROUP, columns, outs, rows));
        }
    }
    for_each_item(tasks, |_, (first, columns, mut outs, rows)| {
        let rows: Vec<&[u64]> = rows.limbs().collect();
        let targets: Vec<_> = (first..).zip(columns).collect();
        ring.convert_forward(decomposer, &rows, &targets, &mut outs);
    });
    out
}

/// `(a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1)` modulo the first `limbs` primes.
fn tensor(
    ring: &Ring,
    limbs: usize,
    a: &[Poly<Evaluation>],
    b: &[Poly<Evaluation>],
) -> Vec<Poly<Evaluation>> {
    let backend = ring.backend();
    let mut out: Vec<Poly<Evaluation>> = (0..3).map(|_| Poly::unspecified(ring.n(), limbs)).collect();
    let [a0, a1] = [&a[0], &a[1]];
    let [b0, b1] = [&b[0], &b[1]];
    if let [c0, c1, c2] = &mut out[..] {
        let tasks = c0.limbs_mut().zip(c1.limbs_mut()).zip(c2.limbs_mut()).collect();
        for_each_item(tasks, |i, ((c0, c1), c2): ((&mut [u64], &mut [u64]), &mut [u64])| {
            let m = ring.modulus(i);
            backend.mul(m, a0.limb(i), b0.limb(i), c0);
            backend.mul(m, a0.limb(i), b1.limb(i), c1);
            backend.mul_add_assign(m, c1, a1.limb(i), b0.limb(i));
            backend.mul(m, a1.limb(i), b1.limb(i), c2);
        });
    }
    out
}
