//! ModRaise: the modulus of a polynomial raised from `q_0`.

use alloc::vec::Vec;

use keywright_ring::{Buffer, Conversion, Evaluation, Modulus, Poly};

use crate::parallel::{for_each_item, groups};
use crate::{Parameters, RlweError};

/// The residues modulo `q_0 .. q_level` of the representative in `[-q_0/2, q_0/2]` of each coefficient, given modulo
/// `q_0` by the first limb of `input`, which stays bit for bit. The interval is `1 + 2^-14` times as long, see
/// [`keywright_ring::conversion`]: near its ends either representative can occur.
///
/// # Errors
/// [`RlweError::Level`] for a level that does not exist.
pub fn raise_modulus(
    parameters: &Parameters,
    input: &Poly<Evaluation>,
    level: usize,
) -> Result<Poly<Evaluation>, RlweError> {
    parameters.require_level(level)?;
    let (ring, n) = (parameters.ring(), parameters.n());
    let targets: Vec<Modulus> = (1..=level).map(|i| *parameters.modulus(i)).collect();
    let conversion = Conversion::new(&[*parameters.modulus(0)], &targets);
    let decomposer = conversion.decomposer();
    let (mut limb, mut residues) = (Buffer::unspecified(n), Buffer::unspecified(n));
    limb.copy_from_slice(input.limb(0));
    ring.inverse_scaled(0, &mut limb, decomposer.sources()[0].factor, &mut residues);
    let mut out = Poly::unspecified(n, level + 1);
    let mut limbs = out.limbs_mut();
    if let Some(first) = limbs.next() {
        first.copy_from_slice(input.limb(0));
    }
    for_each_item(groups(limbs.collect()), |_, (first, mut outs): (usize, Vec<&mut [u64]>)| {
        let columns: Vec<_> = (first..first + outs.len()).map(|i| (i + 1, conversion.column(i))).collect();
        ring.convert_forward(decomposer, &[&residues], &columns, &mut outs);
    });
    Ok(out)
}
