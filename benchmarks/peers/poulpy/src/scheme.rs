//! Keys and ciphertexts of one parameter set, and their measurements.

use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

use poulpy_ckks::SlotsKind;
use poulpy_ckks::prelude::*;
use poulpy_core::api::{
    GLWEAutomorphismKeyPreparedFactory, GLWESecretPreparedFactory, GLWESecretSampling,
    GLWETensorKeyPreparedFactory,
};
use poulpy_core::layouts::{
    GLWEAutomorphismKey, GLWEAutomorphismKeyAlloc, GLWEAutomorphismKeyLayout, GLWEAutomorphismKeyPrepared,
    GLWELayout, GLWESecret, GLWESecretAlloc, GLWESecretPrepared, GLWETensorKey, GLWETensorKeyAlloc,
    GLWETensorKeyLayout, GLWETensorKeyPrepared, Rank,
};
use poulpy_core::{GLWEAutomorphismKeyEncryptSk, GLWETensorKeyEncryptSk};
use poulpy_hal::AlignedBuf;
use poulpy_hal::api::{ScratchOwnedAlloc, ScratchOwnedBorrow};
use poulpy_hal::layouts::{Module, ScratchOwned, Standard};
use poulpy_hal::source::Source;

use super::{BACKEND, Engine};
use crate::options::{Options, ParameterSet};
use crate::record::{Bench, Subject};

type Ciphertext = CKKSCiphertext<AlignedBuf, i64, Standard>;

/// Makes the keys, then measures every level.
pub fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let bench = Bench::new(options, BACKEND);
    let mut scheme = Scheme::new(&options.set);
    scheme.measure_keys(&bench)?;
    for &level in &options.set.levels {
        scheme.measure_level(&bench, level)?;
    }
    Ok(())
}

/// Bits above the scale of a decrypted plaintext. Its slots are at most 1, and its decoder takes at most 127 bits.
const HEADROOM_BITS: usize = 12;

/// One parameter set with its secret, its keys and the values in every ciphertext.
struct Scheme<'a> {
    set: &'a ParameterSet,
    module: Module<Engine>,
    secret: GLWESecret<AlignedBuf, i64>,
    prepared_secret: GLWESecretPrepared<AlignedBuf, Engine>,
    tensor_key: Option<GLWETensorKeyPrepared<AlignedBuf, Engine>>,
    rotation_keys: HashMap<i64, GLWEAutomorphismKeyPrepared<AlignedBuf, Engine>>,
    scratch: ScratchOwned<Engine>,
    mask: Source,
    noise: Source,
    values: Vec<f64>,
}

impl<'a> Scheme<'a> {
    fn new(set: &'a ParameterSet) -> Self {
        let n = 1usize << set.log_n;
        let module = Module::<Engine>::new(n as u64);
        let layout = GLWELayout {
            n: n.into(),
            base2k: set.poulpy.base2k.into(),
            k: set.poulpy.k.into(),
            rank: Rank(1),
        };
        let mut secret = module.glwe_secret_alloc_from_infos(&layout);
        module.glwe_secret_fill_ternary_hw(&mut secret, set.poulpy.hamming_weight, &mut Source::new([0; 32]));
        let mut prepared_secret = module.glwe_secret_prepared_alloc_from_infos(&layout);
        module.glwe_secret_prepare(&mut prepared_secret, &secret);
        let ciphertext = module.ckks_ciphertext_alloc_from_glwe_infos(&layout);
        let bytes = module.ckks_all_ops_tmp_bytes(&ciphertext, &ciphertext, &tensor_layout(set));
        let values = (0..n / 2).map(|i| (i as f64 * 0.618_033_988_749_894_9).fract() * 2.0 - 1.0).collect();
        Self {
            set,
            module,
            secret,
            prepared_secret,
            tensor_key: None,
            rotation_keys: HashMap::new(),
            scratch: ScratchOwned::alloc(bytes),
            mask: Source::new([1; 32]),
            noise: Source::new([2; 32]),
            values,
        }
    }

    /// Makes the keys that the requested works need. A key's time includes its preparation, which every operation
    /// needs.
    fn measure_keys(&mut self, bench: &Bench) -> Result<(), Box<dyn Error>> {
        if bench.wants(&["multiply"]) {
            let layout = tensor_layout(self.set);
            let mut key = self.module.glwe_tensor_key_alloc_from_infos(&layout);
            let scratch = &mut self.scratch.borrow();
            self.module.glwe_tensor_key_encrypt_sk(
                &mut key,
                &self.secret,
                &mut self.noise,
                &mut self.mask,
                scratch,
            );
            let mut prepared = self.module.glwe_tensor_key_prepared_alloc_from_infos(&layout);
            self.module.glwe_tensor_key_prepare(&mut prepared, &key, scratch);
            self.tensor_key = Some(prepared);
        }
        if !bench.wants(&["rotate", "keygen"]) {
            return Ok(());
        }
        let layout = rotation_layout(self.set);
        let element = self.module.ckks_galois_element(1);
        let mut seconds = Vec::new();
        for _ in 0..bench.runs {
            let start = Instant::now();
            let mut key = self.module.glwe_automorphism_key_alloc_from_infos(&layout);
            let scratch = &mut self.scratch.borrow();
            self.module.glwe_automorphism_key_encrypt_sk(
                &mut key,
                element,
                &self.secret,
                &mut self.noise,
                &mut self.mask,
                scratch,
            );
            let mut prepared = self.module.glwe_automorphism_key_prepared_alloc_from_infos(&layout);
            self.module.glwe_automorphism_key_prepare(&mut prepared, &key, scratch);
            seconds.push(start.elapsed().as_secs_f64());
            self.rotation_keys.insert(element, prepared);
        }
        if bench.wants(&["keygen"]) {
            let level = self.set.max_level();
            let ciphertext = self.fresh(level)?;
            let mut rotated = self.empty(self.set.bits(level));
            self.rotate(&mut rotated, &ciphertext)?;
            let error = self.error(&rotated, &self.rotated_values())?;
            bench.emit(
                &Subject { work: "keygen", level, bytes: self.rotation_key_bytes() },
                seconds,
                error,
            )?;
        }
        Ok(())
    }

    /// Measures every operation on fresh ciphertexts of one level.
    fn measure_level(&mut self, bench: &Bench, level: usize) -> Result<(), Box<dyn Error>> {
        let bits = self.set.bits(level);
        let x = self.fresh(level)?;
        if bench.wants(&["rotate"]) {
            let mut rotated = self.empty(bits);
            let seconds = bench.time(|| self.rotate(&mut rotated, &x))?;
            let error = self.error(&rotated, &self.rotated_values())?;
            bench.emit(
                &Subject { work: "rotate", level, bytes: self.rotation_key_bytes() },
                seconds,
                error,
            )?;
        }
        if bench.wants(&["multiply"]) {
            let y = self.fresh(level)?;
            let mut product = self.empty(bits - self.set.log_scale);
            let seconds = bench.time(|| self.multiply(&mut product, &x, &y))?;
            let squares: Vec<f64> = self.values.iter().map(|value| value * value).collect();
            let error = self.error(&product, &squares)?;
            let bytes = GLWETensorKey::<AlignedBuf, i64>::bytes_of_from_infos(&tensor_layout(self.set));
            bench.emit(&Subject { work: "multiply", level, bytes }, seconds, error)?;
        }
        if bench.wants(&["decrypt"]) {
            let mut found = Vec::new();
            let seconds = bench.time(|| {
                found = self.decrypt(&x)?;
                Ok::<(), Box<dyn Error>>(())
            })?;
            let bytes = 2 * 8 * (1usize << self.set.log_n) * bits.div_ceil(self.set.poulpy.base2k);
            bench.emit(
                &Subject { work: "decrypt", level, bytes },
                seconds,
                distance(&found, &self.values),
            )?;
        }
        Ok(())
    }

    fn empty(&self, bits: usize) -> Ciphertext {
        self.module.ckks_ciphertext_alloc(self.set.poulpy.base2k.into(), bits.into())
    }

    fn plaintext(&self, bits: usize) -> CKKSPlaintext<AlignedBuf, i64, Standard> {
        let (slots, base2k) = (self.values.len(), self.set.poulpy.base2k);
        let mut plain = self.module.ckks_plaintext_alloc_from_slots(slots, base2k.into(), bits.into());
        plain.set_meta(GLWEPlaintextMeta {
            scale: Scale::Log(self.set.log_scale),
            slots: SlotsKind::Complex,
            log_sparsity: 0,
        });
        plain
    }

    /// Encodes the values and encrypts them with the secret key.
    fn fresh(&mut self, level: usize) -> Result<Ciphertext, Box<dyn Error>> {
        let bits = self.set.bits(level);
        let mut plain = self.plaintext(bits);
        let zeros = vec![0.0; self.values.len()];
        let scratch = &mut self.scratch.borrow();
        self.module.ckks_encode_slots_host_into(&mut plain, &self.values, &zeros, scratch)?;
        let mut ciphertext = self.module.ckks_ciphertext_alloc(self.set.poulpy.base2k.into(), bits.into());
        self.module.ckks_encrypt_sk(
            &mut ciphertext,
            &plain,
            &self.prepared_secret,
            &mut self.noise,
            &mut self.mask,
            scratch,
        )?;
        Ok(ciphertext)
    }

    fn rotate(&mut self, to: &mut Ciphertext, from: &Ciphertext) -> Result<(), Box<dyn Error>> {
        self.module.ckks_rotate_into(1, to, from, &self.rotation_keys, &mut self.scratch.borrow())?;
        Ok(())
    }

    /// Multiplies, relinearizes and rescales. The product has `log_scale` fewer bits.
    fn multiply(
        &mut self,
        to: &mut Ciphertext,
        x: &Ciphertext,
        y: &Ciphertext,
    ) -> Result<(), Box<dyn Error>> {
        let key = self.tensor_key.as_ref().ok_or("the tensor key was not made")?;
        self.module.ckks_mul_into(to, x, y, key, &mut self.scratch.borrow())?;
        Ok(())
    }

    /// Decrypts and decodes. The imaginary parts are zero and are omitted.
    fn decrypt(&mut self, ciphertext: &Ciphertext) -> Result<Vec<f64>, Box<dyn Error>> {
        let mut plain = self.plaintext(self.set.log_scale + HEADROOM_BITS);
        let scratch = &mut self.scratch.borrow();
        self.module.ckks_decrypt(&mut plain, ciphertext, &self.prepared_secret, scratch)?;
        let (mut re, mut im) = (vec![0.0; self.values.len()], vec![0.0; self.values.len()]);
        self.module.ckks_decode_slots_host_into(&plain, &mut re, &mut im, scratch)?;
        Ok(re)
    }

    fn error(&mut self, ciphertext: &Ciphertext, wanted: &[f64]) -> Result<f64, Box<dyn Error>> {
        Ok(distance(&self.decrypt(ciphertext)?, wanted))
    }

    fn rotated_values(&self) -> Vec<f64> {
        let mut values = self.values.clone();
        values.rotate_left(1);
        values
    }

    fn rotation_key_bytes(&self) -> usize {
        GLWEAutomorphismKey::<AlignedBuf, i64>::bytes_of_from_infos(&rotation_layout(self.set))
    }
}

/// Digit bits, number of digits, and the guard below them: one digit and the growth by the ring, `log N`.
fn gadget(set: &ParameterSet) -> (usize, usize, usize) {
    let digit = set.poulpy.dsize * set.poulpy.base2k;
    (digit, set.poulpy.k.div_ceil(digit), digit + set.log_n)
}

fn tensor_layout(set: &ParameterSet) -> GLWETensorKeyLayout {
    let (k_digit, dnum, k_aux) = gadget(set);
    GLWETensorKeyLayout {
        n: (1usize << set.log_n).into(),
        base2k: set.poulpy.base2k.into(),
        dnum: dnum.into(),
        k_digit: k_digit.into(),
        k_aux: k_aux.into(),
        rank: Rank(1),
    }
}

fn rotation_layout(set: &ParameterSet) -> GLWEAutomorphismKeyLayout {
    let (k_digit, dnum, k_aux) = gadget(set);
    GLWEAutomorphismKeyLayout {
        n: (1usize << set.log_n).into(),
        base2k: set.poulpy.base2k.into(),
        dnum: dnum.into(),
        k_digit: k_digit.into(),
        k_aux: k_aux.into(),
        rank: Rank(1),
    }
}

fn distance(found: &[f64], wanted: &[f64]) -> f64 {
    found.iter().zip(wanted).map(|(f, w)| (f - w).abs()).fold(0.0, f64::max)
}
