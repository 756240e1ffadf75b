//! A network of ConvFHE (Kim and Guyot, "Optimized privacy-preserving CNN inference with fully homomorphic
//! encryption", IEEE TIFS 18, 2023), run on ciphertexts. Each layer multiplies coefficients by a polynomial for each
//! channel of the result, packs the products ([`crate::coefficient_convolution`]), bootstraps coefficients into slots,
//! replaces ReLU by a composition of polynomials in both halves, clears the slots that the next layer must not read,
//! and moves the slots back to coefficients.
//!
//! Behind a convolution with stride, a change of width brings the values together ([`change_of_width`]), as in the
//! functions `testResNet_crop_sparse` and `testResNet_crop_sparse_wide` of ConvFHE's source. If all results fit half of
//! the coefficients, a bootstrap has both halves in one ciphertext.

mod change_of_width;

use std::collections::BTreeMap;
use std::time::Instant;

use keywright_bench::measuring::{peak_rss, rng};
use keywright_circuits::bootstrapping::eval_mod::eval_mod;
use keywright_circuits::bootstrapping::mod_raise::{mod_raise, switch_to_ephemeral};
use keywright_circuits::bootstrapping::{
    BootstrapperLiteral, BootstrapperPlan, CoeffsToSlots, Dft, KeyBudget, SlotsToCoeffs, SlotsToCoeffsPlan,
};
use keywright_circuits::polynomial::{Basis, Polynomial, PolynomialPlan, evaluate};
use keywright_ckks::{
    Ciphertext, CkksLiteral, CkksParameters, Complex64, Decryptor, ErrorEstimate, Evaluator, Magnitude,
    Packing, Plaintext,
};
use keywright_client::{Client, ClientParameters, Form};
use keywright_rlwe::{EvaluationKeys, KeyGenerator, SecretKey, threads};
use keywright_thin_server as server;
use keywright_wire::{Wire, WireSecret};

use self::change_of_width::Mover;
pub use self::change_of_width::{Step, Turn};
use crate::StudyError;
use crate::coefficient_convolution::{Packer, packing_keys};
use crate::key_design::processor_seconds;
use crate::packing_keys::PackingKeys;

/// Bits of the primes: `q_0`, the level of the convolution, three of `slots_to_coeffs`, one of a change of width,
/// twelve of ReLU and of the mask, eight of `eval_mod`, four of `coeffs_to_slots`.
const Q: [u32; 30] = [
    50, 36, 31, 31, 31, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 57, 57, 57, 57, 60, 60, 60, 60,
    46, 46, 46, 46,
];
/// Bits of the special primes.
const P: [u32; 6] = [61; 6];
const LOG_N: u32 = 16;
const LOG_SCALE: f64 = 40.0;
/// Level of the input of a convolution.
const LEVEL: usize = 1;
/// Levels of `slots_to_coeffs`.
const TRANSFORMS: usize = 3;
/// Level of the input of a change of width.
const CHANGE: usize = LEVEL + TRANSFORMS + 1;
/// Level of the mask, which also joins real and imaginary parts.
const MASK: usize = CHANGE + 1;
/// Bits of a thin client's numbers.
const FRACTION_BITS: u32 = 36;

/// A layer, as sparse polynomials.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkLayer {
    /// Exponents of the terms that every kernel has; negative ones wrap around with a sign.
    pub exponents: Vec<i64>,
    /// Coefficients of these terms for each channel of the result.
    pub kernels: Vec<Vec<f64>>,
    /// A summand for each channel.
    pub bias: Vec<f64>,
    /// Channels that fit a polynomial.
    pub fitting: usize,
    /// Distance of the channels of a part of the result, a power of two.
    pub apart: usize,
    /// Ciphertexts of the result, which have its channels in turn, until a change of width joins them.
    pub parts: usize,
    /// The steps of a change of width; none if the result keeps its grid.
    pub steps: Vec<Step>,
    /// Places of the values of channel 0 of the result.
    pub places: Vec<usize>,
}

/// A network, its keys, and its inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkRequest {
    /// `log2` of the slots of a bootstrap, as complex numbers.
    pub log_slots: u32,
    /// Whether a thin client sends images modulo `q_0` and reads the answer.
    pub thin: bool,
    /// Keys for the automorphisms of packings.
    pub packing: PackingKeys,
    /// Keys for changes of width.
    pub change: PackingKeys,
    /// The odd coefficients of the polynomials whose composition is half the sign.
    pub sign: Vec<Vec<f64>>,
    /// All layers but the last have a ReLU.
    pub layers: Vec<NetworkLayer>,
    /// Coefficients of absolute value at most 1.
    pub images: Vec<Vec<f64>>,
}

/// What an image takes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRecord {
    /// Bytes in memory of the keys for packings, for changes of width, and of all others.
    pub key_bytes: [usize; 3],
    /// Numbers of these keys.
    pub keys: [usize; 3],
    /// Key switches of packings and of changes of width.
    pub switches: [usize; 2],
    /// A value for each channel of the last layer.
    pub results: Vec<f64>,
    /// Wall seconds and processor seconds of the server.
    pub seconds: [f64; 2],
    /// Processor seconds of the stages.
    pub stages: BTreeMap<&'static str, f64>,
    /// Wall seconds of the client's encryption and decryption, and bytes to the server and back.
    pub client: ([f64; 2], [usize; 2]),
    /// Peak of the process so far.
    pub peak_rss_bytes: Option<usize>,
}

/// A part of a layer with its plaintexts.
struct Encoded {
    kernels: Vec<Plaintext>,
    packed: usize,
    bias: Vec<f64>,
    /// Coefficients that the next layer reads.
    kept: Vec<bool>,
}

/// The literal of the bootstrapping; its own `slots_to_coeffs` is not used, because a convolution follows ours.
fn literal(log_slots: u32) -> BootstrapperLiteral {
    BootstrapperLiteral {
        log_slots,
        log_ratio: 11.5,
        cosine_degree: 50,
        arcsine_degree: 1,
        budget: KeyBudget::Fastest,
        ..BootstrapperLiteral::default()
    }
}

struct Network<'a> {
    parameters: &'a CkksParameters,
    plan: &'a BootstrapperPlan,
    log_slots: u32,
    coeffs_to_slots: CoeffsToSlots,
    slots_to_coeffs: SlotsToCoeffs,
    sign: Vec<PolynomialPlan>,
    evaluator: Evaluator<'a>,
    packer: Packer<'a>,
    mover: Mover<'a>,
    stages: BTreeMap<&'static str, f64>,
}

impl Network<'_> {
    fn encode(&self, layer: &NetworkLayer, part: usize) -> Result<Encoded, StudyError> {
        let n = 1usize << LOG_N;
        let packed = layer.fitting / layer.apart;
        let rlwe = self.parameters.rlwe();
        // A packing multiplies by the number of its channels, and the rescaling divides by the prime.
        let product = self.plan.coefficients_scale * rlwe.modulus(LEVEL).value() as f64 / packed as f64;
        let scale = product / self.parameters.scale();
        let kernels = layer.kernels.iter().skip(part).step_by(layer.parts).map(|kernel| {
            let mut out = vec![0.0; n];
            for (&exponent, &value) in layer.exponents.iter().zip(kernel) {
                let exponent = exponent.rem_euclid(2 * n as i64) as usize;
                let (place, sign) = if exponent < n { (exponent, 1.0) } else { (exponent - n, -1.0) };
                out[place] += sign * value;
            }
            self.parameters.encode_real(&out, Packing::Coefficients, LEVEL, scale)
        });
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let (mut bias, mut kept) = (vec![0.0; n], vec![false; n]);
        for &place in &layer.places {
            for (channel, &summand) in layer.bias.iter().skip(part).step_by(layer.parts).enumerate() {
                bias[place + channel * layer.apart] = summand;
                kept[place + channel * layer.apart] = true;
            }
        }
        Ok(Encoded { kernels, packed, bias, kept })
    }

    fn timed<T>(
        &mut self,
        stage: &'static str,
        run: impl FnOnce(&mut Self) -> Result<T, StudyError>,
    ) -> Result<T, StudyError> {
        let begin = processor_seconds();
        let out = run(self)?;
        if let (Some(begin), Some(end)) = (begin, processor_seconds()) {
            *self.stages.entry(stage).or_default() += end - begin;
        }
        Ok(out)
    }

    /// The convolution with its summands, at level 0.
    fn convolve(
        &mut self,
        input: &Ciphertext,
        layer: &Encoded,
        fitting: usize,
    ) -> Result<Ciphertext, StudyError> {
        let products = layer.kernels.iter().map(|kernel| self.evaluator.multiply_plain_lazy(input, kernel));
        let mut products = products.map(|product| product.map(Some)).collect::<Result<Vec<_>, _>>()?;
        products.resize_with(layer.packed, || None);
        let mut sum = self.packer.pack(products, fitting)?;
        sum.scale *= layer.packed as f64;
        let mut sum = self.evaluator.rescale(&sum)?;
        sum.estimate.magnitude = 1.0;
        let bias = self.parameters.encode_real(&layer.bias, Packing::Coefficients, sum.level(), sum.scale)?;
        Ok(self.evaluator.add_plain(&sum, &bias)?)
    }

    /// Coefficients at level 0 as slots.
    fn bootstrap(&mut self, lowest: &Ciphertext) -> Result<Vec<Ciphertext>, StudyError> {
        let parts = self.timed("coeffs_to_slots", |s| {
            Ok(if s.coeffs_to_slots.plan().is_raised() {
                let raised = switch_to_ephemeral(&s.evaluator, &s.plan.mod_raise, lowest)?;
                s.coeffs_to_slots.evaluate_raised(&s.evaluator, &raised)?
            } else {
                let raised = mod_raise(&s.evaluator, &s.plan.mod_raise, lowest)?;
                s.coeffs_to_slots.evaluate(&s.evaluator, &raised)?
            })
        })?;
        self.timed("eval_mod", |s| {
            let reduce = |part| eval_mod(&s.evaluator, &s.plan.eval_mod, part, s.plan.ratio(), s.plan.scale);
            Ok(parts.iter().map(reduce).collect::<Result<Vec<_>, _>>()?)
        })
    }

    fn relu(&self, part: &Ciphertext) -> Result<Ciphertext, StudyError> {
        let mut sign = part.clone();
        for plan in &self.sign {
            sign = evaluate(&self.evaluator, plan, &sign, Some(self.parameters.scale()))?;
        }
        let step = self.evaluator.add_constant(&sign, 0.5)?;
        let value = self.evaluator.drop_to_level(part, step.level())?;
        Ok(self.evaluator.multiply(&step, &value)?)
    }

    /// The slots of the coefficients in `kept`, as complex numbers: two ciphertexts, or the halves of one.
    fn join(&self, parts: &[Ciphertext], kept: &[bool]) -> Result<Ciphertext, StudyError> {
        let (log_slots, half) = (self.log_slots, kept.len() / 2);
        let (reversed, gap) = (usize::BITS - log_slots, LOG_N - 1 - log_slots);
        let mask = |part: usize| {
            (0..1usize << log_slots).map(move |j| {
                f64::from(u8::from(kept[part * half + ((j.reverse_bits() >> reversed) << gap)]))
            })
        };
        let scale = self.parameters.rlwe().modulus(MASK).value() as f64;
        let parts = parts.iter().map(|part| self.evaluator.drop_to_level(part, MASK));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let real = |value: f64| Complex64::new(value, 0.0);
        let imaginary = |value: f64| Complex64::new(0.0, value);
        // What each part is multiplied by; the halves of one are also exchanged.
        let (log_parts, factors): (u32, [Vec<Complex64>; 2]) = match parts.len() {
            1 => (
                log_slots + 1,
                [
                    mask(0).map(real).chain(mask(1).map(imaginary)).collect(),
                    mask(1).map(imaginary).chain(mask(0).map(real)).collect(),
                ],
            ),
            _ => (log_slots, [mask(0).map(real).collect(), mask(1).map(imaginary).collect()]),
        };
        let other = match parts.get(1) {
            Some(other) => other.clone(),
            None => self.evaluator.rotate(&parts[0], 1 << log_slots)?,
        };
        let mut products = Vec::new();
        for (part, factor) in [&parts[0], &other].into_iter().zip(&factors) {
            let factor = self.parameters.encode(factor, log_parts, MASK, scale)?;
            products.push(self.evaluator.multiply_plain_lazy(part, &factor)?);
        }
        let mut slots = self.evaluator.rescale(&self.evaluator.add(&products[0], &products[1])?)?;
        slots.packing = Packing::Slots { log_slots };
        slots.estimate.magnitude = std::f64::consts::SQRT_2;
        Ok(slots)
    }

    /// Slots as coefficients at the level of a convolution.
    fn lower(&mut self, slots: &Ciphertext) -> Result<Ciphertext, StudyError> {
        self.timed("slots_to_coeffs", |s| Ok(s.slots_to_coeffs.evaluate(&s.evaluator, slots)?))
    }

    /// A layer with its ReLU, as coefficients at the level of a convolution.
    fn hidden(&mut self, input: &Ciphertext, layer: &NetworkLayer) -> Result<Ciphertext, StudyError> {
        let mut joined: Option<Ciphertext> = None;
        for part in 0..layer.parts {
            let encoded = self.timed("encode", |s| s.encode(layer, part))?;
            let sum = self.timed("convolution", |s| s.convolve(input, &encoded, layer.fitting))?;
            let halves = self.bootstrap(&sum)?;
            let mut slots = self.timed("relu", |s| {
                let values = halves.iter().map(|half| s.relu(half)).collect::<Result<Vec<_>, _>>()?;
                s.join(&values, &encoded.kept)
            })?;
            if !layer.steps.is_empty() {
                slots = self.timed("change_of_width", |s| s.mover.change(&slots, &layer.steps))?;
            }
            let mut value = self.lower(&slots)?;
            if part > 0 {
                // A channel of the grid of half the width takes a fourth of the places.
                let mut monomial = vec![0.0; 1 << LOG_N];
                monomial[4 * layer.apart * part / layer.parts] = 1.0;
                let monomial = self.parameters.encode_real(&monomial, Packing::Coefficients, LEVEL, 1.0)?;
                value = self.evaluator.multiply_plain_lazy(&value, &monomial)?;
            }
            joined = Some(match joined {
                Some(joined) => self.evaluator.add(&joined, &value)?,
                None => value,
            });
        }
        joined.ok_or_else(|| StudyError::Wrong("a layer without parts".to_owned()))
    }

    /// The network on coefficients, which a thin client sent modulo `q_0`, or which are at the level of a convolution.
    fn run(&mut self, input: &Ciphertext, layers: &[NetworkLayer]) -> Result<Ciphertext, StudyError> {
        let mut value = input.clone();
        if value.level() == 0 {
            let before = self.stages.clone();
            let parts = self.bootstrap(&value)?;
            let slots = self.join(&parts, &vec![true; 1 << LOG_N])?;
            value = self.lower(&slots)?;
            let spent = self.stages.values().sum::<f64>() - before.values().sum::<f64>();
            self.stages = before;
            self.stages.insert("first_bootstrap", spent);
        }
        let (last, hidden) =
            layers.split_last().ok_or_else(|| StudyError::Wrong("a network without layers".to_owned()))?;
        for layer in hidden {
            value = self.hidden(&value, layer)?;
        }
        let encoded = self.timed("encode", |s| s.encode(last, 0))?;
        self.timed("convolution", |s| s.convolve(&value, &encoded, last.fitting))
    }
}

/// The owner of the data: a thin client, or one that encrypts at the level of a convolution.
struct Owner<'a> {
    thin: &'a ClientParameters,
    client: Client,
    decryptor: Decryptor<'a>,
    parameters: &'a CkksParameters,
}

impl Owner<'_> {
    /// What the server computes on, and the bytes that were sent.
    fn send(&mut self, image: &[f64], thin: bool) -> Result<(Ciphertext, usize), StudyError> {
        let mut source = rng(4);
        if !thin {
            let sent = self.decryptor.encrypt_real(image, Packing::Coefficients, LEVEL, &mut source)?;
            let bytes = sent.to_bytes(self.parameters)?.len();
            return Ok((sent.expand(), bytes));
        }
        let layout = self.thin.layout();
        let numbers: Vec<i64> = (0..self.thin.capacity())
            .map(|index| image[layout.position(LOG_N, index)] * f64::from(FRACTION_BITS).exp2())
            .map(|value| value.round() as i64)
            .collect();
        let mut bytes = Vec::new();
        self.client.encrypt(&numbers[..], Form::Evaluations, &mut bytes)?;
        Ok((server::read_upload(&bytes, self.parameters, self.thin)?, bytes.len()))
    }

    /// The values at some places, and the bytes that came back.
    fn open(
        &mut self,
        result: &Ciphertext,
        thin: bool,
        places: &[usize],
    ) -> Result<(Vec<f64>, usize), StudyError> {
        let wrong = || StudyError::Wrong("a result is at no place of the client's".to_owned());
        let layout = self.thin.layout();
        let mut answer = Vec::new();
        // Polynomials instead of ReLU have no useful bound: the study compares results instead.
        let estimate = ErrorEstimate { deviation: 0.0, magnitude: 1.0, real: true };
        server::write_answer(&Ciphertext { estimate, ..result.clone() }, layout, [0, 0], &mut answer)?;
        if !thin {
            let decrypted = self.decryptor.decrypt_real(result)?;
            return Ok((places.iter().map(|&place| decrypted[place]).collect(), answer.len()));
        }
        let mut numbers = vec![0; self.thin.capacity()];
        self.client.decrypt(&answer, &mut numbers)?;
        let values = places.iter().map(|&place| {
            let index = layout.index(LOG_N, place).ok_or_else(wrong)?;
            Ok(numbers[index] as f64 * (-f64::from(FRACTION_BITS)).exp2())
        });
        Ok((values.collect::<Result<_, StudyError>>()?, answer.len()))
    }
}

/// Runs a network on encrypted inputs. `emit` gets the record of each when it is ready.
///
/// # Errors
/// [`StudyError::Wrong`] for an automorphism without a way; what the engine refuses.
pub fn run_network(request: &NetworkRequest, emit: &mut dyn FnMut(NetworkRecord)) -> Result<(), StudyError> {
    let parameters = CkksParameters::new(CkksLiteral::from_bits(LOG_N, &Q, &P, LOG_SCALE)?)?;
    let rlwe = parameters.rlwe();
    let plan = BootstrapperPlan::new(&parameters, &literal(request.log_slots))?;
    let last = {
        let dft = Dft::balanced(request.log_slots, TRANSFORMS)?;
        let scale = parameters.scale();
        SlotsToCoeffsPlan::new(&parameters, dft, LEVEL + TRANSFORMS, scale, scale, KeyBudget::Fastest)?
    };
    let thin = server::client_parameters(&parameters, &plan, FRACTION_BITS)?;
    let mut entropy = rng(1);
    let client = Client::generate(&thin, &mut |out: &mut [u8]| {
        entropy.fill_bytes(out);
        Ok(())
    })?;
    let secret = SecretKey::from_secret_bytes(&client.secret_bytes()?, rlwe)?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let mut keys = EvaluationKeys::new(rlwe);
    let own: Vec<_> = plan.slots_to_coeffs.required_keys();
    let specs = plan.required_keys().into_iter().filter(|spec| !own.contains(spec));
    for key in generator.switching_keys(&specs.chain(last.required_keys()).collect::<Vec<_>>())? {
        keys.insert(key?)?;
    }
    let packing = packing_keys(rlwe, &mut generator, &request.packing.keys)?;
    let change = packing_keys(rlwe, &mut generator, &request.change.keys)?;
    let fitting = request.layers.iter().map(|layer| layer.fitting).max().unwrap_or(1);
    let mut network = Network {
        parameters: &parameters,
        plan: &plan,
        log_slots: request.log_slots,
        coeffs_to_slots: CoeffsToSlots::new(&parameters, &plan.coeffs_to_slots)?,
        slots_to_coeffs: SlotsToCoeffs::new(&parameters, &last)?,
        sign: request
            .sign
            .iter()
            .map(|odd| {
                let coefficients = odd.iter().flat_map(|&c| [0.0, c]).collect();
                Ok(PolynomialPlan::new(&Polynomial::new(Basis::Monomial, coefficients)?))
            })
            .collect::<Result<_, StudyError>>()?,
        evaluator: Evaluator::new(&parameters, &keys)?,
        packer: Packer::new(&parameters, &packing, fitting, &request.packing.ways, LEVEL)?,
        mover: Mover::new(&parameters, &change, CHANGE, request.log_slots)?,
        stages: BTreeMap::new(),
    };
    let decryptor = Decryptor::new(&parameters, &secret)?.declaring(Magnitude::new(1.0)?);
    let mut owner = Owner { thin: &thin, client, decryptor, parameters: &parameters };
    for image in &request.images {
        let begin = Instant::now();
        let (input, sent) = owner.send(image, request.thin)?;
        let encryption = begin.elapsed().as_secs_f64();
        network.stages.clear();
        let before = [network.packer.switches(), network.mover.switches];
        let (begin, processor) = (Instant::now(), processor_seconds());
        let result = network.run(&input, &request.layers)?;
        let wall = begin.elapsed().as_secs_f64();
        let spent = processor_seconds().zip(processor).map_or(wall, |(end, begin)| end - begin);
        let layer = &request.layers[request.layers.len() - 1];
        let places: Vec<_> = (0..layer.bias.len()).map(|k| layer.places[0] + k * layer.apart).collect();
        let begin = Instant::now();
        let (results, answered) = owner.open(&result, request.thin, &places)?;
        emit(NetworkRecord {
            key_bytes: [packing.bytes(), change.bytes(), keys.bytes()],
            keys: [request.packing.keys.len(), request.change.keys.len(), keys.len()],
            switches: [network.packer.switches() - before[0], network.mover.switches - before[1]],
            results,
            seconds: [wall, spent],
            stages: network.stages.clone(),
            client: ([encryption, begin.elapsed().as_secs_f64()], [sent, answered]),
            peak_rss_bytes: peak_rss(),
        });
    }
    Ok(())
}

impl NetworkRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let peak = self.peak_rss_bytes.map_or_else(|| "null".to_owned(), |bytes| bytes.to_string());
        let stages: Vec<String> =
            self.stages.iter().map(|(stage, seconds)| format!("\"{stage}\":{seconds:.3}")).collect();
        let named = |name: &str, [packing, change, other]: [usize; 3]| {
            format!("\"packing_{name}\":{packing},\"change_{name}\":{change},\"other_{name}\":{other}")
        };
        let [[packings, changes], [wall, processor]] =
            [self.switches.map(|count| count as f64), self.seconds].map(|[a, b]| [a, b]);
        let ([encrypt, decrypt], [up, down]) = self.client;
        format!(
            "{{{},{},\"packing_switches\":{packings},\"change_switches\":{changes},\"seconds\":{wall:.3},\
             \"processor_seconds\":{processor:.3},\"stages\":{{{}}},\"encrypt_s\":{encrypt:.4},\"decrypt_s\":{decrypt:.4},\
             \"bytes_up\":{up},\"bytes_down\":{down},\"results\":{:?},\"peak_rss_bytes\":{peak},\"threads\":{}}}",
            named("keys", self.keys),
            named("bytes_held", self.key_bytes),
            stages.join(","),
            self.results,
            threads()
        )
    }
}
