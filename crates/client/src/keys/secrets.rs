//! The secrets of a switching key, modulo one prime at a time.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use keywright_frame::packing::unpack_ternary;
use keywright_ring::{Automorphism, Modulus, galois_inverse};
use keywright_rlwe::{KeyElement, KeySpec, RlweError};
use zeroize::Zeroizing;

use crate::ClientError;
use crate::engine::{BLOCK, Engine, values};

/// The secrets of one key.
pub(crate) struct Secrets<'s> {
    /// For the target secret: `t`, or `t(X^g)` with [`automorphism`].
    target: Packed<'s>,
    /// The source secret.
    source: Packed<'s>,
    squared: bool,
}

/// For a key whose ciphertexts are permuted: `t(X^g)` is the target secret, for the inverse of its Galois element.
pub(crate) fn automorphism(log_n: u32, element: KeyElement) -> Result<Option<Automorphism>, ClientError> {
    match element {
        KeyElement::Galois(galois) | KeyElement::SparseToDenseGalois { galois, .. } => {
            Ok(Some(Automorphism::new(log_n, galois_inverse(log_n, galois))?))
        }
        _ => Ok(None),
    }
}

/// A secret, packed.
#[derive(Clone, Copy)]
enum Packed<'s> {
    /// The client's own secret, whose transforms may be kept.
    Own(&'s [u8]),
    Ephemeral(&'s [u8]),
}

impl Packed<'_> {
    /// In evaluation form; `kept` has transforms of the client's own secret.
    fn transform<E: Engine<Word = u64>>(self, engine: &E, kept: Option<&[u64]>, out: &mut [u64]) {
        match (self, kept) {
            (Self::Own(_), Some(kept)) => out.copy_from_slice(kept),
            (Self::Own(packed) | Self::Ephemeral(packed), _) => expand(engine, packed, out),
        }
    }
}

/// Refuses a key of another ring, or from one: a thin client has the secret of only one ring.
pub(crate) fn require_one_ring(spec: &KeySpec, log_n: u32) -> Result<(), ClientError> {
    if spec.subring.is_some() || spec.element.source_ring().is_some() {
        return Err(between_rings(spec.element, spec.subring.unwrap_or(log_n)));
    }
    Ok(())
}

fn between_rings(element: KeyElement, log_n: u32) -> ClientError {
    let reason = "a thin client has no secrets of subrings; make these keys with the full library";
    RlweError::RingSwitch { element, log_n, reason }.into()
}

impl<'s> Secrets<'s> {
    /// The secrets of a key; `sampled` has the ephemeral ones by weight.
    pub(crate) fn new(
        log_n: u32,
        element: KeyElement,
        dense: &'s [u8],
        sampled: &'s BTreeMap<usize, Zeroizing<Vec<u8>>>,
    ) -> Result<Self, ClientError> {
        // Sampled before it is requested.
        let ephemeral = || {
            let weight = element.ephemeral_weight();
            Packed::Ephemeral(weight.and_then(|weight| sampled.get(&weight)).map_or(&[][..], |packed| packed))
        };
        let dense = Packed::Own(dense);
        let plain = |target, source| Self { target, source, squared: false };
        Ok(match element {
            KeyElement::Galois(_) => plain(dense, dense),
            KeyElement::Relinearization => Self { squared: true, ..plain(dense, dense) },
            KeyElement::DenseToSparse(_) => plain(ephemeral(), dense),
            KeyElement::SparseToDense(_) | KeyElement::SparseToDenseGalois { .. } => {
                plain(dense, ephemeral())
            }
            KeyElement::Secret(id) => return Err(RlweError::SourceSecret(id).into()),
            // Refused before any key is made: see [`require_one_ring`].
            KeyElement::RingDown { .. } | KeyElement::RingUp { .. } | KeyElement::RingUpToSparse { .. } => {
                return Err(between_rings(element, log_n));
            }
        })
    }

    /// The target secret, in evaluation form.
    pub(crate) fn target<E: Engine<Word = u64>>(
        &self,
        engine: &E,
        kept: Option<&[u64]>,
        automorphism: Option<&Automorphism>,
        out: &mut [u64],
        scratch: &mut [u64],
    ) {
        let Some(automorphism) = automorphism else { return self.target.transform(engine, kept, out) };
        self.target.transform(engine, kept, scratch);
        for (i, word) in out.iter_mut().enumerate() {
            *word = scratch[automorphism.source(i)];
        }
    }

    /// The source secret, in evaluation form.
    pub(crate) fn source<E: Engine<Word = u64>>(&self, engine: &E, kept: Option<&[u64]>, out: &mut [u64]) {
        self.source.transform(engine, kept, out);
        if self.squared {
            let m: &Modulus = engine.modulus();
            out.iter_mut().for_each(|s| *s = m.mul(*s, *s));
        }
    }
}

/// The evaluation form of packed coefficients.
pub(crate) fn expand<E: Engine>(engine: &E, packed: &[u8], out: &mut [E::Word]) {
    let mut coefficients = values();
    for (packed, part) in packed.chunks(BLOCK / 4).zip(out.chunks_mut(BLOCK)) {
        let coefficients = &mut coefficients[..part.len()];
        unpack_ternary(packed, coefficients);
        engine.lift(coefficients, part);
    }
    engine.forward(out);
}

/// Transforms of the secret, by the index of the prime.
#[derive(Default)]
pub(crate) struct Kept {
    /// The most transforms kept.
    pub(crate) most: usize,
    transforms: BTreeMap<usize, Zeroizing<Vec<u64>>>,
}

impl Kept {
    /// The transform modulo a prime, computed now if there is room for it.
    pub(crate) fn of<E: Engine<Word = u64>>(
        &mut self,
        engine: &E,
        prime: usize,
        secret: &[u8],
    ) -> Option<&[u64]> {
        if self.transforms.len() < self.most {
            self.transforms.entry(prime).or_insert_with(|| {
                let mut transform = Zeroizing::new(vec![0; engine.n()]);
                expand(engine, secret, &mut transform);
                transform
            });
        }
        self.transforms.get(&prime).map(|transform| transform.as_slice())
    }
}
