//! A network of ConvFHE (Kim and Guyot, "Optimized privacy-preserving CNN inference with fully homomorphic
//! encryption", IEEE TIFS 18, 2023), run on ciphertexts. Each layer multiplies coefficients by a polynomial for each
//! channel of the result, packs the products ([`crate::coefficient_convolution`]), bootstraps coefficients into slots,
//! replaces ReLU by a composition of polynomials in both halves, clears the slots that the next layer must not read,
//! and moves the slots back to coefficients.
//!
//! Values keep their places: a convolution with stride leaves values at every second place of the one before, and the
//! next kernel steps over the gaps, as in the function `testResNet_crop_fast_in` of ConvFHE's source.

use std::collections::BTreeMap;
use std::time::Instant;

use keywright_bench::measuring::{peak_rss, rng};
use keywright_circuits::bootstrapping::eval_mod::eval_mod;
use keywright_circuits::bootstrapping::mod_raise::switch_to_ephemeral;
use keywright_circuits::bootstrapping::{
    BootstrapperLiteral, BootstrapperPlan, CoeffsToSlots, Dft, KeyBudget, SlotsToCoeffs, SlotsToCoeffsPlan,
};
use keywright_circuits::polynomial::{Basis, Polynomial, PolynomialPlan, evaluate};
use keywright_ckks::{
    Ciphertext, CkksLiteral, CkksParameters, Decryptor, Evaluator, Magnitude, Packing, Plaintext,
};
use keywright_rlwe::{EvaluationKeys, KeyGenerator, SecretKey, threads};

use crate::StudyError;
use crate::coefficient_convolution::{Packer, packing_keys};
use crate::packing_keys::PackingKeys;

/// Bits of the primes: `q_0`, the level of the convolution, three of `slots_to_coeffs`, twelve of ReLU and of the
/// mask, eight of `eval_mod`, four of `coeffs_to_slots`.
const Q: [u32; 29] = [
    50, 36, 31, 31, 31, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 57, 57, 57, 57, 60, 60, 60, 60, 46,
    46, 46, 46,
];
/// Bits of the special primes.
const P: [u32; 6] = [61; 6];
const LOG_N: u32 = 16;
const LOG_SCALE: f64 = 40.0;
/// Level of the input of a convolution.
const LEVEL: usize = 1;
/// Levels of `slots_to_coeffs`.
const TRANSFORMS: usize = 3;

/// The sign of ConvFHE's source (Lee, Lee, No and Kim, IEEE TDSC 19, 2022, precision 10), the last one halved: odd
/// coefficients.
const SIGN: [&[f64]; 3] = [
    &[10.8541842577442, -62.2833925211098, 114.369227820443, -62.8023496973074],
    &[4.13976170985111, -5.84997640211679, 2.94376255659280, -0.454530437460152],
    &[
        1.649783695218665,
        -3.921136301456775,
        6.4453832057782,
        -6.2458558624243,
        3.47083995714037,
        -1.02149033499971,
        0.1232035694630155,
    ],
];

/// A layer, as sparse polynomials.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkLayer {
    /// Exponents of the terms that every kernel has; negative ones wrap around with a sign.
    pub exponents: Vec<i64>,
    /// Coefficients of these terms for each channel of the result.
    pub kernels: Vec<Vec<f64>>,
    /// A summand for each channel.
    pub bias: Vec<f64>,
    /// Distance of the channels of the result, a power of two.
    pub apart: usize,
    /// Places of the values of channel 0 of the result.
    pub places: Vec<usize>,
}

/// A network, its keys for packings, and its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRequest {
    /// Channels that fit a polynomial.
    pub fitting: usize,
    /// Keys for the automorphisms of packings.
    pub packing: PackingKeys,
    /// All layers but the last have a ReLU.
    pub layers: Vec<NetworkLayer>,
    /// Coefficients of absolute value at most 1.
    pub images: Vec<Vec<f64>>,
}

/// What a network takes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRecord {
    /// Bytes of the keys for packings, and of all others.
    pub key_bytes: (usize, usize),
    /// Numbers of these keys.
    pub keys: (usize, usize),
    /// Key switches of the packings of one input.
    pub switches: usize,
    /// Results of each input: a value for each channel, at the first place.
    pub results: Vec<Vec<f64>>,
    /// Wall seconds of each input.
    pub seconds: Vec<f64>,
    /// Wall seconds of the stages of all inputs.
    pub stages: BTreeMap<&'static str, f64>,
    /// Peak of the process.
    pub peak_rss_bytes: Option<usize>,
}

/// A layer with its plaintexts.
struct Encoded {
    kernels: Vec<Plaintext>,
    bias: Vec<f64>,
    packed: usize,
    apart: usize,
    mask: [Vec<f64>; 2],
    places: Vec<usize>,
}

/// The literal of the bootstrapping; its own `slots_to_coeffs` is not used, because a convolution follows ours.
fn literal() -> BootstrapperLiteral {
    BootstrapperLiteral {
        log_ratio: 11.5,
        cosine_degree: 50,
        arcsine_degree: 1,
        budget: KeyBudget::Fastest,
        ..BootstrapperLiteral::default()
    }
}

fn bit_reversed(j: usize) -> usize {
    j.reverse_bits() >> (usize::BITS - (LOG_N - 1))
}

struct Network<'a> {
    parameters: &'a CkksParameters,
    plan: &'a BootstrapperPlan,
    coeffs_to_slots: CoeffsToSlots,
    slots_to_coeffs: SlotsToCoeffs,
    sign: Vec<PolynomialPlan>,
    evaluator: Evaluator<'a>,
    packer: Packer<'a>,
    stages: BTreeMap<&'static str, f64>,
}

impl Network<'_> {
    fn encode(&self, layer: &NetworkLayer) -> Result<Encoded, StudyError> {
        let n = 1usize << LOG_N;
        let packed = self.packer.fitting() / layer.apart;
        let rlwe = self.parameters.rlwe();
        // A packing multiplies by the number of its channels, and the rescaling divides by the prime.
        let product = self.plan.coefficients_scale * rlwe.modulus(LEVEL).value() as f64 / packed as f64;
        let scale = product / self.parameters.scale();
        let kernels = layer.kernels.iter().map(|kernel| {
            let mut out = vec![0.0; n];
            for (&exponent, &value) in layer.exponents.iter().zip(kernel) {
                let exponent = exponent.rem_euclid(2 * n as i64) as usize;
                let (place, sign) = if exponent < n { (exponent, 1.0) } else { (exponent - n, -1.0) };
                out[place] += sign * value;
            }
            self.parameters.encode_real(&out, Packing::Coefficients, LEVEL, scale)
        });
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let (mut bias, mut kept) = (vec![0.0; n], vec![0.0; n]);
        for &place in &layer.places {
            for (channel, &summand) in layer.bias.iter().enumerate() {
                bias[place + channel * layer.apart] = summand;
                kept[place + channel * layer.apart] = 1.0;
            }
        }
        let mask = [0, n / 2].map(|half| (0..n / 2).map(|j| kept[half + bit_reversed(j)]).collect());
        Ok(Encoded { kernels, bias, packed, apart: layer.apart, mask, places: layer.places.clone() })
    }

    fn timed<T>(
        &mut self,
        stage: &'static str,
        run: impl FnOnce(&mut Self) -> Result<T, StudyError>,
    ) -> Result<T, StudyError> {
        let begin = Instant::now();
        let out = run(self)?;
        *self.stages.entry(stage).or_default() += begin.elapsed().as_secs_f64();
        Ok(out)
    }

    /// The convolution with its summands, at level 0.
    fn convolve(&mut self, input: &Ciphertext, layer: &Encoded) -> Result<Ciphertext, StudyError> {
        let products = layer.kernels.iter().map(|kernel| self.evaluator.multiply_plain_lazy(input, kernel));
        let mut products = products.map(|product| product.map(Some)).collect::<Result<Vec<_>, _>>()?;
        products.resize_with(layer.packed, || None);
        let mut sum = self.packer.pack(products)?;
        sum.scale *= layer.packed as f64;
        let mut sum = self.evaluator.rescale(&sum)?;
        sum.estimate.magnitude = 1.0;
        let bias = self.parameters.encode_real(&layer.bias, Packing::Coefficients, sum.level(), sum.scale)?;
        Ok(self.evaluator.add_plain(&sum, &bias)?)
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

    /// ReLU of coefficients at level 0, as coefficients at the level of a convolution.
    fn activate(&mut self, lowest: &Ciphertext, layer: &Encoded) -> Result<Ciphertext, StudyError> {
        let raised =
            self.timed("raise", |s| Ok(switch_to_ephemeral(&s.evaluator, &s.plan.mod_raise, lowest)?))?;
        let parts = self
            .timed("coeffs_to_slots", |s| Ok(s.coeffs_to_slots.evaluate_raised(&s.evaluator, &raised)?))?;
        let reduced = self.timed("eval_mod", |s| {
            let reduce = |part| eval_mod(&s.evaluator, &s.plan.eval_mod, part, s.plan.ratio(), s.plan.scale);
            Ok(parts.iter().map(reduce).collect::<Result<Vec<_>, _>>()?)
        })?;
        let values =
            self.timed("relu", |s| reduced.iter().map(|part| s.relu(part)).collect::<Result<Vec<_>, _>>())?;
        self.timed("slots_to_coeffs", |s| {
            let masked = values.iter().zip(&layer.mask);
            let masked = masked.map(|(value, mask)| s.evaluator.multiply_values(value, mask));
            let masked = masked.collect::<Result<Vec<_>, _>>()?;
            let imaginary = s.evaluator.multiply_by_i(&masked[1])?;
            let mut slots = s.evaluator.add(&masked[0], &imaginary)?;
            slots.estimate.magnitude = std::f64::consts::SQRT_2;
            Ok(s.slots_to_coeffs.evaluate(&s.evaluator, &slots)?)
        })
    }
}

/// Runs a network on encrypted inputs.
///
/// # Errors
/// [`StudyError::Wrong`] for an automorphism without a way; what the engine refuses.
pub fn run_network(request: &NetworkRequest) -> Result<NetworkRecord, StudyError> {
    let parameters = CkksParameters::new(CkksLiteral::from_bits(LOG_N, &Q, &P, LOG_SCALE)?)?;
    let rlwe = parameters.rlwe();
    let plan = BootstrapperPlan::new(&parameters, &literal())?;
    let last = {
        let dft = Dft::balanced(LOG_N - 1, TRANSFORMS)?;
        let scale = parameters.scale();
        SlotsToCoeffsPlan::new(&parameters, dft, LEVEL + TRANSFORMS, scale, scale, KeyBudget::Fastest)?
    };
    let secret = SecretKey::sample(rlwe, &mut rng(1))?;
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let mut keys = EvaluationKeys::new(rlwe);
    let own: Vec<_> = plan.slots_to_coeffs.required_keys();
    let specs = plan.required_keys().into_iter().filter(|spec| !own.contains(spec));
    for key in generator.switching_keys(&specs.chain(last.required_keys()).collect::<Vec<_>>())? {
        keys.insert(key?)?;
    }
    let packing = packing_keys(rlwe, &mut generator, &request.packing.keys)?;
    let mut network = Network {
        parameters: &parameters,
        plan: &plan,
        coeffs_to_slots: CoeffsToSlots::new(&parameters, &plan.coeffs_to_slots)?,
        slots_to_coeffs: SlotsToCoeffs::new(&parameters, &last)?,
        sign: SIGN
            .iter()
            .map(|odd| {
                let coefficients = odd.iter().flat_map(|&c| [0.0, c]).collect();
                Ok(PolynomialPlan::new(&Polynomial::new(Basis::Monomial, coefficients)?))
            })
            .collect::<Result<_, StudyError>>()?,
        evaluator: Evaluator::new(&parameters, &keys)?,
        packer: Packer::new(&parameters, &packing, request.fitting, &request.packing.ways, LEVEL)?,
        stages: BTreeMap::new(),
    };
    let decryptor = Decryptor::new(&parameters, &secret)?.declaring(Magnitude::new(1.0)?);
    let (mut results, mut seconds, mut source) = (Vec::new(), Vec::new(), rng(4));
    for image in &request.images {
        let input = decryptor.encrypt_real(image, Packing::Coefficients, LEVEL, &mut source)?.expand();
        let (begin, mut value) = (Instant::now(), input);
        for (index, layer) in request.layers.iter().enumerate() {
            let layer = network.timed("encode", |s| s.encode(layer))?;
            let sum = network.timed("convolution", |s| s.convolve(&value, &layer))?;
            if index + 1 < request.layers.len() {
                value = network.activate(&sum, &layer)?;
                continue;
            }
            seconds.push(begin.elapsed().as_secs_f64());
            let decrypted = decryptor.decrypt_real(&sum)?;
            let channels = request.layers[index].bias.len();
            results.push((0..channels).map(|k| decrypted[layer.places[0] + k * layer.apart]).collect());
        }
    }
    Ok(NetworkRecord {
        key_bytes: (packing.bytes(), keys.bytes()),
        keys: (request.packing.keys.len(), keys.len()),
        switches: network.packer.switches() / request.images.len().max(1),
        results,
        seconds,
        stages: network.stages,
        peak_rss_bytes: peak_rss(),
    })
}

impl NetworkRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        let peak = self.peak_rss_bytes.map_or_else(|| "null".to_owned(), |bytes| bytes.to_string());
        let stages: Vec<String> =
            self.stages.iter().map(|(stage, seconds)| format!("\"{stage}\":{seconds:.3}")).collect();
        format!(
            "{{\"packing_keys\":{},\"packing_key_bytes\":{},\"other_keys\":{},\"other_key_bytes\":{},\"switches\":{},\
             \"seconds\":{:.3?},\"stages\":{{{}}},\"results\":{:?},\"peak_rss_bytes\":{peak},\"threads\":{}}}",
            self.keys.0,
            self.key_bytes.0,
            self.keys.1,
            self.key_bytes.1,
            self.switches,
            self.seconds,
            stages.join(","),
            self.results,
            threads()
        )
    }
}
