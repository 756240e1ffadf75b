//! Switching keys that are sent limb by limb while they are made. For any keys this takes a few polynomials of memory.
//!
//! Every key is an object of its own, seeded: its `b_j = -a_j t + e_j + P g_j s'` over all of its primes, digit by
//! digit ([`keywright_rlwe::plan`]). A limb needs the transforms of its error and of the secrets modulo its prime,
//! which [`SmallEngine`] computes anew for each limb. If there is memory, the transforms of the secret are kept
//! ([`KeyStream::keep`]).
//!
//! # Resuming
//!
//! All randomness comes from a *session* of 32 secret bytes. To resume, store the session and the number of delivered
//! keys ([`KeyStream::skip_to`]), or the byte reached ([`crate::KeySetStream::seek`]).
//!
//! A key's randomness is a function of the session, the parameters, the secret and the key
//! (`randomness_derivation.rs`), not of its place in the list. The same key always has the same bytes, no matter when
//! it is made and which keys are requested with it; different keys have different errors. So a session can serve a
//! server that requests another list when the client returns. A list that repeats a key is refused: it would make a
//! client write any number of copies of the same bytes.
//!
//! In a child that was forked during a key, the generator takes a new key ([`SecretRng`]). Parent and child would then
//! write one uniform half with two errors, and more children with more errors, whose mean is small. So the child makes
//! the generator of the key anew.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use keywright_frame::packing::{pack_ternary, packed_len, packed_ternary_len};
use keywright_frame::{CHECKSUM_BYTES, Fields, IdentityBytes, KeyDescriptor, Kind};
use keywright_ring::sampling::{SecretRng, gaussian, sparse_ternary};
use keywright_ring::{Automorphism, Process, Seed};
use keywright_rlwe::{KeyElement, KeyIdentity, KeySpec, Parameters, RlweError, stream_id};
use zeroize::Zeroizing;

use crate::engine::SmallEngine;
use crate::engine::{BLOCK, Engine, values};
use crate::error::{frame_error, in_range, require_len};
use crate::keys::key::{secret_bytes, sub_uniform};
use crate::keys::randomness_derivation::RandomnessDerivation;
use crate::keys::secrets::{Kept, Secrets, automorphism, require_one_ring};
use crate::object::{ObjectWriter, ShortFields, Unfinished, keyed_len};
use crate::reduction::{Montgomery, Reduction, Shoup};
use crate::{ClientError, ClientParameters, Sink};

/// The progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Index of the key that was written last, whole or in part.
    pub key: usize,
    /// Bytes of written keys, including skipped ones.
    pub bytes: u64,
    /// Bytes of all keys.
    pub total: u64,
}

/// The keys of a list, one after another, each limb by limb.
pub struct KeyStream {
    parameters: Parameters,
    identity: IdentityBytes,
    /// The identity of the secret.
    key_identity: KeyIdentity,
    secret: Zeroizing<Vec<u8>>,
    derivation: RandomnessDerivation,
    specs: Vec<KeySpec>,
    digits: Vec<Vec<Range<usize>>>,
    /// Ephemeral secrets sampled so far, packed, by weight.
    sampled: BTreeMap<usize, Zeroizing<Vec<u8>>>,
    next: usize,
    written: u64,
    total: u64,
    making: Option<Making>,
    memory: Memory,
    kept: Kept,
}

/// A key whose first limbs were written.
struct Making {
    key: usize,
    rng: SecretRng,
    /// The process of the generator.
    process: Process,
    seed: Seed,
    object: Unfinished,
    automorphism: Option<Automorphism>,
    /// Errors of the current row: sampled row by row.
    errors: Zeroizing<Vec<i8>>,
    limbs: usize,
}

/// Three limbs, allocated once.
struct Memory {
    limb: Zeroizing<Vec<u64>>,
    target: Zeroizing<Vec<u64>>,
    scratch: Zeroizing<Vec<u64>>,
}

impl KeyStream {
    /// The keys that a server requests. `secret` is packed; `session` is secret.
    ///
    /// # Errors
    /// [`ClientError::Rlwe`] for an illegal spec, above all one that exceeds the 128-bit bound, and for one that
    /// switches from another owner's secret, or that the list repeats; [`ClientError::ForeignParameters`] if the
    /// parameters are not the client's; [`ClientError::Range`] for a spec that is not seeded.
    pub fn new(
        client: &ClientParameters,
        parameters: &Parameters,
        secret: &[u8],
        specs: &[KeySpec],
        session: &Zeroizing<[u8; 32]>,
    ) -> Result<Self, ClientError> {
        let (log_n, q0) = (parameters.log_n(), parameters.modulus(0).value());
        // Parameters without the check of keys are not those of a client that relies on it.
        if (log_n, q0, parameters.secret(), parameters.security())
            != (client.log_n(), client.modulus().value(), client.literal().secret, client.security())
        {
            return Err(ClientError::ForeignParameters("list of keys"));
        }
        require_len("bytes of a secret", secret.len(), secret_bytes(log_n))?;
        let (mut digits, mut different) = (Vec::with_capacity(specs.len()), BTreeSet::new());
        for spec in specs {
            if !different.insert(spec) {
                return Err(RlweError::Count { what: "copies of a key", count: 2, min: 1, max: 1 }.into());
            }
            in_range("seeded flag of a client's key", spec.seeded.into(), 1, 1)?;
            if let KeyElement::Secret(id) = spec.element {
                return Err(RlweError::SourceSecret(id).into());
            }
            require_one_ring(spec, log_n)?;
            digits.push(spec.validate(parameters)?);
        }
        let identity = client.literal().identity;
        let words = || Zeroizing::new(vec![0u64; parameters.n()]);
        let mut stream = Self {
            parameters: parameters.clone(),
            identity,
            key_identity: KeyIdentity::of_packed(secret, parameters.secret()),
            secret: Zeroizing::new(secret.to_vec()),
            derivation: RandomnessDerivation::new(session, &identity, parameters.literal(), secret),
            specs: specs.to_vec(),
            digits,
            sampled: BTreeMap::new(),
            next: 0,
            written: 0,
            total: 0,
            making: None,
            memory: Memory { limb: words(), target: words(), scratch: words() },
            kept: Kept::default(),
        };
        stream.total = (0..specs.len()).map(|i| stream.key_bytes(i)).sum();
        Ok(stream)
    }

    /// Keeps transforms of the secret, `8 N` bytes for each prime, in at most `bytes` bytes: a limb then takes one
    /// transform instead of two. They are wiped when the stream is dropped.
    pub fn keep(&mut self, bytes: usize) {
        self.kept.most = bytes / (8 * self.parameters.n());
    }

    /// Number of keys.
    pub fn count(&self) -> usize {
        self.specs.len()
    }

    /// Index of the next key to begin: the number of keys begun or skipped.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Bytes of all keys.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// The server's parameters, as named in the headers of the keys.
    pub(crate) fn identity(&self) -> &IdentityBytes {
        &self.identity
    }

    /// Bytes of key `index` as an object.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn key_bytes(&self, index: usize) -> u64 {
        let (spec, digits) = (&self.specs[index], self.digits[index].len());
        keyed_len(KeyDescriptor::bytes(spec), 0) as u64 + (digits * self.row_bytes(spec)) as u64
    }

    fn row_bytes(&self, spec: &KeySpec) -> usize {
        let n = self.parameters.n();
        spec.primes().map(|i| packed_len(n, self.parameters.modulus(i).bits())).sum()
    }

    /// Skips delivered keys, up to key `index`.
    ///
    /// # Errors
    /// [`ClientError::Range`] for a key that was begun already, or beyond the last key.
    pub fn skip_to(&mut self, index: usize) -> Result<(), ClientError> {
        in_range("key at which to resume", index as u64, self.next as u64, self.specs.len() as u64)?;
        (self.next, self.making) = (index, None);
        self.written = (0..index).map(|i| self.key_bytes(i)).sum();
        Ok(())
    }

    /// Returns to the first key: the same bytes once more.
    pub fn rewind(&mut self) {
        (self.next, self.written, self.making) = (0, 0, None);
    }

    /// Makes the rest of the current key, or the next one, and writes it; `false` if none is left. Calls `progress`
    /// after every limb.
    ///
    /// # Errors
    /// As [`Self::write_part`].
    pub fn write_next(
        &mut self,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, ClientError> {
        loop {
            let Some(done) = self.write_part(sink)? else { return Ok(false) };
            progress(done);
            if self.making.is_none() {
                return Ok(true);
            }
        }
    }

    /// Makes the next limb and writes it, with a key's header before its first limb and its checksum after its last
    /// one. `None` after the last key. A part takes the memory of a packed limb.
    ///
    /// After an error the stream is at the next key; skipping to the failed key makes it again.
    ///
    /// # Errors
    /// [`ClientError::Sink`]; [`ClientError::Ring`] for a weight above `N`.
    pub fn write_part(&mut self, sink: &mut dyn Sink) -> Result<Option<Progress>, ClientError> {
        let mut making = match self.making.take() {
            Some(making) => making,
            None if self.next == self.specs.len() => return Ok(None),
            None => self.begin(sink)?,
        };
        if !making.process.is_current() {
            let rows = making.limbs.div_ceil(self.specs[making.key].primes().count());
            (making.rng, making.process) = (self.generator(making.key, rows), Process::current());
        }
        let key = making.key;
        self.making = self.write_limb(making, sink)?;
        Ok(Some(Progress { key, bytes: self.written, total: self.total }))
    }

    /// Writes the header of the next key.
    fn begin(&mut self, sink: &mut dyn Sink) -> Result<Making, ClientError> {
        let key = self.next;
        self.next += 1;
        self.written = (0..key).map(|i| self.key_bytes(i)).sum();
        let (spec, digits) = (&self.specs[key], &self.digits[key]);
        // Before anything is drawn, because the sink of the header may fork.
        let process = Process::current();
        let mut rng = self.derivation.key(spec, digits);
        let digits = digits.len();
        let weight = spec.element.ephemeral_weight();
        let seed = rng.public_seed();
        let mut fields = ShortFields::default();
        let descriptor = KeyDescriptor { spec: spec.clone(), digits, seed: Some(seed) };
        descriptor.encode(&mut fields).map_err(frame_error("the switching key"))?;
        let body = digits * self.row_bytes(spec);
        if let Some(weight) = weight {
            self.sample_ephemeral(weight)?;
        }
        let (identity, key_identity) = (&self.identity, &self.key_identity);
        let fields = fields.as_slice();
        let object = ObjectWriter::start(sink, Kind::SwitchingKey, identity, key_identity, fields, body)?;
        self.written += keyed_len(fields.len(), 0) as u64 - CHECKSUM_BYTES as u64;
        let object = object.pause();
        let automorphism = automorphism(self.parameters.log_n(), self.specs[key].element)?;
        let errors = Zeroizing::new(Vec::new());
        Ok(Making { key, rng, process, seed, object, automorphism, errors, limbs: 0 })
    }

    /// The generator of a key whose first rows have drawn their errors.
    fn generator(&self, key: usize, rows: usize) -> SecretRng {
        let mut rng = self.derivation.key(&self.specs[key], &self.digits[key]);
        let _ = rng.public_seed();
        (0..rows).for_each(|_| drop(errors(&mut rng, self.parameters.n())));
        rng
    }

    fn sample_ephemeral(&mut self, weight: usize) -> Result<(), ClientError> {
        if !self.sampled.contains_key(&weight) {
            let n = self.parameters.n();
            let mut coefficients = Zeroizing::new(vec![0; n]);
            sparse_ternary(&mut self.derivation.ephemeral(weight), weight, &mut coefficients)?;
            let mut packed = Zeroizing::new(vec![0; packed_ternary_len(n)]);
            pack_ternary(&coefficients, &mut packed);
            self.sampled.insert(weight, packed);
        }
        Ok(())
    }

    /// Writes a limb of a key; `None` if that was its last one.
    fn write_limb(&mut self, making: Making, sink: &mut dyn Sink) -> Result<Option<Making>, ClientError> {
        let log_n = self.parameters.log_n();
        let (prime, _) = self.place(&making);
        let q = self.parameters.modulus(prime).value();
        if q >> Shoup::BITS == 0 {
            self.write_limb_with(&SmallEngine::<Shoup>::new(log_n, q)?, making, sink)
        } else {
            self.write_limb_with(&SmallEngine::<Montgomery<u64>>::new(log_n, q)?, making, sink)
        }
    }

    /// The prime of the next limb of a key, and its row.
    fn place(&self, making: &Making) -> (usize, usize) {
        let spec = &self.specs[making.key];
        let count = spec.primes().count();
        (spec.primes().nth(making.limbs % count).unwrap_or_default(), making.limbs / count)
    }

    fn write_limb_with<R: Reduction<Word = u64>>(
        &mut self,
        engine: &SmallEngine<R>,
        mut making: Making,
        sink: &mut dyn Sink,
    ) -> Result<Option<Making>, ClientError> {
        let (prime, row) = self.place(&making);
        let Self { parameters, secret, sampled, kept, memory: Memory { limb, target, scratch }, .. } = self;
        let (spec, digits) = (&self.specs[making.key], &self.digits[making.key]);
        let count = spec.primes().count();
        if making.limbs.is_multiple_of(count) {
            making.errors = errors(&mut making.rng, limb.len());
        }
        let secrets = Secrets::new(parameters.log_n(), spec.element, secret, sampled)?;
        let automorphism = making.automorphism.as_ref();
        let kept = kept.of(engine, prime, secret);
        let m = *engine.modulus();
        lift_bytes(engine, &making.errors, limb);
        engine.forward(limb);
        secrets.target(engine, kept, automorphism, target, scratch);
        sub_uniform(engine, &making.seed, stream_id(spec.element, row, prime), 0, target, limb);
        if digits[row].contains(&prime) {
            // P s' at the primes of the digit.
            secrets.source(engine, kept, scratch);
            engine.mul_add_constant(limb, scratch, parameters.product(&spec.special, &m));
        }
        making.limbs += 1;
        let mut object = making.object.resume(sink);
        object.residues(m.bits(), limb)?;
        self.written += packed_len(limb.len(), m.bits()) as u64;
        if making.limbs == digits.len() * count {
            object.finish()?;
            self.written += CHECKSUM_BYTES as u64;
            return Ok(None);
        }
        Ok(Some(Making { object: object.pause(), ..making }))
    }
}

/// One error polynomial: no error is above 29, so each takes a byte.
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

impl core::fmt::Debug for KeyStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "KeyStream({} of {} keys, {} bytes)", self.next, self.specs.len(), self.total)
    }
}
