//! The thin client's core: one encryption and one decryption modulo `q_0 = 2^60 - 2^18 + 1`.

use std::path::Path;

use keywright_ring::sampling::{self, GAUSSIAN_BOUND, SecretRng};
use keywright_ring::{Buffer, Evaluation, Poly, Seed};
use keywright_rlwe::{
    KeyIdentity, Parameters, ParametersLiteral, PublicKey, RlweCiphertext, SecretDistribution, SecretKey,
    Security, decrypt, encrypt_zero,
};
use zeroize::Zeroizing;

use crate::files::{read_words, write_words};
use crate::{Outcome, say};

/// The prime of the core.
pub(crate) const Q0: u64 = (1 << 60) - (1 << 18) + 1;
/// Bytes that fill the seeds: of the keys, of the public key's uniform half, of the encryption.
const SEEDS: [u8; 3] = [0x51, 0xA7, 0x3C];
/// Messages are at most `Q0 / 2^10` in absolute value: far above the error, far below the modulus.
const MESSAGE_BITS: u32 = 50;

fn seed(which: usize) -> [u8; 32] {
    core::array::from_fn(|i| SEEDS[which].wrapping_mul(2 * i as u8 + 1))
}

fn parameters(log_n: u32) -> Result<Parameters, String> {
    let literal = ParametersLiteral {
        log_n,
        q: vec![Q0],
        p: vec![],
        secret: SecretDistribution::Ternary,
        // A core for N = 2^10 exists only for tests: 60 bits exceed its bound.
        security: if log_n < 12 { Security::InsecureForExperiments } else { Security::Classical128 },
        subrings: vec![],
    };
    Parameters::new(literal).map_err(say)
}

fn keys(parameters: &Parameters) -> Result<(SecretKey, PublicKey), String> {
    let mut rng = SecretRng::from_entropy(&Zeroizing::new(seed(0)));
    let secret = SecretKey::sample(parameters, &mut rng).map_err(say)?;
    let public = PublicKey::from_seed(&secret, Seed(seed(1)), &mut rng);
    Ok((secret, public))
}

/// Signed coefficients of both signs and all sizes, with the extremes in front.
fn message(n: usize) -> Vec<i64> {
    let limit = 1i64 << MESSAGE_BITS;
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut message: Vec<i64> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state as i64 >> (63 - MESSAGE_BITS)) >> (state as u32 % MESSAGE_BITS)
        })
        .collect();
    message[..6].copy_from_slice(&[0, 1, -1, limit, -limit, 0]);
    message
}

fn single(n: usize, words: &[u64]) -> Poly<Evaluation> {
    let mut poly = Poly::zero(n, 1);
    poly.limb_mut(0).copy_from_slice(words);
    poly
}

/// Inputs: `entropy` and `pk_seed` (four words each), `message`, `pk_b`, `secret`. Results: `v`, `e0` and `e1` as
/// residues in coefficient form, `pk_a`, `c0`, `c1`, and `decrypted`, the residues of `c_0 + c_1 s` in coefficient
/// form.
pub(crate) fn write(log_n: u32, folder: &Path) -> Outcome {
    let parameters = parameters(log_n)?;
    let (secret, public) = keys(&parameters)?;
    write_encryption(&parameters, &secret, &public, &message(parameters.n()), folder)
}

/// Encrypts coefficients modulo the parameters' `q_0` as the core does, and writes its inputs and outputs.
pub(crate) fn write_encryption(
    parameters: &Parameters,
    secret: &SecretKey,
    public: &PublicKey,
    message: &[i64],
    folder: &Path,
) -> Outcome {
    let (ring, n) = (parameters.ring(), parameters.n());
    let modulus = ring.modulus(0);
    let residues: Vec<u64> = message.iter().map(|&m| modulus.reduce_i64(m)).collect();

    let entropy = Zeroizing::new(seed(2));
    let ciphertext = encrypt_zero(
        public,
        0,
        &mut SecretRng::from_entropy(&entropy),
        Some(&|_, limb: &mut [u64]| {
            limb.iter_mut().zip(&residues).for_each(|(x, &m)| *x = modulus.add(*x, m));
        }),
    )
    .map_err(say)?;

    // The samples alone, in the order of the encryption.
    let mut rng = SecretRng::from_entropy(&entropy);
    let mut samples = Zeroizing::new(vec![0; n]);
    let mut lifted = Buffer::unspecified(n);
    type Sampler = fn(&mut SecretRng, &mut [i64]);
    for (name, sampler) in
        [("v", sampling::ternary as Sampler), ("e0", sampling::gaussian), ("e1", sampling::gaussian)]
    {
        sampler(&mut rng, &mut samples);
        ring.lift_small(0, &samples, &mut lifted);
        write_words(folder, name, &lifted)?;
    }
    let as_words = |bytes: &[u8; 32]| {
        bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect::<Vec<_>>()
    };
    write_words(folder, "entropy", &as_words(&entropy))?;
    write_words(folder, "pk_seed", &as_words(&public.seed().0))?;
    write_words(folder, "message", &residues)?;
    write_words(folder, "pk_b", public.b().limb(0))?;
    write_words(folder, "pk_a", public.a().limb(0))?;
    write_words(folder, "secret", secret.limb(0))?;
    write_words(folder, "c0", ciphertext.polys[0].limb(0))?;
    write_words(folder, "c1", ciphertext.polys[1].limb(0))?;
    write_words(folder, "decrypted", decrypt(secret, &ciphertext, 1).limb(0))
}

/// The ciphertext of the simulated core, `hardware_c0` and `hardware_c1`.
pub(crate) fn read_ciphertext(n: usize, folder: &Path) -> Result<RlweCiphertext, String> {
    let polys = ["hardware_c0", "hardware_c1"]
        .map(|name| read_words(folder, name, n).map(|words| single(n, &words)))
        .into_iter()
        .collect::<Result<_, _>>()?;
    Ok(RlweCiphertext { polys, key: KeyIdentity::UNKNOWN })
}

/// Checks the simulated core. `hardware_c0` and `hardware_c1`, a ciphertext of the same message made from other
/// entropy, must decrypt in the software to the message within the error of a fresh encryption. `hardware_decrypted`,
/// the core's decryption of that ciphertext, must be the same polynomial.
pub(crate) fn check(log_n: u32, folder: &Path) -> Outcome {
    let parameters = parameters(log_n)?;
    let (secret, _) = keys(&parameters)?;
    let n = parameters.n();
    let modulus = parameters.ring().modulus(0);
    let ciphertext = read_ciphertext(n, folder)?;
    let plain = decrypt(&secret, &ciphertext, 1);
    // `e v + e_1 s + e_0` with ternary `v` and `s` and errors below the sampler's bound: the worst case, never
    // exceeded.
    let bound = GAUSSIAN_BOUND * (2 * n as i64 + 1);
    for (i, (&word, expected)) in plain.limb(0).iter().zip(message(n)).enumerate() {
        let error = modulus.centered(word) - expected;
        if error.abs() > bound {
            return Err(format!(
                "coefficient {i} decrypts with an error of {error}, at most {bound} is possible"
            ));
        }
    }
    if plain.limb(0) != read_words(folder, "hardware_decrypted", n)? {
        return Err("the core's decryption differs from the software's".to_owned());
    }
    println!("decrypts: every error is within {bound}");
    Ok(())
}
