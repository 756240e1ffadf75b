//! Times of a native client, compared with the least possible work:
//! `cargo run --release -p keywright-client --example times`.
//!
//! Medians of an odd number of runs on one thread. Every timed ciphertext is decrypted and compared with the input.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that reports or fails")]

use std::hint::black_box;
use std::time::Instant;

use keywright_client::reduction::{ShiftAdd30, ShiftAdd60};
use keywright_client::{
    Client, ClientLiteral, ClientParameters, Encryptor, Engine, EngineChoice, Form, Layout, RingEngine,
};
use keywright_ring::sampling::SecretRng;
use keywright_ring::sampling::{gaussian, ternary};
use keywright_rlwe::SecretDistribution;

fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..41)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    println!(
        "| N | q_0 | arithmetic | encrypt, public | encrypt, secret | compact, secret | decrypt | three NTTs | sampling | bytes, public | bytes, secret |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for log_n in [13, 14, 16] {
        for (modulus, scale, fraction_bits) in
            [(ShiftAdd30::MODULUS, 1 << 20, 16), (ShiftAdd60::MODULUS, 1 << 54, 40)]
        {
            let mut identity = [0; 20];
            identity[0] = log_n as u8;
            let thin = ClientParameters::new(ClientLiteral {
                log_n,
                modulus,
                secret: SecretDistribution::Ternary,
                scale,
                fraction_bits,
                max: 1 << fraction_bits,
                layout: Layout::Slots { log_slots: log_n - 1, complex: true },
                identity,
                entry_identity: identity,
                estimate: [0; 3],
            })
            .unwrap();
            for choice in [EngineChoice::Ring, EngineChoice::ShiftAdd, EngineChoice::Montgomery] {
                row(&thin, choice);
            }
        }
    }
}

fn row(thin: &ClientParameters, choice: EngineChoice) {
    let mut platform = {
        let mut rng = SecretRng::system().unwrap();
        move |out: &mut [u8]| {
            rng.fill_bytes(out);
            Ok(())
        }
    };
    let (n, max) = (thin.n(), thin.fixed_point().max());
    let numbers: Vec<i64> = (0..n as i64).map(|i| 7919 * i % (2 * max + 1) - max).collect();
    let mut client = Client::generate(thin, &mut platform).unwrap().with_engine(choice).unwrap();
    let mut key = Vec::new();
    client.public_key(&mut key).unwrap();
    let mut sender = Encryptor::with_engine(thin, &key, &mut platform, choice).unwrap();
    let mut public = Vec::with_capacity(thin.ciphertext_bytes());
    let encrypt = median(|| {
        public.clear();
        sender.encrypt(&numbers[..], Form::Evaluations, &mut public).unwrap();
    });
    let mut seeded = Vec::with_capacity(thin.seeded_ciphertext_bytes());
    let encrypt_secret = median(|| {
        seeded.clear();
        client.encrypt(&numbers[..], Form::Evaluations, &mut seeded).unwrap();
    });
    let seeded_bytes = seeded.len();
    let compact = median(|| {
        seeded.clear();
        client.encrypt(&numbers[..], Form::Compact([0, 0]), &mut seeded).unwrap();
    });
    let mut seen = vec![0; n];
    // The last ciphertext in compact form, then the one for timing decryption.
    let bits = f64::from(thin.fixed_point().fraction_bits());
    let check = |seen: &[i64], variance: f64| {
        let bound = (9.0 * variance.sqrt() + 0.5) * bits.exp2() / thin.literal().scale as f64 + 0.5;
        assert!(seen.iter().zip(&numbers).all(|(a, b)| ((a - b) as f64).abs() <= bound));
    };
    client.decrypt(&seeded, &mut seen).unwrap();
    check(&seen, 3.19f64.powi(2));
    let decrypt = median(|| client.decrypt(&public, &mut seen).unwrap());
    check(&seen, 3.19f64.powi(2) * (1.0 + 4.0 * n as f64 / 3.0));

    // The least possible work: three transforms, and three samples of every coefficient.
    let engine = RingEngine::new(thin.log_n(), thin.modulus().value()).unwrap();
    let mut limb: Vec<u64> = (0..n as u64).collect();
    let transforms = median(|| (0..3).for_each(|_| engine.forward(black_box(&mut limb))));
    let mut rng = SecretRng::system().unwrap();
    let mut samples = vec![0; n];
    let sampling = median(|| {
        ternary(&mut rng, black_box(&mut samples));
        (0..2).for_each(|_| gaussian(&mut rng, black_box(&mut samples)));
    });
    println!(
        "| 2^{} | {} bits | {choice:?} | {encrypt:.3} ms | {encrypt_secret:.3} ms | {compact:.3} ms | {decrypt:.3} ms | {transforms:.3} ms | {sampling:.3} ms | {} | {seeded_bytes} |",
        thin.log_n(),
        thin.modulus().bits(),
        public.len(),
    );
}
