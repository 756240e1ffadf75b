//! Hoisted automorphisms: several images of one ciphertext share its decomposition.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Decomposed, Finish};
use crate::{KeyUse, Parameters, RlweCiphertext, RlweError, ServedHop};

/// The images of a scheme's ciphertext `a` of degree 1 under `X -> X^g` for some elements `g`, in order. Every parent
/// of the hops is 1 or an earlier child; every element is 1 or a child. `rlwe` is the ciphertext below the scheme, and
/// `switched` is one of the scheme, made of another, its switched polynomials and the key.
///
/// # Errors
/// The errors of [`Decomposed::switch_stored`] and of `switched`.
pub fn images<C: Clone, E: From<RlweError>>(
    parameters: &Parameters,
    a: &C,
    elements: &[u64],
    mut hops: Vec<ServedHop>,
    rlwe: impl Fn(&C) -> &RlweCiphertext,
    switched: impl Fn(&C, RlweCiphertext, &KeyUse) -> Result<C, E>,
) -> Result<Vec<C>, E> {
    let mut images: BTreeMap<u64, C> = BTreeMap::new();
    while let Some(first) = hops.first() {
        // Hops from one parent whose keys agree in digits and special primes share one decomposition.
        let (parent, plan) = (first.parent, first.key_use.plan.clone());
        let (group, rest): (Vec<_>, Vec<_>) =
            hops.into_iter().partition(|hop| hop.parent == parent && Arc::ptr_eq(&hop.key_use.plan, &plan));
        hops = rest;
        let from = images.get(&parent).unwrap_or(a);
        let polys = &rlwe(from).polys;
        let decomposed = Decomposed::new(parameters, plan, &polys[1])?;
        let finish: Vec<_> = group
            .iter()
            .map(|hop| Finish { addend: [Some(&polys[0]), None], automorphism: Some(&*hop.automorphism) })
            .collect();
        let uses: Vec<_> = group.iter().map(|hop| &hop.key_use).collect();
        let results: Vec<_> = group
            .iter()
            .zip(decomposed.switch_stored(&uses, &finish)?)
            .map(|(hop, rotated)| Ok((hop.child, switched(from, rotated, &hop.key_use)?)))
            .collect::<Result<_, E>>()?;
        images.extend(results);
    }
    let mut take = |(position, &g): (usize, &u64)| {
        let again = elements[position + 1..].contains(&g);
        let last = if again { images.get(&g).cloned() } else { images.remove(&g) };
        last.unwrap_or_else(|| a.clone())
    };
    Ok(elements.iter().enumerate().map(&mut take).collect())
}
