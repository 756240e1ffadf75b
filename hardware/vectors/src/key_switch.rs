//! The key switch: the relinearization of a CKKS product, with q_0 and the special primes of 60 bits and the others of
//! 51.

use std::path::Path;

use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Decryptor, Encryptor, Evaluator, Packing};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, ParametersLiteral, SecretDistribution, SecretKey,
    Security, UniformPart,
};
use zeroize::Zeroizing;

use crate::files::{read_words, write_words};
use crate::{Outcome, say};

/// The primes of the hardware's key switch: `2^60 - c` and `2^51 - c`, with sparse `c`.
const Q: [u64; 7] = [
    (1 << 60) - (1 << 18) + 1,
    (1 << 51) - (1 << 17) + 1,
    (1 << 51) - (1 << 23) - (1 << 17) + 1,
    (1 << 51) - (1 << 23) + (1 << 20) + 1,
    (1 << 51) - (1 << 24) + (1 << 19) + 1,
    (1 << 51) - (1 << 26) + (1 << 17) + 1,
    (1 << 51) - (1 << 27) - (1 << 19) + 1,
];
const SPECIAL: [u64; 2] = [(1 << 60) - (1 << 23) + (1 << 18) + 1, (1 << 60) - (1 << 24) - (1 << 17) + 1];
const LOG_SCALE: f64 = 51.0;

fn rng(which: u8) -> SecretRng {
    SecretRng::from_entropy(&Zeroizing::new([which; 32]))
}

/// The switch: ciphertexts at `level`, in digits of `alpha` primes, with as many special primes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) log_n: u32,
    pub(crate) level: usize,
    pub(crate) alpha: usize,
}

fn parameters(shape: Shape) -> Result<CkksParameters, String> {
    let Shape { log_n, level, alpha } = shape;
    let rlwe = ParametersLiteral {
        log_n,
        q: Q.get(..=level).ok_or_else(|| format!("level {level}: at most {}", Q.len() - 1))?.to_vec(),
        p: SPECIAL.get(..alpha).ok_or_else(|| format!("alpha {alpha}: at most {}", SPECIAL.len()))?.to_vec(),
        secret: SecretDistribution::Ternary,
        // 111 bits and more exceed the bound at 2^12, which is simulated because it is short.
        security: if log_n < 14 { Security::InsecureForExperiments } else { Security::Classical128 },
        subrings: vec![],
    };
    CkksParameters::new(CkksLiteral { rlwe, log_scale: LOG_SCALE }).map_err(say)
}

/// Factors in `[-1, 1]`, one per slot.
fn factors(n: usize) -> [Vec<f64>; 2] {
    let values = |step: usize| (0..n / 2).map(|i| ((i * step % 2001) as f64 - 1000.0) / 1000.0).collect();
    [values(7), values(1237)]
}

/// The secret and the engine's results with it: the product of degree 2, the key, the relinearized product.
struct Case {
    parameters: CkksParameters,
    secret: SecretKey,
    keys: EvaluationKeys,
    product: Ciphertext,
}

impl Case {
    fn new(shape: Shape) -> Result<Self, String> {
        let Shape { log_n, level, alpha } = shape;
        let parameters = parameters(shape)?;
        let rlwe = parameters.rlwe();
        let secret = SecretKey::sample(rlwe, &mut rng(1)).map_err(say)?;
        let mut generator = KeyGenerator::new(&secret, rng(2));
        let special = rlwe.special_primes().collect();
        let spec = KeySpec {
            element: KeyElement::Relinearization,
            level,
            alpha,
            special,
            seeded: false,
            subring: None,
        };
        let keys = generator.evaluation_keys(&[spec]).map_err(say)?;
        let public = generator.public_key();
        let mut encryptor = Encryptor::new(&parameters, &public, rng(3)).map_err(say)?;
        let packing = Packing::Slots { log_slots: log_n - 1 };
        let [x, y] = factors(rlwe.n());
        let x = encryptor.encrypt_real(&x, packing, level).map_err(say)?;
        let y = encryptor.encrypt_real(&y, packing, level).map_err(say)?;
        let product = Evaluator::new(&parameters, &keys).map_err(say)?.multiply_lazy(&x, &y).map_err(say)?;
        Ok(Self { parameters: parameters.clone(), secret, keys, product })
    }

    fn relinearized(&self) -> Result<Ciphertext, String> {
        Evaluator::new(&self.parameters, &self.keys).map_err(say)?.relinearize(&self.product).map_err(say)
    }
}

/// `input_I` (the product's third part modulo q_I), `addend_K_J` (its first two), `key_K_I_J` (half K of digit I modulo
/// prime J, the special ones last) and `result_K_J`: the relinearized product.
pub(crate) fn write(shape: Shape, folder: &Path) -> Outcome {
    let case = Case::new(shape)?;
    let result = case.relinearized()?;
    for (i, limb) in case.product.rlwe.polys[2].limbs().enumerate() {
        write_words(folder, &format!("input_{i}"), limb)?;
    }
    for k in 0..2 {
        for (j, limb) in case.product.rlwe.polys[k].limbs().enumerate() {
            write_words(folder, &format!("addend_{k}_{j}"), limb)?;
        }
        for (j, limb) in result.rlwe.polys[k].limbs().enumerate() {
            write_words(folder, &format!("result_{k}_{j}"), limb)?;
        }
    }
    let key = case.keys.iter().next().ok_or("no key")?.load().map_err(say)?;
    let UniformPart::Stored(uniform) = key.uniform() else { return Err("the key is seeded".to_owned()) };
    for (k, rows) in [key.b_rows(), uniform].into_iter().enumerate() {
        for (i, row) in rows.iter().enumerate() {
            for (j, limb) in row.limbs().enumerate() {
                write_words(folder, &format!("key_{k}_{i}_{j}"), limb)?;
            }
        }
    }
    Ok(())
}

/// Checks that `hardware_K_J`, the simulated core's results, decrypt to the products of the factors, within the bound
/// that the engine derives for a relinearized product.
pub(crate) fn check(shape: Shape, folder: &Path) -> Outcome {
    let case = Case::new(shape)?;
    let mut ciphertext = case.relinearized()?;
    let n = case.parameters.rlwe().n();
    for (k, poly) in ciphertext.rlwe.polys.iter_mut().enumerate() {
        for (j, limb) in poly.limbs_mut().enumerate() {
            limb.copy_from_slice(&read_words(folder, &format!("hardware_{k}_{j}"), n)?);
        }
    }
    let decryptor = Decryptor::new(&case.parameters, &case.secret).map_err(say)?;
    let bound = ciphertext.estimate.bound();
    let [x, y] = factors(n);
    let mut worst = 0f64;
    for (i, value) in decryptor.decrypt_real(&ciphertext).map_err(say)?.into_iter().enumerate() {
        let error = (value - x[i] * y[i]).abs();
        if error > bound {
            return Err(format!("slot {i} decrypts with an error of {error:e}, the bound is {bound:e}"));
        }
        worst = worst.max(error);
    }
    println!("decrypts to the product: the largest error is {worst:e}, the bound {bound:e}");
    Ok(())
}
