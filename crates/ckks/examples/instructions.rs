//! `instructions kernels` and `instructions rotations` name works on the standard output and do each between two system
//! calls, from and to which an emulator's plugin counts instructions. `python -m studies.neon_instructions` in
//! `benchmarks/` builds and runs it with one.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
#[cfg(unix)]
use std::os::unix::process::parent_id;

use keywright_ckks::{CkksLiteral, CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, Magnitude};
use keywright_ring::backend::{Quotient, UniformRow};
use keywright_ring::sampling::SecretRng;
use keywright_ring::{Conversion, Modulus, Ring, Seed, StreamId, backend, ntt_primes, rotation_element};
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, SecretKey, Security};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Widths of the primes of the kernels: below the narrow ones' limit, at it, and a wide one.
const WIDTHS: [u32; 3] = [45, 50, 60];
/// Digits of the inner products.
const DIGITS: usize = 6;
/// Source primes of the conversions.
const SOURCES: usize = 5;

/// `log2` of the scale of the rotated values.
const LOG_SCALE: f64 = 40.0;

/// A rotation that is counted.
struct Rotation {
    /// `log2(N)`.
    log_n: u32,
    /// Bits of `q_0` and of every further ciphertext prime.
    widths: (u32, u32),
    /// Number of ciphertext primes.
    primes: usize,
    /// Bits of every special prime.
    special: u32,
    /// Primes per digit, and special primes.
    alpha: usize,
}

const ROTATIONS: [Rotation; 4] = [
    Rotation { log_n: 14, widths: (45, 45), primes: 8, special: 46, alpha: 1 },
    Rotation { log_n: 14, widths: (60, 45), primes: 8, special: 60, alpha: 1 },
    Rotation { log_n: 16, widths: (45, 45), primes: 27, special: 46, alpha: 5 },
    Rotation { log_n: 16, widths: (60, 50), primes: 27, special: 50, alpha: 5 },
];

#[cfg(not(unix))]
fn parent_id() {}

/// A source of randomness that is the same in every run. For measurements alone.
fn rng(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&zeroize::Zeroizing::new([byte; 32]))
}

/// Does `work` between two system calls that the emulator's plugin sees. Its name is printed first.
fn marked<T>(label: &str, work: impl FnOnce() -> T) -> Result<T> {
    print!("{label} ");
    std::io::stdout().flush()?;
    let _ = parent_id();
    let result = black_box(work());
    let _ = parent_id();
    Ok(result)
}

/// Counts every kernel modulo a prime of each width, at `N = 2^log_n`, on the back end of this process.
fn count_kernels(log_n: u32) -> Result<()> {
    let backend = backend::default()?;
    for bits in WIDTHS {
        let n = 1 << log_n;
        let primes = ntt_primes(log_n, bits, DIGITS + 1, &[])?;
        let ring = Ring::new(log_n, &primes, backend)?;
        let m = ring.modulus(DIGITS);
        let residues = |seed: u64| -> Vec<u64> {
            (1..=n as u64).map(|i| (i * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) % primes[DIGITS]).collect()
        };
        let (mut limb, other) = (residues(1), residues(3));
        let (mut out, mut second) = (vec![0; n], vec![0; n]);
        // The tables are made where they are used first.
        ring.forward_limb(DIGITS, &mut limb);
        let label = |work: &str| format!("{work} 2^{log_n} {bits}");
        marked(&label("forward"), || ring.forward_limb(DIGITS, &mut limb))?;
        marked(&label("inverse"), || ring.inverse_limb(DIGITS, &mut limb))?;
        marked(&label("product"), || backend.mul(m, &limb, &other, &mut out))?;
        let (seed, id) = (Seed([3; 32]), StreamId { object: 1, digit: 2, limb: 3 });
        marked(&label("expansion"), || backend.expand_uniform(&seed, id, m, &mut out))?;
        let digits = [&other[..]; DIGITS];
        let stored = [UniformRow::Stored(&other); DIGITS];
        marked(&label("inner-product"), || {
            backend.inner_product(m, &digits, &digits, &stored, &mut out, &mut second);
        })?;
        let moduli = primes.iter().map(|&q| Modulus::new(q)).collect::<std::result::Result<Vec<_>, _>>()?;
        let conversion = Conversion::new(&moduli[..SOURCES], &moduli[DIGITS..]);
        marked(&label("conversion"), || {
            let targets = [(DIGITS, conversion.column(0))];
            ring.convert_parts(conversion.decomposer(), &digits[..SOURCES], &targets, &mut [&mut out]);
        })?;
        let quotient = Quotient {
            dividend: &limb,
            remainder: &other,
            factor: m.shoup(12345),
            addend: Some(&other),
            addend_factor: None,
        };
        marked(&label("quotient"), || backend.quotient(m, &quotient, &mut out))?;
        let mut samples = vec![0; n];
        marked(&label("gaussian"), || backend.gaussian(&other, &mut samples))?;
    }
    Ok(())
}

/// Counts a rotation of a ciphertext of all levels, whose result is decrypted and compared.
fn count_rotation(rotation: &Rotation) -> Result<()> {
    let Rotation { log_n, widths, primes, special, alpha } = *rotation;
    let q: Vec<u32> = std::iter::once(widths.0).chain(std::iter::repeat_n(widths.1, primes - 1)).collect();
    let mut literal = CkksLiteral::from_bits(log_n, &q, &vec![special; alpha], LOG_SCALE)?;
    literal.rlwe.security = Security::InsecureForExperiments;
    let parameters = CkksParameters::new(literal)?;
    let rlwe = parameters.rlwe();
    let secret = SecretKey::sample(rlwe, &mut rng(1))?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let public = generator.public_key();
    let keys = generator.evaluation_keys(&[KeySpec {
        element: KeyElement::Galois(rotation_element(log_n, 1)),
        level: rlwe.max_level(),
        alpha,
        special: rlwe.special_primes().collect(),
        seeded: false,
        subring: None,
    }])?;
    let evaluator = Evaluator::new(&parameters, &keys)?;
    let log_slots = parameters.max_log_slots();
    let mut source = rng(3);
    let mut unit = || source.next_word() as f64 / 2f64.powi(63) - 1.0;
    let values: Vec<Complex64> = (0..1 << log_slots).map(|_| Complex64::new(unit(), unit())).collect();
    let ciphertext = Encryptor::new(&parameters, &public, rng(4))?
        .declaring(Magnitude::new(std::f64::consts::SQRT_2)?)
        .encrypt(&values, log_slots, rlwe.max_level())?;
    // What is made once is made by the first one.
    evaluator.rotate(&ciphertext, 1)?;
    let label = format!("rotation 2^{log_n} {},{}x{},{special}x{alpha}", widths.0, widths.1, primes - 1);
    let rotated = marked(&label, || evaluator.rotate(&ciphertext, 1))??;
    let results = Decryptor::new(&parameters, &secret)?.decrypt(&rotated)?;
    let bound = rotated.error_bound();
    let shifted = values.iter().cycle().skip(1);
    if !results.iter().zip(shifted).all(|(result, expected)| (result - expected).norm() <= bound) {
        return Err(format!("a wrong result: {label}").into());
    }
    Ok(())
}

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("kernels") => [14, 16].into_iter().try_for_each(count_kernels),
        Some("rotations") => ROTATIONS.iter().try_for_each(count_rotation),
        other => Err(format!("`{}` is neither kernels nor rotations", other.unwrap_or("")).into()),
    }
}
