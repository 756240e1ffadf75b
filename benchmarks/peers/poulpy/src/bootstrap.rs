//! One bootstrap of poulpy's fastest preset for complex values with 17 levels of 35 bits left, `n16_d35_k733_p20_s2c`.

use std::error::Error;
use std::time::Instant;

use poulpy_ckks::SlotsKind;
use poulpy_ckks::api::{CKKSBootstrappingOps, CKKSEncodingHostOps};
use poulpy_ckks::layouts::{BootstrappingContextPrepared, CKKSCiphertextAlloc, CKKSPlaintextAlloc};
use poulpy_ckks::prelude::*;
use poulpy_ckks::presets::bootstrapping::n16_d35_k733_p20_s2c;
use poulpy_core::api::{GLWESecretPreparedFactory, GLWESecretSampling};
use poulpy_core::layouts::{
    GLWEAutomorphismKey, GLWESecretAlloc, GLWESwitchingKey, GLWETensorKey, LWEInfos,
};
use poulpy_hal::AlignedBuf;
use poulpy_hal::api::{ScratchOwnedAlloc, ScratchOwnedBorrow};
use poulpy_hal::layouts::{Module, ScratchOwned};
use poulpy_hal::source::Source;
use serde_json::json;

use super::{BACKEND, Engine};
use crate::record::peak_rss_bytes;

/// `-log2` of the probability that an accumulation leaves the range of its radix, per bootstrap: what poulpy's own benchmark takes.
const FAILURE_BITS: usize = 128;

/// Bits above the scale of a decrypted plaintext.
const HEADROOM_BITS: usize = 8;

/// Largest error of a result that counts as right: poulpy states 20 bits for its own vector.
const TOLERANCE: f64 = 1.0 / (1 << 16) as f64;

type Scratch = ScratchOwned<Engine>;

/// Makes the keys and the context, bootstraps once untimed and `runs` times timed, and prints the record.
pub fn measure(runs: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let nominal = n16_d35_k733_p20_s2c()?;
    let preset = if nominal.max_backend_base2k::<Engine, Engine>(FAILURE_BITS) > nominal.base2k() {
        nominal.with_backend_base2k::<Engine, Engine>(FAILURE_BITS)?
    } else {
        nominal
    };
    let (plan, layouts) = (preset.plan(), preset.keys_layout());
    let (layout, input_layout) = (preset.bootstrap_layout(), preset.input_layout());
    let module = Module::<Engine>::new(preset.n() as u64);

    let mut secret = module.glwe_secret_alloc_from_infos(&layout.glwe_layout);
    let weight = preset.dense_secret_hamming_weight();
    module.glwe_secret_fill_ternary_hw(&mut secret, weight, &mut Source::new([0; 32]));
    let mut prepared_secret = module.glwe_secret_prepared_alloc_from_infos(&layout.glwe_layout);
    module.glwe_secret_prepare(&mut prepared_secret, &secret);

    let key_bytes = layouts.rotation_keys.values().map(GLWEAutomorphismKey::<AlignedBuf, i64>::bytes_of_from_infos).sum::<usize>()
        + GLWETensorKey::<AlignedBuf, i64>::bytes_of_from_infos(&layouts.tensor_key)
        + layouts
            .encapsulation
            .iter()
            .flat_map(|keys| std::iter::once(&keys.dense_to_sparse).chain(&keys.sparse_to_dense))
            .map(GLWESwitchingKey::<AlignedBuf, i64>::bytes_of_from_infos)
            .sum::<usize>();

    let bytes = layouts
        .rotation_keys
        .values()
        .map(|key| module.ckks_all_ops_with_atk_tmp_bytes(&layout, &layout, &layouts.tensor_key, key))
        .fold(0, usize::max);
    let mut client = Scratch::alloc(bytes);
    let start = Instant::now();
    let keys = plan.generate_keys(
        &module,
        &secret,
        layouts,
        &mut Source::new([7; 32]),
        &mut Source::new([2; 32]),
        &mut Source::new([1; 32]),
        &mut client.borrow(),
    )?;
    let keygen_s = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let mut scratch = Scratch::alloc(layouts.prepare_tmp_bytes(&module));
    let keys = keys.transfer_and_prepare(&module, &mut scratch.borrow());
    let mut scratch = Scratch::alloc(
        BootstrappingContextPrepared::<Engine, f64>::compile_unprepared_tmp_bytes(&module, plan)?,
    );
    let unprepared = BootstrappingContextPrepared::<Engine, f64>::compile_unprepared(
        &module,
        preset.base2k().into(),
        plan,
        &mut scratch.borrow(),
    )?;
    let mut scratch = Scratch::alloc(unprepared.prepare_tmp_bytes(&module));
    let context = unprepared.prepare(&module, &mut scratch.borrow())?;
    let precompute_s = start.elapsed().as_secs_f64();

    let slots = preset.n() / 2;
    let value = |k: usize, step: f64| (k as f64 * step).fract() * 2.0 - 1.0;
    let wanted: [Vec<f64>; 2] = [0.618_033_988_749_894_9, 0.414_213_562_373_095_05]
        .map(|step| (0..slots).map(|k| value(k, step)).collect());
    let mut plain = module.ckks_plaintext_alloc_from_slots(slots, preset.base2k().into(), input_layout.k());
    plain.set_meta(GLWEPlaintextMeta { slots: SlotsKind::Complex, ..input_layout.meta() });
    module.ckks_encode_slots_host_into(&mut plain, &wanted[0], &wanted[1], &mut client.borrow())?;
    let mut input = module.ckks_ciphertext_alloc_from_glwe_infos(&input_layout);
    let (mut noise, mut mask) = (Source::new([4; 32]), Source::new([3; 32]));
    module.ckks_encrypt_sk(&mut input, &plain, &prepared_secret, &mut noise, &mut mask, &mut client.borrow())?;

    let mut scratch =
        Scratch::alloc(module.ckks_bootstrap_tmp_bytes(&layout, &input_layout, &context, layouts));
    let mut output = module.ckks_ciphertext_alloc_from_glwe_infos(&layout);
    let mut seconds = Vec::new();
    for run in 0..=runs {
        output.set_k(preset.bootstrap_k().into());
        let start = Instant::now();
        module.ckks_bootstrap(&mut output, &input, &context, &keys, &mut scratch.borrow())?;
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
        "key_bytes": key_bytes,
        "keygen_s": keygen_s,
        "precompute_s": precompute_s,
        "peak_rss_bytes": peak_rss_bytes()?,
        "checked": worst <= TOLERANCE,
    });
    println!("{record}");
    Ok(())
}
