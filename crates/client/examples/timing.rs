//! Tests statistically whether a client's time depends on its secrets (dudect: Reparaz, Balasch, Verbauwhede, "Dude, is
//! my code constant time?", 2017): `cargo run --release -p keywright-client --example timing [MEASUREMENTS]`. Run it by
//! hand on a quiet machine.
//!
//! Every operation has two classes of secret input that differ as much as they can. Each measurement draws its class at
//! random. The state of the caches must not distinguish the classes: the same instructions make inputs of both, and a
//! mask that the compiler cannot see through blends the measured one from both. Welch's t of the two classes' times is
//! computed for all measurements and for those below each of a hundred percentiles. The largest is compared with 4.5,
//! beyond which a dependence counts as certain.
//!
//! There are two controls. The `null` of each operation draws both classes alike: if it exceeds the limit, the test
//! itself distinguishes them. And the test must detect an operation that branches on its input; otherwise the run has
//! measured nothing.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that reports or fails")]

use std::hint::black_box;
use std::time::Instant;

use keywright_client::reduction::{ShiftAdd30, ShiftAdd60};
use keywright_client::{Client, ClientLiteral, ClientParameters, Encryptor, EngineChoice, Form, Layout};
use keywright_ring::Backend;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::SecretDistribution;

const LOG_N: u32 = 12;
const N: usize = 1 << LOG_N;
/// Beyond this a difference of means is not due to chance.
const LIMIT: f64 = 4.5;
/// Percentiles that cut off slow measurements, mostly interruptions.
const CUTS: usize = 100;

/// Welch's t of two classes.
fn welch(classes: &[Vec<f64>; 2]) -> f64 {
    let [a, b] = classes.each_ref().map(|times| {
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        (mean, times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (n - 1.0) / n)
    });
    (a.0 - b.0) / (a.1 + b.1).sqrt()
}

/// The largest absolute t, of all measurements and of those below each cut.
fn worst(classes: &[Vec<f64>; 2]) -> f64 {
    let mut all: Vec<f64> = classes.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let cuts = (1..=CUTS).map(|k| all[(all.len() - 1) * k / CUTS]);
    let below =
        |cut: f64| classes.each_ref().map(|times| times.iter().copied().filter(|t| *t <= cut).collect());
    let enough = |classes: &[Vec<f64>; 2]| classes.iter().all(|times| times.len() >= 1000);
    cuts.map(below).filter(enough).map(|classes| welch(&classes).abs()).fold(0.0, f64::max)
}

/// A word of an input.
trait Blend: Copy + Default {
    /// The first where `mask` has ones, the second where it has zeros.
    fn blend(a: Self, b: Self, mask: u64) -> Self;
}

macro_rules! blend {
    ($($word:ty),*) => {
        $(impl Blend for $word {
            #[inline(always)]
            fn blend(a: Self, b: Self, mask: u64) -> Self {
                a & mask as Self | b & !mask as Self
            }
        })*
    };
}
blend!(u8, i64, u64);

/// Times of both classes. `draw` makes the input of a class, random or fixed; if `null`, both are random.
fn times<T: Blend>(
    count: usize,
    null: bool,
    draw: &mut impl FnMut(bool, &mut Vec<T>),
    work: &mut impl FnMut(&[T]),
) -> [Vec<f64>; 2] {
    let mut coin = SecretRng::system().unwrap();
    let mut classes = [Vec::with_capacity(count), Vec::with_capacity(count)];
    let (mut first, mut second, mut input) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let class = coin.next_word() & 1;
        draw(null, &mut first);
        draw(true, &mut second);
        let mask = black_box(class.wrapping_sub(1));
        input.clear();
        input.extend(first.iter().zip(&second).map(|(&a, &b)| T::blend(a, b, mask)));
        let start = Instant::now();
        work(black_box(&input));
        let time = start.elapsed().as_secs_f64() * 1e9;
        // The first ones fill the caches.
        if number >= 100 {
            classes[class as usize].push(time);
        }
    }
    classes
}

/// The largest t of an operation, and of its null.
struct Comparison {
    t: f64,
    null: f64,
}

/// Measures `work` on the input that `draw` makes for a class.
fn measure<T: Blend>(
    name: &str,
    count: usize,
    mut draw: impl FnMut(bool, &mut Vec<T>),
    mut work: impl FnMut(&[T]),
) -> Comparison {
    let null = worst(&times(count, true, &mut draw, &mut work));
    let mut classes = times(count, false, &mut draw, &mut work);
    let t = worst(&classes);
    let [a, b] = classes.each_mut().map(|times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("| {name} | {a:.0} ns | {b:.0} ns | {t:.2} | {null:.2} |");
    Comparison { t, null }
}

fn platform() -> impl FnMut(&mut [u8]) -> Result<(), keywright_client::ClientError> {
    let mut rng = SecretRng::system().unwrap();
    move |out: &mut [u8]| {
        rng.fill_bytes(out);
        Ok(())
    }
}

fn parameters(modulus: u64) -> ClientParameters {
    let mut identity = [0; 20];
    identity[0] = LOG_N as u8;
    let (scale, fraction_bits) = if modulus == ShiftAdd30::MODULUS { (1 << 20, 16) } else { (1 << 54, 40) };
    ClientParameters::new(ClientLiteral {
        log_n: LOG_N,
        modulus,
        secret: SecretDistribution::Ternary,
        scale,
        fraction_bits,
        max: 1 << fraction_bits,
        layout: Layout::Slots { log_slots: LOG_N - 1, complex: true },
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })
    .unwrap()
}

/// Samples of equal words, against random ones.
fn samplers(count: usize, results: &mut Vec<Comparison>) {
    let mut rng = SecretRng::system().unwrap();
    for backend in keywright_ring::backend::available() {
        let backend: &dyn Backend = backend;
        type Sampler<'a> = &'a dyn Fn(&[u64], &mut [i64]);
        let samplers: [(&str, Sampler<'_>); 2] = [
            ("gaussian", &|w, out| backend.gaussian(w, out)),
            ("ternary", &|w, out| backend.ternary(w, out)),
        ];
        for (what, sampler) in samplers {
            for (kind, word) in [("zeros", 0), ("ones", u64::MAX)] {
                let mut out = vec![0; 1024];
                let name = format!("{what} of {kind}, {}", backend.kind().name());
                let draw = |random: bool, words: &mut Vec<u64>| {
                    words.resize(1024, 0);
                    rng.fill_words(words);
                    if !random {
                        words.fill(word);
                    }
                };
                results.push(measure(&name, count, draw, |words| sampler(words, black_box(&mut out))));
            }
        }
    }
}

/// The smallest number everywhere, against random ones.
fn clients(count: usize, results: &mut Vec<Comparison>) {
    for (modulus, bits) in [(ShiftAdd30::MODULUS, 30), (ShiftAdd60::MODULUS, 60)] {
        let thin = parameters(modulus);
        let max = thin.fixed_point().max();
        for choice in [EngineChoice::Ring, EngineChoice::ShiftAdd, EngineChoice::Montgomery] {
            let mut client = Client::generate(&thin, &mut platform()).unwrap().with_engine(choice).unwrap();
            let mut key = Vec::new();
            client.public_key(&mut key).unwrap();
            let mut sender = Encryptor::with_engine(&thin, &key, &mut platform(), choice).unwrap();
            let mut rng = SecretRng::system().unwrap();
            let mut numbers = |random: bool, numbers: &mut Vec<i64>| {
                numbers.clear();
                numbers.extend((0..N).map(|_| (rng.next_word() % (2 * max as u64 + 1)) as i64 - max));
                if !random {
                    numbers.fill(-max);
                }
            };
            let mut sink = Vec::with_capacity(thin.ciphertext_bytes());
            let name = |work: &str| format!("{work}, {bits} bits, {choice:?}");
            results.push(measure(&name("encrypt, public"), count, &mut numbers, |numbers| {
                sink.clear();
                sender.encrypt(numbers, Form::Evaluations, &mut sink).unwrap();
            }));
            results.push(measure(&name("encrypt, secret"), count, &mut numbers, |numbers| {
                sink.clear();
                client.encrypt(numbers, Form::Evaluations, &mut sink).unwrap();
            }));
            // Ciphertexts of both classes are equally random: the secret is in their decryption.
            let (mut out, mut clear) = (vec![0; N], Vec::new());
            let draw = |random: bool, bytes: &mut Vec<u8>| {
                numbers(random, &mut clear);
                bytes.clear();
                sender.encrypt(&clear[..], Form::Evaluations, bytes).unwrap();
            };
            results.push(measure(&name("decrypt"), count, draw, |bytes| {
                client.decrypt(bytes, black_box(&mut out)).unwrap();
            }));
        }
    }
}

/// An operation that depends on its input, which the test must detect.
fn control(count: usize) -> Comparison {
    let mut rng: SecretRng = SecretRng::system().unwrap();
    let draw = |random: bool, words: &mut Vec<u64>| {
        words.clear();
        words.extend((0..N).map(|_| rng.next_word() & 1));
        if !random {
            words.fill(0);
        }
    };
    measure("control: a branch on the input", count, draw, |words| {
        let mut sum = 0u64;
        for word in words {
            if black_box(*word) == 1 {
                sum = black_box(sum.wrapping_mul(3) + 1);
            }
        }
        black_box(sum);
    })
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(10_000, |count| count.parse().unwrap());
    assert!(count >= 5_000, "5000 measurements or more");
    println!("{count} measurements of each work, N = 2^{LOG_N}; a |t| above {LIMIT} is a dependence.\n");
    println!(
        "| work | median, fixed | median, random | largest \\|t\\| | the same, both random |\n|---|---|---|---|---|"
    );
    let result = control(count);
    let mut results = Vec::new();
    samplers(count, &mut results);
    clients(count, &mut results);
    assert!(result.t > LIMIT, "the control was not detected: this run is worthless");
    let above = |value: fn(&Comparison) -> f64| results.iter().filter(|result| value(result) > LIMIT).count();
    println!(
        "\n{} of {} works above {LIMIT}, {} of their nulls; the control was detected.",
        above(|result| result.t),
        results.len(),
        above(|result| result.null)
    );
}
