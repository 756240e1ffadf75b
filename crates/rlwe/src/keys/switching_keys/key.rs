use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use keywright_ring::backend::UniformRow;
use keywright_ring::{Poly, Seed, StreamId};

use crate::{KeyElement, KeyIdentity, KeyLayout, KeyRow, KeySpec, Parameters, RlweError};

/// The uniform half of a key.
#[derive(Clone)]
pub enum UniformPart {
    /// One polynomial per digit, over the key's primes.
    Stored(Vec<KeyRow>),
    /// A seed, expanded at use; never in memory as a whole.
    Seeded(Seed),
}

impl UniformPart {
    /// Polynomials, one per digit.
    pub fn stored(rows: impl IntoIterator<Item = impl Into<KeyRow>>) -> Self {
        Self::Stored(rows.into_iter().map(Into::into).collect())
    }
}

/// A switching key: `dnum` rows `(b_j, a_j)` with `b_j = -a_j s + e_j + P g_j s'`.
///
/// `g_j` is 1 modulo the primes of digit `j` and 0 modulo the other ciphertext primes; `s'` is the source secret. For a
/// Galois element `g` the roles are `s' = s` and `s = s(X^(1/g))`: the automorphism follows the switch, so that
/// rotations of one ciphertext share everything before it.
#[derive(Clone)]
pub struct SwitchingKey {
    parameters: Parameters,
    layout: Arc<KeyLayout>,
    b: Vec<KeyRow>,
    a: UniformPart,
}

/// Domain separation of the streams of keys of different elements under one seed.
pub(crate) fn stream_object(element: KeyElement) -> u64 {
    match element {
        KeyElement::Galois(g) => g,
        KeyElement::Relinearization => 1 << 40,
        KeyElement::Secret(id) => 2 << 40 | id & ((1 << 40) - 1),
        KeyElement::DenseToSparse(weight) => 5 << 40 | weight as u64 & ((1 << 40) - 1),
        KeyElement::SparseToDense(weight) => 6 << 40 | weight as u64 & ((1 << 40) - 1),
        // Weights and Galois elements are below 2^20: N is at most 2^17.
        KeyElement::SparseToDenseGalois { weight, galois } => {
            7 << 40 | (galois & 0xF_FFFF) << 20 | weight as u64 & 0xF_FFFF
        }
        KeyElement::RingDown { from, part } => 8 << 40 | u64::from(from) << 20 | part as u64 & 0xF_FFFF,
        KeyElement::RingUp { from } => 9 << 40 | u64::from(from),
        KeyElement::RingUpToSparse { from, weight } => {
            10 << 40 | u64::from(from) << 20 | weight as u64 & 0xF_FFFF
        }
    }
}

impl SwitchingKey {
    /// Assembles a key of the ring that the spec names from its parts, as read from a file.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`]; [`RlweError::Count`] if rows or limbs are missing or left over.
    pub fn from_parts(
        parameters: &Parameters,
        identity: KeyIdentity,
        spec: KeySpec,
        b: Vec<impl Into<KeyRow>>,
        a: UniformPart,
    ) -> Result<Self, RlweError> {
        let layout = KeyLayout { identity, ..KeyLayout::new(parameters, spec)? };
        let b: Vec<KeyRow> = b.into_iter().map(Into::into).collect();
        let KeyLayout { spec, digits, .. } = &layout;
        let parameters = parameters.ring_named(spec.subring)?;
        let limbs = spec.level + 1 + spec.special.len();
        let stored: &[KeyRow] = match &a {
            UniformPart::Stored(rows) => rows,
            UniformPart::Seeded(_) => &[],
        };
        let expected = if spec.seeded { 0 } else { digits.len() };
        for (what, count, required) in
            [("rows of a key", b.len(), digits.len()), ("uniform rows of a key", stored.len(), expected)]
        {
            if count != required {
                return Err(RlweError::Count { what, count, min: required, max: required });
            }
        }
        for row in b.iter().chain(stored) {
            let count = row.limb_count();
            if count != limbs || row.n() != parameters.n() {
                return Err(RlweError::Count { what: "limbs of a key row", count, min: limbs, max: limbs });
            }
        }
        Ok(Self { parameters: parameters.clone(), layout: Arc::new(layout), b, a })
    }

    /// The same key with the error of a derived key.
    pub(crate) fn with_error_variance(self, error_variance: f64) -> Self {
        let layout = KeyLayout { error_variance, ..(*self.layout).clone() };
        Self { layout: Arc::new(layout), ..self }
    }

    /// Variance of one coefficient of the errors `e_j`: that of fresh Gaussians if the owner of the secret made the
    /// key, more for a derived one ([`crate::derive`]).
    pub fn error_variance(&self) -> f64 {
        self.layout.error_variance
    }

    /// The identity of the secret that made it.
    pub fn identity(&self) -> KeyIdentity {
        self.layout.identity
    }

    /// The description of the key.
    pub fn spec(&self) -> &KeySpec {
        &self.layout.spec
    }

    /// The layout of the key, without its residues.
    pub fn layout(&self) -> &Arc<KeyLayout> {
        &self.layout
    }

    /// The parameters of its ring.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The primes of each digit.
    pub fn digits(&self) -> &[Range<usize>] {
        &self.layout.digits
    }

    /// Bytes of the residues and the seed it holds.
    pub fn bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Rows of the half that depends on the secrets, over [`KeySpec::primes`].
    pub fn b_rows(&self) -> &[KeyRow] {
        &self.b
    }

    /// The uniform half.
    pub fn uniform(&self) -> &UniformPart {
        &self.a
    }

    /// Position of prime `index` among the limbs of a row.
    pub(crate) fn limb_position(&self, index: usize) -> Option<usize> {
        if index <= self.layout.spec.level {
            return Some(index);
        }
        self.layout.spec.special.iter().position(|&i| i == index).map(|i| i + self.layout.spec.level + 1)
    }

    /// Residues of `b_digit` modulo the prime at a limb position.
    #[inline]
    pub(crate) fn b_limb(&self, digit: usize, position: usize) -> &[u64] {
        self.b[digit].limb(position)
    }

    /// Some residues of `a_digit` modulo prime `index`, at a limb position, stored or as a stream.
    #[inline]
    pub(crate) fn a_row(
        &self,
        digit: usize,
        position: usize,
        index: usize,
        words: Range<usize>,
    ) -> UniformRow<'_> {
        match &self.a {
            UniformPart::Stored(rows) => UniformRow::Stored(&rows[digit].limb(position)[words]),
            UniformPart::Seeded(seed) => {
                UniformRow::Seeded(seed, stream_id(self.layout.spec.element, digit, index), words.start)
            }
        }
    }

    /// The same key for ciphertexts up to `level`: fewer limbs and digits, so fewer bytes. It can no longer be
    /// coalesced into the primes that were cut off.
    ///
    /// # Errors
    /// [`RlweError::Level`] if `level` is above the key's.
    pub fn truncate(&self, level: usize) -> Result<Self, RlweError> {
        if level > self.layout.spec.level {
            return Err(RlweError::Level { level, max: self.layout.spec.level, object: "the key" });
        }
        let layout = KeyLayout {
            identity: self.layout.identity,
            error_variance: self.layout.error_variance,
            ..KeyLayout::new(&self.parameters, KeySpec { level, ..self.layout.spec.clone() })?
        };
        let KeyLayout { spec, digits, .. } = &layout;
        let cut = |rows: &[KeyRow]| -> Vec<KeyRow> {
            rows[..digits.len()]
                .iter()
                .map(|row| {
                    let mut out = Poly::unspecified(row.n(), level + 1 + spec.special.len());
                    let kept = (0..=level).chain(self.layout.spec.level + 1..row.limb_count());
                    out.limbs_mut().zip(kept).for_each(|(limb, i)| limb.copy_from_slice(row.limb(i)));
                    out.into()
                })
                .collect()
        };
        let b = cut(&self.b);
        let a = match &self.a {
            UniformPart::Stored(rows) => UniformPart::Stored(cut(rows)),
            UniformPart::Seeded(seed) => UniformPart::Seeded(*seed),
        };
        Ok(Self { parameters: self.parameters.clone(), layout: Arc::new(layout), b, a })
    }
}

/// The stream of one limb of one digit. Digits are below 256: a key has at most 64 primes.
pub fn stream_id(element: KeyElement, digit: usize, prime: usize) -> StreamId {
    StreamId { object: stream_object(element), digit: digit as u8, limb: prime as u16 }
}

impl AsRef<KeyLayout> for SwitchingKey {
    fn as_ref(&self) -> &KeyLayout {
        &self.layout
    }
}

impl fmt::Debug for SwitchingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SwitchingKey({:?}, {} digits, {} bytes)",
            self.layout.spec,
            self.layout.digits.len(),
            self.bytes()
        )
    }
}
