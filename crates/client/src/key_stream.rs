//! Switching keys made limb by limb and sent as they are made: a few polynomials of memory, whatever the keys.
//!
//! Every key is an object of its own, seeded: its `b_j = -a_j t + e_j + P g_j s'` over all of its primes, digit by digit ([`keywright_rlwe::plan`]). A limb needs the
//! transforms of its error and of the secrets modulo its prime, which are made anew for each limb, with [`Compact`], instead of being kept.
//!
//! # Interrupted
//! All randomness comes from a *session* of 32 secret bytes: first one generator for the ephemeral secrets, then one for each key, so key `i` is the same bytes whenever
//! it is made. Who stores the session beside its secret goes on after the last key that arrived ([`KeyStream::skip_to`]).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::sampling::{SecretRng, gaussian, sparse_ternary};
use keywright_ring::{Automorphism, Modulus, galois_inverse};
use keywright_rlwe::{KeyElement, KeySpec, Parameters, RlweError, stream_id};
use zeroize::Zeroizing;

use crate::compact::Compact;
use crate::engine::{BLOCK, Engine};
use crate::error::{in_range, require_len};
use crate::frame::{
    Fields, Identity, Kind, ObjectWriter, object_len, pack_ternary, packed_len, unpack_ternary, values,
};
use crate::key::{secret_bytes, sub_uniform};
use crate::reduction::Montgomery;
use crate::{ClientError, ClientParameters, Sink};

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Place of the key that is being made.
    pub key: usize,
    /// Bytes of keys that have been written, those that were skipped among them.
    pub bytes: u64,
    /// Bytes of all keys.
    pub total: u64,
}

/// The keys of a list, one after another.
pub struct KeyStream<'s> {
    parameters: Parameters,
    identity: Identity,
    secret: &'s [u8],
    specs: Vec<KeySpec>,
    digits: Vec<Vec<Range<usize>>>,
    ephemeral: BTreeMap<usize, SecretRng>,
    /// Packed, by weight, once they have been sampled.
    sampled: BTreeMap<usize, Zeroizing<Vec<u8>>>,
    keys: SecretRng,
    next: usize,
    written: u64,
    total: u64,
}

impl<'s> KeyStream<'s> {
    /// The keys that a server asked for. `secret` is packed, `session` secret.
    ///
    /// # Errors
    /// [`ClientError::Rlwe`] for a spec that is not legal, above all one above the 128-bit bound, and for one that switches from a secret of somebody
    /// else; [`ClientError::ForeignParameters`] if the parameters are not the client's; [`ClientError::Range`] for a spec that is not seeded.
    pub fn new(
        client: &ClientParameters,
        parameters: &Parameters,
        secret: &'s [u8],
        specs: &[KeySpec],
        session: &Zeroizing<[u8; 32]>,
    ) -> Result<Self, ClientError> {
        let (log_n, q0) = (parameters.log_n(), parameters.modulus(0).value());
        if (log_n, q0, parameters.secret())
            != (client.log_n(), client.modulus().value(), client.literal().secret)
        {
            return Err(ClientError::ForeignParameters("list of keys"));
        }
        require_len("bytes of a secret", secret.len(), secret_bytes(log_n))?;
        let mut digits = Vec::with_capacity(specs.len());
        let mut ephemeral = BTreeMap::new();
        let mut session = SecretRng::from_entropy(session);
        let mut ephemerals = session.split();
        for spec in specs {
            in_range("seeded flag of a client's key", spec.seeded.into(), 1, 1)?;
            if let KeyElement::Secret(id) = spec.element {
                return Err(RlweError::SourceSecret(id).into());
            }
            digits.push(spec.validate(parameters)?);
        }
        let mut weights: Vec<usize> =
            specs.iter().filter_map(|spec| spec.element.ephemeral_weight()).collect();
        weights.sort_unstable();
        weights.dedup();
        for weight in weights {
            ephemeral.insert(weight, ephemerals.split());
        }
        let mut stream = Self {
            parameters: parameters.clone(),
            identity: client.literal().identity,
            secret,
            specs: specs.to_vec(),
            digits,
            ephemeral,
            sampled: BTreeMap::new(),
            keys: session,
            next: 0,
            written: 0,
            total: 0,
        };
        stream.total = (0..specs.len()).map(|i| stream.key_bytes(i)).sum();
        Ok(stream)
    }

    /// Number of keys.
    pub fn count(&self) -> usize {
        self.specs.len()
    }

    /// Place of the next key: as many have been written or skipped.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Bytes of all keys.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes of key `index` as an object.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn key_bytes(&self, index: usize) -> u64 {
        let (spec, digits) = (&self.specs[index], self.digits[index].len());
        object_len(descriptor_bytes(spec), 0) as u64 + (digits * self.row_bytes(spec)) as u64
    }

    fn row_bytes(&self, spec: &KeySpec) -> usize {
        let n = self.parameters.n();
        spec.primes().map(|i| packed_len(n, self.parameters.modulus(i).bits())).sum()
    }

    /// Passes over keys that have arrived, up to key `index`.
    ///
    /// # Errors
    /// [`ClientError::Range`] for a key that was written already, or more keys than there are.
    pub fn skip_to(&mut self, index: usize) -> Result<(), ClientError> {
        in_range("key to go on with", index as u64, self.next as u64, self.specs.len() as u64)?;
        while self.next < index {
            let _ = self.keys.split();
            self.written += self.key_bytes(self.next);
            self.next += 1;
        }
        Ok(())
    }

    /// Makes the next key and writes it; `false` if there is none left. `progress` is told after every limb.
    ///
    /// After an error the stream is at the next key: a new stream of the same session that skips to the one that failed makes it again.
    ///
    /// # Errors
    /// [`ClientError::Sink`]; [`ClientError::Ring`] for a weight above `N`.
    pub fn write_next(
        &mut self,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, ClientError> {
        if self.next == self.specs.len() {
            return Ok(false);
        }
        let index = self.next;
        self.next += 1;
        let start = self.written;
        self.written += self.key_bytes(index);
        let mut rng = self.keys.split();
        let spec = self.specs[index].clone();
        if let Some(weight) = spec.element.ephemeral_weight() {
            self.sample_ephemeral(weight)?;
        }
        self.write_key(&spec, index, start, &mut rng, sink, progress)?;
        Ok(true)
    }

    fn sample_ephemeral(&mut self, weight: usize) -> Result<(), ClientError> {
        if let (false, Some(rng)) = (self.sampled.contains_key(&weight), self.ephemeral.get_mut(&weight)) {
            let n = self.parameters.n();
            let mut coefficients = Zeroizing::new(vec![0; n]);
            sparse_ternary(rng, weight, &mut coefficients)?;
            let mut packed = Zeroizing::new(vec![0; n / 4]);
            pack_ternary(&coefficients, &mut packed);
            self.sampled.insert(weight, packed);
        }
        Ok(())
    }

    fn write_key(
        &self,
        spec: &KeySpec,
        index: usize,
        start: u64,
        rng: &mut SecretRng,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ClientError> {
        let (parameters, digits) = (&self.parameters, &self.digits[index]);
        let (n, log_n) = (parameters.n(), parameters.log_n());
        let seed = rng.public_seed();
        let errors: Vec<Zeroizing<Vec<i8>>> = digits.iter().map(|_| errors(rng, n)).collect();
        let secrets = self.secrets(spec.element)?;

        let fields = descriptor(spec, digits.len(), &seed.0);
        let body = digits.len() * self.row_bytes(spec);
        let mut object =
            ObjectWriter::start(sink, Kind::SwitchingKey, &self.identity, fields.as_slice(), body)?;
        let mut limb = Zeroizing::new(vec![0u64; n]);
        let mut target = Zeroizing::new(vec![0u64; n]);
        let mut scratch = Zeroizing::new(vec![0u64; n]);
        let mut bytes = start + object_len(fields.as_slice().len(), 0) as u64 - 4;
        for (j, digit) in digits.iter().enumerate() {
            for prime in spec.primes() {
                let engine = Compact::<Montgomery<u64>>::new(log_n, parameters.modulus(prime).value())?;
                let m = *engine.modulus();
                lift_bytes(&engine, &errors[j], &mut limb);
                engine.forward(&mut limb);
                secrets.target(&engine, &mut target, &mut scratch);
                sub_uniform(&engine, &seed, stream_id(spec.element, j, prime), 0, &target, &mut limb);
                if digit.contains(&prime) {
                    // P s' at the primes of the digit.
                    secrets.source(&engine, &mut scratch);
                    let product = m.shoup(parameters.product(&spec.special, &m));
                    for (b, &s) in limb.iter_mut().zip(scratch.iter()) {
                        *b = m.add(*b, m.mul_shoup(s, product));
                    }
                }
                object.residues(m.bits(), &limb)?;
                bytes += packed_len(n, m.bits()) as u64;
                progress(Progress { key: index, bytes, total: self.total });
            }
        }
        object.finish()
    }

    /// The secrets of a key.
    fn secrets(&self, element: KeyElement) -> Result<Secrets<'_>, ClientError> {
        let dense = self.secret;
        let ephemeral = || match element.ephemeral_weight().and_then(|weight| self.sampled.get(&weight)) {
            Some(packed) => &packed[..],
            // Sampled before it is asked for.
            None => &[][..],
        };
        let log_n = self.parameters.log_n();
        let inverse = |g| Ok::<_, ClientError>(Some(Automorphism::new(log_n, galois_inverse(log_n, g))?));
        Ok(match element {
            KeyElement::Galois(g) => {
                Secrets { target: dense, automorphism: inverse(g)?, source: dense, squared: false }
            }
            KeyElement::Relinearization => {
                Secrets { target: dense, automorphism: None, source: dense, squared: true }
            }
            KeyElement::DenseToSparse(_) => {
                Secrets { target: ephemeral(), automorphism: None, source: dense, squared: false }
            }
            KeyElement::SparseToDense(_) => {
                Secrets { target: dense, automorphism: None, source: ephemeral(), squared: false }
            }
            KeyElement::SparseToDenseGalois { galois, .. } => {
                Secrets { target: dense, automorphism: inverse(galois)?, source: ephemeral(), squared: false }
            }
            KeyElement::Secret(id) => return Err(RlweError::SourceSecret(id).into()),
        })
    }
}

/// The secrets that one key is made of, packed.
struct Secrets<'s> {
    /// `t(X^g)` is the secret switched to, for the inverse of the key's Galois element.
    target: &'s [u8],
    automorphism: Option<Automorphism>,
    /// The secret switched from.
    source: &'s [u8],
    squared: bool,
}

impl Secrets<'_> {
    /// What is switched to, in evaluation form.
    fn target<E: Engine<Word = u64>>(&self, engine: &E, out: &mut [u64], scratch: &mut [u64]) {
        let Some(automorphism) = &self.automorphism else { return expand(engine, self.target, out) };
        expand(engine, self.target, scratch);
        for (i, word) in out.iter_mut().enumerate() {
            *word = scratch[automorphism.source(i)];
        }
    }

    /// What is switched from, in evaluation form.
    fn source<E: Engine<Word = u64>>(&self, engine: &E, out: &mut [u64]) {
        expand(engine, self.source, out);
        if self.squared {
            let m: &Modulus = engine.modulus();
            out.iter_mut().for_each(|s| *s = m.mul(*s, *s));
        }
    }
}

fn expand<E: Engine<Word = u64>>(engine: &E, packed: &[u8], out: &mut [u64]) {
    let mut coefficients = values();
    for (packed, part) in packed.chunks(BLOCK / 4).zip(out.chunks_mut(BLOCK)) {
        let coefficients = &mut coefficients[..part.len()];
        unpack_ternary(packed, coefficients);
        engine.lift(coefficients, part);
    }
    engine.forward(out);
}

/// One error polynomial: no error is above 29, so a byte each.
fn errors(rng: &mut SecretRng, n: usize) -> Zeroizing<Vec<i8>> {
    let mut out = Zeroizing::new(vec![0i8; n]);
    let mut samples = values();
    for part in out.chunks_mut(BLOCK) {
        let samples = &mut samples[..part.len()];
        gaussian(rng, samples);
        part.iter_mut().zip(samples.iter()).for_each(|(byte, &sample)| *byte = sample as i8);
    }
    out
}

fn lift_bytes<E: Engine<Word = u64>>(engine: &E, bytes: &[i8], out: &mut [u64]) {
    let mut samples = values();
    for (bytes, part) in bytes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let samples = &mut samples[..part.len()];
        samples.iter_mut().zip(bytes).for_each(|(sample, &byte)| *sample = byte.into());
        engine.lift(samples, part);
    }
}

fn descriptor_bytes(spec: &KeySpec) -> usize {
    1 + 8 + 4 + spec.special.len() + 1 + 32
}

/// Spec, number of digits and seed. Levels, digits and indices of primes are below 256: parameters have at most 128 primes.
fn descriptor(spec: &KeySpec, digits: usize, seed: &[u8; 32]) -> Fields {
    let (tag, value) = match spec.element {
        KeyElement::Galois(element) => (0, element),
        KeyElement::Relinearization => (1, 0),
        KeyElement::Secret(id) => (2, id),
        KeyElement::DenseToSparse(weight) => (3, weight as u64),
        KeyElement::SparseToDense(weight) => (4, weight as u64),
        KeyElement::SparseToDenseGalois { weight, galois } => (5, galois << 32 | weight as u64),
    };
    let mut fields = Fields::new();
    fields.put(&[tag]).put(&value.to_le_bytes());
    fields.put(&[spec.level as u8, spec.alpha as u8, spec.seeded.into(), spec.special.len() as u8]);
    spec.special.iter().for_each(|&index| _ = fields.put(&[index as u8]));
    fields.put(&[digits as u8]).put(seed);
    fields
}

impl core::fmt::Debug for KeyStream<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "KeyStream({} of {} keys, {} bytes)", self.next, self.specs.len(), self.total)
    }
}
