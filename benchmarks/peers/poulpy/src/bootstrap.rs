//! One bootstrap of a preset of poulpy. `n16_d35_k733_p20_s2c` is its fastest for complex values with 17 levels of 35
//! bits left. `n16_d35_k685_p19_s2c_ffr_ci` reduces once on the conjugate-invariant ring and leaves 15 levels.

use std::error::Error;
use std::time::Instant;

use poulpy_ckks::SlotsKind;
use poulpy_ckks::api::{CKKSBootstrappingCIOps, CKKSBootstrappingOps, CKKSEncodingHostOps};
use poulpy_ckks::layouts::{
    BootstrappingContextPrepared, BootstrappingKeySet, CKKSCiphertextAlloc, CKKSPlaintextAlloc,
};
use poulpy_ckks::prelude::*;
use poulpy_ckks::presets::bootstrapping::{
    BootstrappingPreset, n16_d35_k685_p19_s2c_ffr_ci, n16_d35_k733_p20_s2c,
};
use poulpy_core::api::{GLWESecretPreparedFactory, GLWESecretSampling};
use poulpy_core::layouts::{
    BackendGLWESecret, GGLWEInfos, GLWEAutomorphismKey, GLWESecretAlloc, GLWESwitchingKey, GLWETensorKey,
    LWEInfos,
};
use poulpy_hal::AlignedBuf;
use poulpy_hal::api::{ScratchOwnedAlloc, ScratchOwnedBorrow};
use poulpy_hal::layouts::{Module, ScratchOwned, Standard};
use poulpy_hal::source::Source;
use serde_json::json;

use super::{BACKEND, Engine, EngineCi};
use crate::record::peak_rss_bytes;

/// `-log2` of the probability, per bootstrap, that an accumulation leaves the range of its radix. poulpy's own
/// benchmark takes this value.
const FAILURE_BITS: usize = 128;

/// Bits above the scale of a decrypted plaintext.
const HEADROOM_BITS: usize = 8;

/// Largest error of a result that counts as right. poulpy states 20 bits for its own vector.
const TOLERANCE: f64 = 1.0 / (1 << 16) as f64;

type Scratch = ScratchOwned<Engine>;
type ScratchCi = ScratchOwned<EngineCi>;
type Ciphertext = CKKSCiphertext<AlignedBuf, i64, Standard>;
type Outcome<T> = Result<T, Box<dyn Error>>;

/// Makes a ciphertext of the output's layout from one of the input's.
type Run = Box<dyn FnMut(&Module<Engine>, &mut Ciphertext, &Ciphertext) -> Outcome<()>>;

/// A bootstrap that is ready to run.
struct Ready {
    run: Run,
    key_bytes: usize,
    keygen_s: f64,
    precompute_s: f64,
}

/// Bytes of keys before they are prepared.
fn key_bytes(keys: &BootstrappingKeySet<AlignedBuf, i64>) -> usize {
    let switching = |key: &dyn GGLWEInfos| GLWESwitchingKey::<AlignedBuf, i64>::bytes_of_from_infos(&key);
    keys.rotation_keys
        .values()
        .map(GLWEAutomorphismKey::<AlignedBuf, i64>::bytes_of_from_infos)
        .sum::<usize>()
        + GLWETensorKey::<AlignedBuf, i64>::bytes_of_from_infos(&keys.tensor_key)
        + keys.first_factor_keys.values().map(|key| switching(key)).sum::<usize>()
        + keys.encapsulation_keys.iter().map(|(down, _)| switching(down)).sum::<usize>()
        + keys
            .encapsulation_keys
            .iter()
            .filter_map(|(_, up)| up.as_ref())
            .map(|up| switching(up))
            .sum::<usize>()
        + keys.conversion_keys.iter().map(|(trace, embed)| switching(trace) + switching(embed)).sum::<usize>()
}

/// Sources of the secret, of the errors and of the uniform parts of keys.
fn sources() -> [Source; 3] {
    [[7; 32], [2; 32], [1; 32]].map(Source::new)
}

/// `eval_mod` on the ring of the ciphertexts.
fn standard(
    module: &Module<Engine>,
    preset: &BootstrappingPreset,
    secret: &BackendGLWESecret<Engine>,
    client: &mut Scratch,
) -> Outcome<Ready> {
    let (plan, layouts) = (preset.plan(), preset.keys_layout());
    let [mut secrets, mut errors, mut uniform] = sources();
    let start = Instant::now();
    let unprepared = plan.generate_keys(
        module,
        secret,
        layouts,
        &mut secrets,
        &mut errors,
        &mut uniform,
        &mut client.borrow(),
    )?;
    let (keygen_s, key_bytes) = (start.elapsed().as_secs_f64(), key_bytes(&unprepared));

    let start = Instant::now();
    let mut scratch = Scratch::alloc(layouts.prepare_tmp_bytes(module));
    let keys = unprepared.transfer_and_prepare(module, &mut scratch.borrow());
    drop(unprepared);
    let bytes = BootstrappingContextPrepared::<Engine, f64>::compile_unprepared_tmp_bytes(module, plan)?;
    let mut scratch = Scratch::alloc(bytes);
    let compiled = BootstrappingContextPrepared::<Engine, f64>::compile_unprepared(
        module,
        preset.base2k().into(),
        plan,
        &mut scratch.borrow(),
    )?;
    let mut scratch = Scratch::alloc(compiled.prepare_tmp_bytes(module));
    let context = compiled.prepare(module, &mut scratch.borrow())?;
    let precompute_s = start.elapsed().as_secs_f64();

    let (layout, input) = (preset.bootstrap_layout(), preset.input_layout());
    let mut scratch = Scratch::alloc(module.ckks_bootstrap_tmp_bytes(&layout, &input, &context, layouts));
    let run: Run = Box::new(move |module, output, input| {
        Ok(module.ckks_bootstrap(output, input, &context, &keys, &mut scratch.borrow())?)
    });
    Ok(Ready { run, key_bytes, keygen_s, precompute_s })
}

/// `eval_mod` on the conjugate-invariant ring of the same degree; `module` has twice that.
fn conjugate_invariant(
    module: &Module<Engine>,
    preset: &BootstrappingPreset,
    secret: &BackendGLWESecret<Engine>,
) -> Outcome<Ready> {
    let ci = Module::<EngineCi>::new(preset.n() as u64);
    let (plan, layouts) = (preset.plan(), preset.keys_layout());
    let [mut secrets, mut errors, mut uniform] = sources();
    let (bytes, bytes_ci) = layouts.generate_ci_tmp_bytes(module, &ci);
    let (mut scratch, mut scratch_ci) = (Scratch::alloc(bytes), ScratchCi::alloc(bytes_ci));
    let start = Instant::now();
    let unprepared = plan.generate_keys_ci(
        module,
        &ci,
        secret,
        layouts,
        &mut secrets,
        &mut errors,
        &mut uniform,
        &mut scratch.borrow(),
        &mut scratch_ci.borrow(),
    )?;
    let (keygen_s, key_bytes) = (start.elapsed().as_secs_f64(), key_bytes(&unprepared));

    let start = Instant::now();
    let (bytes, bytes_ci) = layouts.prepare_ci_tmp_bytes(module, &ci);
    let (mut scratch, mut scratch_ci) = (Scratch::alloc(bytes), ScratchCi::alloc(bytes_ci));
    let keys =
        unprepared.transfer_and_prepare_ci(module, &ci, &mut scratch.borrow(), &mut scratch_ci.borrow())?;
    drop(unprepared);
    let (bytes, bytes_ci) =
        BootstrappingContextPrepared::<Engine, f64>::compile_ci_unprepared_tmp_bytes(module, &ci, plan)?;
    let (mut scratch, mut scratch_ci) = (Scratch::alloc(bytes), ScratchCi::alloc(bytes_ci));
    let compiled = BootstrappingContextPrepared::<Engine, f64>::compile_ci_unprepared(
        module,
        &ci,
        preset.base2k().into(),
        plan,
        &mut scratch.borrow(),
        &mut scratch_ci.borrow(),
    )?;
    let mut scratch = Scratch::alloc(compiled.prepare_tmp_bytes(module));
    let context = compiled.prepare(module, &mut scratch.borrow())?;
    let precompute_s = start.elapsed().as_secs_f64();

    let (layout, input) = (preset.bootstrap_layout(), preset.input_layout());
    let (bytes, bytes_ci) = module.ckks_bootstrap_ci_tmp_bytes(&ci, &layout, &input, &context, layouts);
    let (mut scratch, mut scratch_ci) = (Scratch::alloc(bytes), ScratchCi::alloc(bytes_ci));
    let run: Run = Box::new(move |module, output, input| {
        let (scratch, scratch_ci) = (&mut scratch.borrow(), &mut scratch_ci.borrow());
        Ok(module.ckks_bootstrap_ci_into(&ci, output, input, &context, &keys, scratch, scratch_ci)?)
    });
    Ok(Ready { run, key_bytes, keygen_s, precompute_s })
}

/// Makes the keys and the context, bootstraps once untimed and `runs` times timed, and prints the record.
pub fn measure(on_invariant_ring: bool, runs: usize, threads: usize) -> Outcome<()> {
    let nominal = if on_invariant_ring { n16_d35_k685_p19_s2c_ffr_ci()? } else { n16_d35_k733_p20_s2c()? };
    let preset = if nominal.max_backend_base2k::<Engine, EngineCi>(FAILURE_BITS) > nominal.base2k() {
        nominal.with_backend_base2k::<Engine, EngineCi>(FAILURE_BITS)?
    } else {
        nominal
    };
    let (layout, input_layout) = (preset.bootstrap_layout(), preset.input_layout());
    let module = Module::<Engine>::new(preset.n() as u64 * if on_invariant_ring { 2 } else { 1 });

    let mut secret = module.glwe_secret_alloc_from_infos(&layout.glwe_layout);
    let weight = preset.dense_secret_hamming_weight();
    module.glwe_secret_fill_ternary_hw(&mut secret, weight, &mut Source::new([0; 32]));
    let mut prepared_secret = module.glwe_secret_prepared_alloc_from_infos(&layout.glwe_layout);
    module.glwe_secret_prepare(&mut prepared_secret, &secret);

    let layouts = preset.keys_layout();
    let bytes = layouts
        .rotation_keys
        .values()
        .map(|key| module.ckks_all_ops_with_atk_tmp_bytes(&layout, &layout, &layouts.tensor_key, key))
        .fold(0, usize::max);
    let mut client = Scratch::alloc(bytes);
    let mut ready = if on_invariant_ring {
        conjugate_invariant(&module, &preset, &secret)?
    } else {
        standard(&module, &preset, &secret, &mut client)?
    };

    let slots = preset.n() / 2;
    let value = |k: usize, step: f64| (k as f64 * step).fract() * 2.0 - 1.0;
    let wanted: [Vec<f64>; 2] = [0.618_033_988_749_894_9, 0.414_213_562_373_095_05]
        .map(|step| (0..slots).map(|k| value(k, step)).collect());
    let mut plain = module.ckks_plaintext_alloc_from_slots(slots, preset.base2k().into(), input_layout.k());
    plain.set_meta(GLWEPlaintextMeta { slots: SlotsKind::Complex, ..input_layout.meta() });
    module.ckks_encode_slots_host_into(&mut plain, &wanted[0], &wanted[1], &mut client.borrow())?;
    let mut input = module.ckks_ciphertext_alloc_from_glwe_infos(&input_layout);
    let (mut noise, mut mask) = (Source::new([4; 32]), Source::new([3; 32]));
    module.ckks_encrypt_sk(
        &mut input,
        &plain,
        &prepared_secret,
        &mut noise,
        &mut mask,
        &mut client.borrow(),
    )?;

    let mut output = module.ckks_ciphertext_alloc_from_glwe_infos(&layout);
    let mut seconds = Vec::new();
    for run in 0..=runs {
        output.set_k(preset.bootstrap_k().into());
        let start = Instant::now();
        (ready.run)(&module, &mut output, &input)?;
        if run > 0 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);

    let bits = output.log_delta() + HEADROOM_BITS;
    let mut plain = module.ckks_plaintext_alloc_from_slots(slots, output.base2k(), bits.into());
    plain.set_meta(GLWEPlaintextMeta {
        scale: Scale::Log(output.log_delta()),
        slots: SlotsKind::Complex,
        log_sparsity: 0,
    });
    module.ckks_decrypt(&mut plain, &output, &prepared_secret, &mut client.borrow())?;
    let (mut re, mut im) = (vec![0.0; slots], vec![0.0; slots]);
    module.ckks_decode_slots_host_into(&plain, &mut re, &mut im, &mut client.borrow())?;
    let errors: Vec<f64> =
        re.iter().chain(&im).zip(wanted.iter().flatten()).map(|(f, w)| (f - w).abs()).collect();
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let usable_bits = preset.output_k() - preset.input_k();
    let record = json!({
        "library": "poulpy",
        "version": "0.10.0",
        "work": "bootstrap",
        "preset": preset.name(),
        "log_n": preset.log_n(),
        "log_scale": preset.log_delta(),
        "threads": threads,
        "backend": BACKEND,
        "median_s": seconds[seconds.len() / 2],
        "min_s": seconds[0],
        "max_s": seconds[seconds.len() - 1],
        "runs": runs,
        "levels_left": usable_bits / preset.log_delta(),
        "usable_bits": usable_bits,
        "worst_bits": -worst.log2(),
        "mean_bits": -mean.log2(),
        "key_bytes": ready.key_bytes,
        "keygen_s": ready.keygen_s,
        "precompute_s": ready.precompute_s,
        "peak_rss_bytes": peak_rss_bytes()?,
        "checked": worst <= TOLERANCE,
    });
    println!("{record}");
    Ok(())
}
