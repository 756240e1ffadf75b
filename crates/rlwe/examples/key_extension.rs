//! Times of a key switch with an ordinary and with an extended key (Kim, Lee, Seo, Song, *Accelerating HE Operations
//! from Key Decomposition Technique*, CRYPTO 2023):
//! `RAYON_NUM_THREADS=1 cargo run --release -p keywright-rlwe --example key_extension`.
//! The page `docs/reproduction/key-extension.md` says what both are.
//!
//! Both switches run on the kernels of the ring, and their results are equal to the last bit. Medians of the processor
//! time of as many runs as its argument says (7 without one), in turns; bytes are those that an evaluation reads. With
//! the argument `quick` it runs once in a small ring, to compare the results.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a program that reports or fails"
)]

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use keywright_ring::backend::UniformRow;
use keywright_ring::conversion::Column;
use keywright_ring::sampling::SecretRng;
use keywright_ring::{
    Buffer, Conversion, Decomposer, Evaluation, Modulus, Poly, Ring, Seed, StreamId, ntt_primes,
};
use keywright_rlwe::{
    Decomposed, Finish, KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, SecretKey,
    SwitchingKey, UniformPart,
};

/// A setting of KDS: primes of a ciphertext; primes of a digit, which are as many as special ones; primes of a digit of
/// the key and bits of the auxiliary primes, which are predicted to be the fastest.
type Setting = (usize, usize, usize, u32);

const SETTINGS: [Setting; 5] =
    [(32, 1, 3, 50), (32, 2, 5, 50), (31, 3, 7, 50), (30, 4, 7, 50), (29, 5, 7, 50)];
/// Words of a limb that are multiplied with every row while they are in a near cache.
const BLOCK: usize = 2048;

/// A key whose rows are cut into digits, over an auxiliary modulus `T`.
struct Extended {
    /// The primes of ciphertexts, the special ones, and those of `T`.
    ring: Ring,
    kept: usize,
    limbs: usize,
    digits: Vec<Range<usize>>,
    /// The primes of each digit of the key.
    parts: Vec<Range<usize>>,
    /// From each digit of the input to `T`.
    to_t: Vec<Conversion>,
    /// From `T` to every other prime; for those of ciphertexts it divides by the special primes.
    from_t: Decomposer,
    columns: Vec<Column>,
    /// From the special primes to `T`.
    remainder: Conversion,
    /// For each prime of `T`, each digit of the key and each half: a limb for each row.
    rows: Vec<Vec<Buffer>>,
}

impl Extended {
    /// The extended form of a key at the highest level, with all special primes and both halves stored.
    fn new(key: &SwitchingKey, size: usize, bits: u32) -> Self {
        let parameters = key.parameters();
        let (kept, limbs) = (parameters.max_level() + 1, parameters.prime_count());
        let digits = key.digits().to_vec();
        let parts: Vec<_> = (0..limbs).step_by(size).map(|start| start..limbs.min(start + size)).collect();
        let largest = |ranges: &[Range<usize>]| {
            let width = |range: &Range<usize>| range.clone().map(|i| parameters.log2_prime(i)).sum::<f64>();
            ranges.iter().map(width).fold(0.0, f64::max)
        };
        // A sum has so many terms, of at most half a digit times half a part; T is above twice that, with a bit left
        // for the remainder.
        let terms = (digits.len() * parameters.n()) as f64;
        let needed = terms.log2() + largest(&digits) + largest(&parts);
        let count = (needed / (f64::from(bits) - 0.01)).ceil() as usize;
        let mut primes: Vec<u64> = (0..limbs).map(|i| parameters.modulus(i).value()).collect();
        primes.extend(ntt_primes(parameters.log_n(), bits, count, &primes).unwrap());
        let ring = Ring::new(parameters.log_n(), &primes, parameters.ring().backend()).unwrap();
        let (own, t) = ring.moduli().split_at(limbs);
        let from_t = Conversion::new(t, own);
        let special: Vec<usize> = (kept..limbs).collect();
        let columns = from_t.columns().iter().enumerate().map(|(i, column)| {
            if i < kept { divided(parameters, &special, i, column) } else { column.clone() }
        });
        Self {
            kept,
            limbs,
            columns: columns.collect(),
            from_t: from_t.decomposer().clone(),
            to_t: digits.iter().map(|digit| Conversion::new(&own[digit.clone()], t)).collect(),
            remainder: Conversion::new(&own[kept..], t),
            rows: extend(key, &ring, &parts, limbs),
            digits,
            parts,
            ring,
        }
    }

    fn bytes(&self) -> usize {
        self.rows.iter().flatten().map(|limb| 8 * limb.len()).sum()
    }

    /// Primes of `T`.
    fn count(&self) -> usize {
        self.ring.moduli().len() - self.limbs
    }

    /// Both halves of the result, modulo the primes of ciphertexts.
    fn switch(&self, input: &Poly<Evaluation>) -> [Poly<Evaluation>; 2] {
        let (ring, n) = (&self.ring, self.ring.n());
        let mut sums = self.products(&self.raised(input));
        let mut out = [Poly::unspecified(n, self.kept), Poly::unspecified(n, self.kept)];
        for (half, out) in out.iter_mut().enumerate() {
            let remainder = self.remainder(&sums, half);
            let mut kept: Vec<&mut [u64]> = out.limbs_mut().collect();
            for (part, sums) in self.parts.iter().zip(&mut sums) {
                let targets = part.start..part.end.min(self.kept);
                if !targets.is_empty() {
                    for (k, (sum, remainder)) in sums[half].iter_mut().zip(&remainder).enumerate() {
                        ring.backend().sub_assign(ring.modulus(self.limbs + k), sum, remainder);
                    }
                    self.converted(&sums[half], targets.clone(), &mut kept[targets]);
                }
            }
        }
        out
    }

    /// Each digit of the input modulo each prime of `T`, in evaluation form.
    fn raised(&self, input: &Poly<Evaluation>) -> Vec<Vec<Buffer>> {
        let raise = |(digit, conversion): (&Range<usize>, &Conversion)| {
            let scaled = scaled(&self.ring, digit.clone(), conversion.decomposer(), |i| input.limb(i));
            convert(&self.ring, conversion, &scaled, self.limbs)
        };
        self.digits.iter().zip(&self.to_t).map(raise).collect()
    }

    /// The sums of the products of all digits with all rows: for each digit of the key and each half, a limb for each
    /// prime of `T`.
    fn products(&self, digits: &[Vec<Buffer>]) -> Vec<[Vec<Buffer>; 2]> {
        let (ring, n, count) = (&self.ring, self.ring.n(), self.count());
        let mut sums: Vec<[Vec<Buffer>; 2]> =
            self.parts.iter().map(|_| [limbs_of(n, count), limbs_of(n, count)]).collect();
        for k in 0..count {
            let m = ring.modulus(self.limbs + k);
            for start in (0..n).step_by(BLOCK) {
                let words = start..n.min(start + BLOCK);
                let block: Vec<&[u64]> = digits.iter().map(|digit| &digit[k][words.clone()]).collect();
                for (part, [b, a]) in sums.iter_mut().enumerate() {
                    let rows = &self.rows[(k * self.parts.len() + part) * 2..][..2];
                    let body: Vec<&[u64]> = rows[0].iter().map(|row| &row[words.clone()]).collect();
                    let uniform: Vec<_> =
                        rows[1].iter().map(|row| UniformRow::Stored(&row[words.clone()])).collect();
                    let (out_b, out_a) = (&mut b[k][words.clone()], &mut a[k][words.clone()]);
                    ring.backend().inner_product(m, &block, &body, &uniform, out_b, out_a);
                }
            }
        }
        sums
    }

    /// The remainder of a half by the special primes, modulo each prime of `T`, in evaluation form.
    fn remainder(&self, sums: &[[Vec<Buffer>; 2]], half: usize) -> Vec<Buffer> {
        let (ring, kept) = (&self.ring, self.kept);
        let mut limbs = limbs_of(ring.n(), self.limbs - kept);
        for (part, sums) in self.parts.iter().zip(sums) {
            let targets = part.start.max(kept)..part.end;
            if !targets.is_empty() {
                let own = &mut limbs[targets.start - kept..targets.end - kept];
                let mut outs: Vec<&mut [u64]> = own.iter_mut().map(|limb| &mut **limb).collect();
                self.converted(&sums[half], targets, &mut outs);
            }
        }
        let scaled = scaled(ring, kept..self.limbs, self.remainder.decomposer(), |i| &limbs[i - kept]);
        convert(ring, &self.remainder, &scaled, self.limbs)
    }

    /// A sum, given by its evaluations modulo the primes of `T`, modulo other primes.
    fn converted(&self, sum: &[Buffer], targets: Range<usize>, outs: &mut [&mut [u64]]) {
        let primes = self.limbs..self.limbs + sum.len();
        let scaled = scaled(&self.ring, primes, &self.from_t, |i| &sum[i - self.limbs]);
        let residues: Vec<&[u64]> = scaled.iter().map(|limb| &**limb).collect();
        let columns: Vec<_> = targets.map(|i| (i, &self.columns[i])).collect();
        self.ring.convert_forward(&self.from_t, &residues, &columns, outs);
    }
}

/// The column of prime `i`, divided by the special primes.
fn divided(parameters: &Parameters, special: &[usize], i: usize, column: &Column) -> Column {
    let m = parameters.modulus(i);
    let inverse = m.inv(parameters.product(special, m));
    let constants: Vec<u64> = column.constants.iter().map(|&c| m.mul(c, inverse)).collect();
    let montgomery = constants.iter().map(|&c| m.reduce_u128(u128::from(c) << 52)).collect();
    Column { modulus: *m, constants, montgomery }
}

/// The rows of a key, cut into parts, modulo each prime of `T`, which follow the first `limbs` primes of the ring.
fn extend(key: &SwitchingKey, ring: &Ring, parts: &[Range<usize>], limbs: usize) -> Vec<Vec<Buffer>> {
    let UniformPart::Stored(uniform) = key.uniform() else { panic!("both halves of the key are stored") };
    let (own, t): (&[Modulus], &[Modulus]) = ring.moduli().split_at(limbs);
    let mut rows: Vec<Vec<Buffer>> = (0..t.len() * parts.len() * 2).map(|_| Vec::new()).collect();
    for (part, range) in parts.iter().enumerate() {
        let conversion = Conversion::new(&own[range.clone()], t);
        for (half, polynomials) in [key.b_rows(), uniform].into_iter().enumerate() {
            for row in polynomials {
                let scaled = scaled(ring, range.clone(), conversion.decomposer(), |i| row.limb(i));
                for (k, out) in convert(ring, &conversion, &scaled, limbs).into_iter().enumerate() {
                    rows[(k * parts.len() + part) * 2 + half].push(out);
                }
            }
        }
    }
    rows
}

/// Scaled residues of a polynomial, given by its evaluations modulo some primes of the ring.
fn scaled<'l>(
    ring: &Ring,
    primes: Range<usize>,
    decomposer: &Decomposer,
    limb_of: impl Fn(usize) -> &'l [u64],
) -> Vec<Buffer> {
    let mut out = limbs_of(ring.n(), primes.len());
    let mut limb = Buffer::unspecified(ring.n());
    for ((i, source), out) in primes.zip(decomposer.sources()).zip(&mut out) {
        limb.copy_from_slice(limb_of(i));
        ring.inverse_scaled(i, &mut limb, source.factor, out);
    }
    out
}

/// Scaled residues modulo every target of a conversion, which are the primes of the ring from `first` on, in evaluation
/// form.
fn convert(ring: &Ring, conversion: &Conversion, scaled: &[Buffer], first: usize) -> Vec<Buffer> {
    let mut out = limbs_of(ring.n(), conversion.columns().len());
    let columns: Vec<_> = (first..).zip(conversion.columns()).collect();
    let residues: Vec<&[u64]> = scaled.iter().map(|limb| &**limb).collect();
    let mut outs: Vec<&mut [u64]> = out.iter_mut().map(|limb| &mut **limb).collect();
    ring.convert_forward(conversion.decomposer(), &residues, &columns, &mut outs);
    out
}

fn limbs_of(n: usize, count: usize) -> Vec<Buffer> {
    (0..count).map(|_| Buffer::unspecified(n)).collect()
}

/// The switch of the engine.
fn ordinary(key: &SwitchingKey, input: &Poly<Evaluation>) -> [Poly<Evaluation>; 2] {
    let parameters = key.parameters();
    let plan = parameters.switch_plan(key.spec(), input.limb_count() - 1, 1, false).unwrap();
    let decomposed = Decomposed::new(parameters, plan, input).unwrap();
    let rows = decomposed.rows_of(key, 1).unwrap();
    let finish = [Finish { addend: [None, None], automorphism: None }];
    let [b, a] = &decomposed.switch(&[(key, rows)], &finish)[0].polys[..] else { panic!("two halves") };
    [b.clone(), a.clone()]
}

/// Processor seconds of every thread so far, as the scheduler of Linux counts them; elsewhere those of a clock.
fn processor_seconds(begin: Instant) -> f64 {
    let told = |thread: &Path| {
        let text = fs::read_to_string(thread.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
    let sum: f64 = threads.filter_map(|thread| told(&thread.path())).sum();
    if sum > 0.0 { sum / 1e9 } else { begin.elapsed().as_secs_f64() }
}

fn milliseconds(begin: Instant, work: impl FnOnce()) -> f64 {
    let before = processor_seconds(begin);
    work();
    1e3 * (processor_seconds(begin) - before)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn row(log_n: u32, runs: usize, (primes, alpha, size, bits): Setting) {
    let literal = ParametersLiteral::from_bits(log_n, &vec![50; primes], &vec![50; alpha]).unwrap();
    let parameters = Parameters::new(if log_n < 16 { literal.insecure() } else { literal }).unwrap();
    let secret = SecretKey::sample(&parameters, &mut SecretRng::system().unwrap()).unwrap();
    let mut generator = KeyGenerator::new(&secret, SecretRng::system().unwrap());
    let mut key = |seeded| {
        let special = parameters.special_primes().collect();
        let element = KeyElement::Relinearization;
        let spec = KeySpec { element, level: primes - 1, alpha, special, seeded, subring: None };
        generator.switching_key(&spec).unwrap()
    };
    let (seeded, stored) = (key(true), key(false));
    let extended = Extended::new(&stored, size, bits);
    let mut input = Poly::unspecified(parameters.n(), primes);
    for (i, limb) in input.limbs_mut().enumerate() {
        let id = StreamId { object: 1, digit: 0, limb: i as u16 };
        parameters.ring().backend().expand_uniform(&Seed([7; 32]), id, parameters.modulus(i), limb);
    }
    let (one, other) = (ordinary(&stored, &input), extended.switch(&input));
    assert!(one.iter().zip(&other).all(|(a, b)| a.words() == b.words()), "both switches have one result");
    let begin = Instant::now();
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs {
        times[0].push(milliseconds(begin, || drop(ordinary(&seeded, &input))));
        times[1].push(milliseconds(begin, || drop(ordinary(&stored, &input))));
        times[2].push(milliseconds(begin, || drop(extended.switch(&input))));
    }
    let [seeded_ms, stored_ms, extended_ms] = times.each_mut().map(|times| median(times));
    println!(
        "| {primes} | {alpha} | {size} | {} | {:.0} | {:.0} | {seeded_ms:.1} | {stored_ms:.1} | {extended_ms:.1} |",
        extended.count(),
        stored.bytes() as f64 / 1e6,
        extended.bytes() as f64 / 1e6,
    );
}

fn main() {
    let argument = std::env::args().nth(1);
    let quick = argument.as_deref() == Some("quick");
    let runs = if quick { 1 } else { argument.map_or(7, |runs| runs.parse().unwrap()) };
    println!(
        "| primes | alpha | digit of the key | auxiliary primes | MB, both halves | MB, extended | ms, seeded | ms, stored | ms, extended |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for setting in SETTINGS {
        row(if quick { 12 } else { 16 }, runs, setting);
    }
}
