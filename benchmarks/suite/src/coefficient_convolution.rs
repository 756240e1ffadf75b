//! A convolution of values in coefficients, as ConvFHE has it (Kim and Guyot, "Optimized privacy-preserving CNN
//! inference with fully homomorphic encryption", IEEE TIFS 18, 2023): a product for each channel of the result, and
//! a packing of these products whose automorphisms are `X -> X^(2^j + 1)`. A list of ways says which keys make an
//! automorphism: that is what ARK (ePrint 2024/1948) changes.
//!
//! A channel has `width` rows of `width` pixels; `B = N / width^2` channels fit a polynomial. Pixel `(r, c)` of channel
//! `k` is coefficient `(r width + c) B + k`. The last `kernel / 2` rows and columns are zero, so that what a product
//! wraps around is zero, too.

use std::collections::BTreeMap;
use std::time::Instant;

use keywright_bench::measuring::{peak_rss, rng};
use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Decryptor, Evaluator, Packing, Plaintext};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, Parameters, SecretKey, Security, threads,
};

use crate::StudyError;
use crate::key_design::processor_seconds;
use crate::packing_keys::{KeyLine, PackingKeys};

/// Level of the convolution: its packing is done at level 1, and the products are not rescaled before.
const LEVEL: usize = 1;

/// A layer and its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvolutionRequest {
    /// `log2(N)`.
    pub log_n: u32,
    /// Bits of the ciphertext primes.
    pub q: Vec<u32>,
    /// Bits of the special primes.
    pub p: Vec<u32>,
    /// Rows and columns of a channel.
    pub width: usize,
    /// Rows and columns of the kernel, odd.
    pub kernel: usize,
    /// Channels of the input and of the result; a power of two of them is packed.
    pub channels: usize,
    /// Keys for the automorphisms of the packing.
    pub packing: PackingKeys,
    /// Timed layers, after one that is not.
    pub runs: usize,
}

/// What a layer takes.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvolutionRecord {
    /// Keys.
    pub keys: usize,
    /// Their bytes in memory.
    pub key_bytes: usize,
    /// Seconds of making them.
    pub keygen_s: f64,
    /// Automorphisms of the packing, and key switches for them.
    pub automorphisms: usize,
    /// Key switches.
    pub switches: usize,
    /// Wall seconds of the layer, in order.
    pub seconds: Vec<f64>,
    /// Processor seconds of this thread of the layer.
    pub processor_seconds: Vec<f64>,
    /// Of these, processor seconds of the automorphisms.
    pub automorphism_seconds: Vec<f64>,
    /// Largest distance of a value of the result from the clear, and the largest value in the clear.
    pub error: (f64, f64),
    /// Pixels whose channel of the largest value differs, and pixels.
    pub changed: (usize, usize),
    /// Peak of the process.
    pub peak_rss_bytes: Option<usize>,
}

/// Where the values are.
struct Layout {
    n: usize,
    width: usize,
    /// Channels that fit, and the distance of those that there are.
    fitting: usize,
    apart: usize,
    /// Rows and columns that are not zero.
    inside: usize,
    half: usize,
}

impl Layout {
    fn new(request: &ConvolutionRequest) -> Result<Self, StudyError> {
        let n = 1usize << request.log_n;
        let fitting = n / (request.width * request.width);
        let packed = request.channels.next_power_of_two();
        let half = request.kernel / 2;
        if fitting < packed || packed < 2 || request.width <= half {
            return Err(StudyError::Wrong(format!(
                "{} channels of {} x {} pixels; at most {fitting} fit, at least 2 are packed",
                request.channels, request.width, request.width
            )));
        }
        let inside = request.width - half;
        Ok(Self { n, width: request.width, fitting, apart: fitting / packed, inside, half })
    }

    fn place(&self, row: usize, column: usize, channel: usize) -> usize {
        (row * self.width + column) * self.fitting + channel * self.apart
    }

    /// A kernel as a polynomial: the value for an input channel at some distance is the coefficient of `X` to minus
    /// that distance.
    fn kernel(&self, kernel: usize, channels: usize, of: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for i in 0..kernel {
            for j in 0..kernel {
                for k in 0..channels {
                    let rows = i as i64 - self.half as i64;
                    let columns = j as i64 - self.half as i64;
                    let distance =
                        (rows * self.width as i64 + columns) * self.fitting as i64 + (k * self.apart) as i64;
                    let exponent = (-distance).rem_euclid(2 * self.n as i64) as usize;
                    let (place, sign) =
                        if exponent < self.n { (exponent, 1.0) } else { (exponent - self.n, -1.0) };
                    out[place] += sign * of(i, j, k);
                }
            }
        }
        out
    }
}

/// Joins products, one for each channel of a result, to one ciphertext.
pub(crate) struct Packer<'a> {
    evaluator: Evaluator<'a>,
    log_n: u32,
    /// `X^(2^i)`, at scale 1.
    monomials: Vec<Plaintext>,
    ways: &'a BTreeMap<u64, Vec<u64>>,
    switches: usize,
    automorphisms: usize,
    spent: f64,
}

impl<'a> Packer<'a> {
    /// Packs ciphertexts at a level, of which at most `fitting` channels fit one.
    pub(crate) fn new(
        parameters: &'a CkksParameters,
        keys: &'a EvaluationKeys,
        fitting: usize,
        ways: &'a BTreeMap<u64, Vec<u64>>,
        level: usize,
    ) -> Result<Self, StudyError> {
        let n = parameters.rlwe().n();
        let monomials = (0..fitting.trailing_zeros()).map(|i| {
            let mut one = vec![0.0; n];
            one[1 << i] = 1.0;
            parameters.encode_real(&one, Packing::Coefficients, level, 1.0)
        });
        Ok(Self {
            evaluator: Evaluator::new(parameters, keys)?,
            log_n: n.trailing_zeros(),
            monomials: monomials.collect::<Result<_, _>>()?,
            ways,
            switches: 0,
            automorphisms: 0,
            spent: 0.0,
        })
    }

    /// Key switches so far.
    pub(crate) fn switches(&self) -> usize {
        self.switches
    }

    /// A power of two of products, at equal distances of places of which `fitting` fit; `None` is zero. Multiplies by
    /// their number.
    pub(crate) fn pack(
        &mut self,
        mut packed: Vec<Option<Ciphertext>>,
        fitting: usize,
    ) -> Result<Ciphertext, StudyError> {
        let apart = fitting / packed.len();
        let mut step = fitting / 2;
        // At each distance, coefficients at its odd multiples come from the second ciphertext of a pair.
        while step >= apart {
            let galois = (1u64 << (self.log_n - step.trailing_zeros())) + 1;
            let second = packed.split_off(step / apart);
            for (first, second) in packed.iter_mut().zip(second) {
                let Some(second) = second else {
                    // Its odd multiples are those of a product that is zero elsewhere, too.
                    let Some(alone) = first.take() else { continue };
                    let turned = self.automorphism(alone.clone(), galois)?;
                    *first = Some(self.evaluator.add(&alone, &turned)?);
                    continue;
                };
                let moved = self
                    .evaluator
                    .multiply_plain_lazy(&second, &self.monomials[step.trailing_zeros() as usize])?;
                let (difference, sum) = match first {
                    Some(first) => (self.evaluator.sub(first, &moved)?, self.evaluator.add(first, &moved)?),
                    None => (self.evaluator.neg(&moved)?, moved),
                };
                let turned = self.automorphism(difference, galois)?;
                *first = Some(self.evaluator.add(&sum, &turned)?);
            }
            step /= 2;
        }
        packed.swap_remove(0).ok_or_else(|| StudyError::Wrong("nothing to pack".to_owned()))
    }

    fn automorphism(&mut self, mut value: Ciphertext, galois: u64) -> Result<Ciphertext, StudyError> {
        let begin = processor_seconds();
        let way = self
            .ways
            .get(&galois)
            .ok_or_else(|| StudyError::Wrong(format!("no way makes the automorphism {galois}")))?;
        for &hop in way {
            value = self.evaluator.automorphisms_hoisted(&value, &[hop])?.remove(0);
        }
        self.automorphisms += 1;
        self.switches += way.len();
        if let (Some(begin), Some(end)) = (begin, processor_seconds()) {
            self.spent += end - begin;
        }
        Ok(value)
    }
}

/// A layer with its kernels.
struct Layer<'a> {
    packer: Packer<'a>,
    fitting: usize,
    kernels: Vec<Plaintext>,
}

impl Layer<'_> {
    fn run(&mut self, input: &Ciphertext) -> Result<Ciphertext, StudyError> {
        let packer = &mut self.packer;
        (packer.switches, packer.automorphisms, packer.spent) = (0, 0, 0.0);
        let products = self.kernels.iter().map(|kernel| packer.evaluator.multiply_plain_lazy(input, kernel));
        let products = products.map(|product| product.map(Some)).collect::<Result<_, _>>()?;
        packer.pack(products, self.fitting)
    }
}

/// The keys of a packing. A way says which key it takes, and digits are those of the key.
pub(crate) fn packing_keys(
    rlwe: &Parameters,
    generator: &mut KeyGenerator<'_>,
    lines: &[KeyLine],
) -> Result<EvaluationKeys, StudyError> {
    let mut keys = EvaluationKeys::new(rlwe);
    for (galois, level, alpha, seeded, special) in lines {
        let (element, special) = (KeyElement::Galois(*galois), special.clone());
        let spec = KeySpec { element, level: *level, alpha: *alpha, special, seeded: *seeded, subring: None };
        keys.insert(generator.switching_key(&spec)?)?;
    }
    Ok(keys.without_coalescing())
}

/// Measures a layer. Values and kernels are drawn with fixed seeds.
///
/// # Errors
/// [`StudyError::Runs`], [`StudyError::Wrong`] for a layer that does not fit; what the engine refuses.
pub fn run_convolution(request: &ConvolutionRequest) -> Result<ConvolutionRecord, StudyError> {
    if request.runs == 0 {
        return Err(StudyError::Runs);
    }
    let layout = Layout::new(request)?;
    let mut literal = CkksLiteral::from_bits(request.log_n, &request.q, &request.p, 30.0)?;
    if request.log_n < 16 {
        literal.rlwe.security = Security::InsecureForExperiments;
    }
    let parameters = CkksParameters::new(literal)?;
    let rlwe = parameters.rlwe();
    let secret = SecretKey::sample(rlwe, &mut rng(1))?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let begin = Instant::now();
    let keys = packing_keys(rlwe, &mut generator, &request.packing.keys)?;
    let keygen_s = begin.elapsed().as_secs_f64();
    let key_bytes = keys.bytes();

    let mut source = rng(3);
    let mut unit = || source.next_word() as f64 / 2f64.powi(63) - 1.0;
    let channels = request.channels;
    let mut values = vec![0.0; layout.n];
    for row in 0..layout.inside {
        for column in 0..layout.inside {
            for channel in 0..channels {
                values[layout.place(row, column, channel)] = unit();
            }
        }
    }
    let taps = request.kernel * request.kernel * channels;
    let size = 1.0 / (taps as f64).sqrt();
    let weights: Vec<f64> = (0..taps * channels).map(|_| unit() * size).collect();
    let weight = |out: usize, i: usize, j: usize, k: usize| {
        weights[out * taps + (i * request.kernel + j) * channels + k]
    };

    let encode =
        |values: &[f64], scale: f64| parameters.encode_real(values, Packing::Coefficients, LEVEL, scale);
    let packed = channels.next_power_of_two();
    // In the order in which the packing pairs them: channel `k` is at `k apart`.
    let kernels: Vec<Plaintext> = (0..packed)
        .map(|out| {
            let value = |i, j, k| if out < channels { weight(out, i, j, k) } else { 0.0 };
            encode(&layout.kernel(request.kernel, channels, value), 2f64.powi(30))
        })
        .collect::<Result<_, _>>()?;
    let decryptor = Decryptor::new(&parameters, &secret)?;
    let input = decryptor.encrypt_real(&values, Packing::Coefficients, LEVEL, &mut rng(4))?.expand();
    let packer = Packer::new(&parameters, &keys, layout.fitting, &request.packing.ways, LEVEL)?;
    let mut layer = Layer { packer, fitting: layout.fitting, kernels };
    let result = layer.run(&input)?;
    let found = decryptor.decrypt_real(&result)?;
    let (mut seconds, mut processor, mut automorphisms) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..request.runs {
        let (start, before) = (Instant::now(), processor_seconds());
        drop(std::hint::black_box(layer.run(&input)?));
        let wall = start.elapsed().as_secs_f64();
        let busy = before.and_then(|before| Some(processor_seconds()? - before));
        seconds.push(wall);
        processor.push(busy.unwrap_or(wall));
        automorphisms.push(layer.packer.spent);
    }

    let (mut error, mut largest, mut changed) = (0.0f64, 0.0f64, 0);
    for row in 0..layout.inside {
        for column in 0..layout.inside {
            let mut best = [(f64::MIN, 0), (f64::MIN, 0)];
            for out in 0..channels {
                let mut clear = 0.0;
                for i in 0..request.kernel {
                    for j in 0..request.kernel {
                        let (r, c) =
                            ((row + i).wrapping_sub(layout.half), (column + j).wrapping_sub(layout.half));
                        if r < layout.inside && c < layout.inside {
                            for k in 0..channels {
                                clear += weight(out, i, j, k) * values[layout.place(r, c, k)];
                            }
                        }
                    }
                }
                // The packing multiplies by the number of channels that it packs.
                let value = found[layout.place(row, column, out)] / packed as f64;
                error = error.max((value - clear).abs());
                largest = largest.max(clear.abs());
                for (best, value) in best.iter_mut().zip([clear, value]) {
                    if value > best.0 {
                        *best = (value, out);
                    }
                }
            }
            changed += usize::from(best[0].1 != best[1].1);
        }
    }
    Ok(ConvolutionRecord {
        keys: request.packing.keys.len(),
        key_bytes,
        keygen_s,
        automorphisms: layer.packer.automorphisms,
        switches: layer.packer.switches,
        seconds,
        processor_seconds: processor,
        automorphism_seconds: automorphisms,
        error: (error, largest),
        changed: (changed, layout.inside * layout.inside),
        peak_rss_bytes: peak_rss(),
    })
}

impl ConvolutionRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let peak = self.peak_rss_bytes.map_or_else(|| "null".to_owned(), |bytes| bytes.to_string());
        format!(
            "{{\"keys\":{},\"key_bytes\":{},\"keygen_s\":{:.3},\"automorphisms\":{},\"switches\":{},\"seconds\":{:.6?},\
             \"processor_seconds\":{:.6?},\"automorphism_seconds\":{:.6?},\"error\":{:e},\"largest\":{:e},\
             \"changed\":{},\"pixels\":{},\"peak_rss_bytes\":{peak},\"threads\":{}}}",
            self.keys,
            self.key_bytes,
            self.keygen_s,
            self.automorphisms,
            self.switches,
            self.seconds,
            self.processor_seconds,
            self.automorphism_seconds,
            self.error.0,
            self.error.1,
            self.changed.0,
            self.changed.1,
            threads()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(ways: BTreeMap<u64, Vec<u64>>, keys: &[u64]) -> ConvolutionRequest {
        // 16 channels of 8 x 8 pixels fit 2^10 coefficients; 3 of them are there, 4 are packed.
        ConvolutionRequest {
            log_n: 10,
            q: vec![55, 49, 40],
            p: vec![61],
            width: 8,
            kernel: 3,
            channels: 3,
            packing: PackingKeys {
                keys: keys.iter().map(|&galois| (galois, 1, 1, true, vec![3])).collect(),
                ways,
            },
            runs: 1,
        }
    }

    #[test]
    fn channels_are_convolved_and_packed() {
        // Distances 8 and 4: 2^(10 - 3) + 1 and 2^(10 - 2) + 1.
        let direct = request(BTreeMap::from([(129, vec![129]), (257, vec![257])]), &[129, 257]);
        let record = run_convolution(&direct).unwrap();
        assert_eq!((record.automorphisms, record.switches, record.changed), (3, 3, (0, 49)));
        assert!(record.error.0 < 2f64.powi(-12) && record.error.1 > 0.1, "{:?}", record.error);
        // 129^2 is 257 + 2^14: 257 modulo 2 N.
        let one = request(BTreeMap::from([(129, vec![129]), (257, vec![129, 129])]), &[129]);
        let record = run_convolution(&one).unwrap();
        assert_eq!((record.keys, record.automorphisms, record.switches, record.changed.0), (1, 3, 4, 0));
        assert!(record.error.0 < 2f64.powi(-12), "{:?}", record.error);
        assert!(record.json().starts_with("{\"keys\":1,"), "{}", record.json());
    }

    #[test]
    fn a_wrong_way_gives_a_wrong_result_and_a_missing_one_an_error() {
        let wrong = request(BTreeMap::from([(129, vec![129]), (257, vec![129])]), &[129]);
        let record = run_convolution(&wrong).unwrap();
        assert!(record.error.0 > 1e-2, "{:?}", record.error);
        let missing = request(BTreeMap::from([(129, vec![129])]), &[129]);
        assert!(matches!(run_convolution(&missing), Err(StudyError::Wrong(_))));
        let wide = ConvolutionRequest { channels: 17, ..missing };
        assert!(matches!(run_convolution(&wide), Err(StudyError::Wrong(_))));
    }
}
