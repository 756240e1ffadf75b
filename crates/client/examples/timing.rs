//! Whether a client's time depends on its secrets, by statistics (dudect: Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?", 2017):
//! `cargo run --release -p keywright-client --example timing [MEASUREMENTS]`, for a quiet machine, by hand.
//!
//! Every work has two classes of secret input that differ as much as they can. Which class is measured is drawn anew each time; its input is made, or copied to
//! the one place that both are read from, before the clock starts. Welch's t of the two classes' times is taken of all measurements and of those
//! below each of a hundred percentiles, and the largest is compared with 4.5, beyond which a dependence is taken for certain. `control` branches on its input, and
//! must be found: a run that does not find it has measured nothing.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that reports or fails")]

use std::hint::black_box;
use std::time::Instant;

use keywright_client::reduction::{ShiftAdd30, ShiftAdd60};
use keywright_client::{
    Arithmetic, Client, ClientLiteral, ClientParameters, Encryptor, Form, Layout, system_rng,
};
use keywright_ring::Backend;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::SecretDistribution;

const LOG_N: u32 = 12;
const N: usize = 1 << LOG_N;
/// Beyond it a difference of means is no chance.
const LIMIT: f64 = 4.5;
/// Percentiles at which slow measurements, mostly interruptions, are cut off.
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

/// Measures `work` on what `prepare` made of a class.
fn measure<T>(name: &str, count: usize, mut prepare: impl FnMut(bool) -> T, mut work: impl FnMut(T)) -> f64 {
    let mut coin = system_rng().unwrap();
    let mut classes = [Vec::new(), Vec::new()];
    for number in 0..count {
        let class = coin.next_word() & 1 == 1;
        let input = prepare(class);
        let start = Instant::now();
        work(input);
        let time = start.elapsed().as_secs_f64() * 1e9;
        // The first ones fill the caches.
        if number >= 100 {
            classes[usize::from(class)].push(time);
        }
    }
    let t = worst(&classes);
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [a, b] = classes.each_mut().map(median);
    println!("| {name} | {a:.0} ns | {b:.0} ns | {t:.2} |");
    t
}

fn platform() -> impl FnMut(&mut [u8]) -> Result<(), keywright_client::ClientError> {
    let mut rng = system_rng().unwrap();
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

/// Samples of words that are all the same, against random ones.
fn samplers(count: usize, results: &mut Vec<f64>) {
    let mut rng = system_rng().unwrap();
    for backend in keywright_ring::backend::available() {
        let backend: &dyn Backend = backend;
        type Sampler<'a> = &'a dyn Fn(&[u64], &mut [i64]);
        let samplers: [(&str, Sampler<'_>); 2] = [
            ("gaussian", &|w, out| backend.gaussian(w, out)),
            ("ternary", &|w, out| backend.ternary(w, out)),
        ];
        for (what, sampler) in samplers {
            let (mut words, mut out) = (vec![0; 1024], vec![0; 1024]);
            let name = format!("{what}, {}", backend.kind().name());
            let prepare = |random: bool| {
                words.fill(0);
                let mut other = vec![0; 1024];
                rng.fill_words(&mut other);
                if random {
                    words.copy_from_slice(&other);
                }
                words.clone()
            };
            results.push(measure(&name, count, prepare, |words| {
                sampler(black_box(&words), black_box(&mut out))
            }));
        }
    }
}

/// The smallest number everywhere, against random ones.
fn clients(count: usize, results: &mut Vec<f64>) {
    for (modulus, bits) in [(ShiftAdd30::MODULUS, 30), (ShiftAdd60::MODULUS, 60)] {
        let thin = parameters(modulus);
        let max = thin.fixed_point().max();
        for arithmetic in [Arithmetic::Ring, Arithmetic::ShiftAdd, Arithmetic::Montgomery] {
            let mut client =
                Client::generate(&thin, &mut platform()).unwrap().with_arithmetic(arithmetic).unwrap();
            let mut key = Vec::new();
            client.public_key(&mut key).unwrap();
            let mut sender = Encryptor::with_arithmetic(&thin, &key, &mut platform(), arithmetic).unwrap();
            let mut rng = system_rng().unwrap();
            let mut numbers = |random: bool| -> Vec<i64> {
                let drawn = (0..N).map(|_| (rng.next_word() % (2 * max as u64 + 1)) as i64 - max);
                let drawn: Vec<i64> = drawn.collect();
                drawn.into_iter().map(|x| if random { x } else { -max }).collect()
            };
            let mut sink = Vec::with_capacity(thin.ciphertext_bytes());
            let name = |work: &str| format!("{work}, {bits} bits, {arithmetic:?}");
            results.push(measure(&name("encrypt, public"), count, &mut numbers, |numbers| {
                sink.clear();
                sender.encrypt(black_box(&numbers[..]), Form::Evaluations, &mut sink).unwrap();
            }));
            results.push(measure(&name("encrypt, secret"), count, &mut numbers, |numbers| {
                sink.clear();
                client.encrypt(black_box(&numbers[..]), Form::Evaluations, &mut sink).unwrap();
            }));
            // Ciphertexts of either class, as random as each other: what they decrypt to is the secret.
            let mut out = vec![0; N];
            let prepare = |random: bool| {
                let mut bytes = Vec::with_capacity(thin.ciphertext_bytes());
                sender.encrypt(&numbers(random)[..], Form::Evaluations, &mut bytes).unwrap();
                bytes
            };
            results.push(measure(&name("decrypt"), count, prepare, |bytes| {
                client.decrypt(black_box(&bytes), black_box(&mut out)).unwrap();
            }));
        }
    }
}

/// What depends on its input, so that it must be found.
fn control(count: usize) -> f64 {
    let mut rng: SecretRng = system_rng().unwrap();
    let prepare = |random: bool| -> Vec<u64> {
        let drawn: Vec<u64> = (0..N).map(|_| rng.next_word() & 1).collect();
        drawn.into_iter().map(|x| if random { x } else { 0 }).collect()
    };
    measure("control: a branch on the input", count, prepare, |words| {
        let mut sum = 0u64;
        for word in black_box(&words) {
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
    println!("| work | median, fixed | median, random | largest \\|t\\| |\n|---|---|---|---|");
    let found = control(count);
    let mut results = Vec::new();
    samplers(count, &mut results);
    clients(count, &mut results);
    assert!(found > LIMIT, "the control was not found: this run says nothing");
    let above = results.iter().filter(|&&t| t > LIMIT).count();
    println!("\n{above} of {} works above {LIMIT}; the control was found.", results.len());
}
