use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::{
    BOOTSTRAP_PRESETS, BootstrapperLiteral, BootstrapperPlan, FactorPlan, FactorSteps, KeyGroup, Order,
    Values, bootstrap_preset,
};
use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_rlwe::KeySpec;
use keywright_thin_server as server;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::array::{Numbers, log_slots};
use crate::arguments::integers::{CountOrName, integers};
use crate::circuits::arithmetic::named;
use crate::circuits::plan_arguments::{
    ORDERS, parse_budget, parse_design, parse_iterations, parse_kept, parse_values,
};
use crate::classes::getters::getters;
use crate::errors::{Failure, Refusal};
use crate::keys::descriptions::spec::PyKeySpec;
use crate::parameters::ckks::PyParameters;
use crate::parameters::keys::KeyParameters;
use crate::stored::not_pickled;
use crate::thin_client::parameters::PyClientParameters;
use crate::threads::compute;

/// The operations of a bootstrapping other than key switches: stage, level, number of special primes, counts, and how
/// often.
type PyOperation<'py> = (&'static str, usize, Option<usize>, Bound<'py, PyDict>, usize);

/// A way to evaluate a factor: baby steps, key switches (form, Galois elements, how often), number of special primes
/// and counts of the rest.
type PyWay<'py> = (usize, Vec<(&'static str, Vec<u64>, usize)>, (Option<usize>, Bound<'py, PyDict>));
/// A factor: its stage, its level and its ways.
type PyFactor<'py> = (&'static str, usize, Vec<PyWay<'py>>);

/// A bootstrapping, stage by stage: levels, scales and keys, before any key is made.
///
/// Levels, from the top, of the order "slots_to_coeffs_first": `mod_raise` raises level 0 to the highest level used.
/// `coeffs_to_slots` consumes one level for each of its factors, `eval_mod` 7 to 12, and complex values of fewer than
/// N/2 slots one more. The result is at the remaining level, the output level. `slots_to_coeffs` runs from the input
/// level to 0. In the order "mod_raise_first" the input level is 0, and `slots_to_coeffs` ends at the output level.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: of the ciphertexts. Inputs and results have their scale.
///     slots: a power of two up to N/2, the default.
///     values: "complex", "real" or "pair": the values in the slots, each part of absolute value at most 1. The imaginary
///         parts of "real" values are lost. "pair" is for real values of two ciphertexts at once (`bootstrap_pair`) or
///         of one, in N/2 slots, in the order "slots_to_coeffs_first" and one pass.
///     order: "slots_to_coeffs_first"; or "mod_raise_first", the order of most other libraries, in which errors of
///         coefficients add up in slots.
///     slots_to_coeffs: levels of that stage: the number of matrices into which the Fourier transform is factored.
///     coeffs_to_slots: levels of that stage.
///     key_budget: the bytes that the keys may take in memory: a number, "fastest" for no limit, or "fewest" for the
///         minimum. Fewer bytes cost time; the fastest way to evaluate every factor within the budget is chosen.
///     stages_apart: whether each stage must be usable alone. By default `mod_raise` and the first factor of
///         `coeffs_to_slots` are fused if possible (N/2 slots, an ephemeral secret), which saves time and bytes.
///     alpha: the digits of keys, with the stages apart; None, the default, for the least work within the budget. A
///         number applies to all keys: digits of at most that many primes over as many special primes of the
///         parameters. "maximum" is the number of their special primes. "dynamic" chooses for each key the digits that
///         need the fewest transforms at its level, over the special primes of the parameters; "dynamic_dropped" also
///         uses primes that ciphertexts at its level have dropped.
///     key_levels: of keys with such an alpha: "needed" for the level where they are used, "top" for the highest that
///         their special primes and the security bound allow.
///     ephemeral_weight: Hamming weight of the ephemeral secret under which the modulus is raised; None for the main
///         secret, which then determines the range of `eval_mod`.
///     log2_failure: log2 of the probability that a bootstrap fails, -40 by default.
///     log_ratio: log2 of q_0 divided by the scale of the coefficients. One more costs a bit of precision, and eases
///         the arcsine.
///     cosine_degree: even degree of the cosine that `eval_mod` evaluates.
///     double_angles: double angles after it, one level each.
///     arcsine_degree: odd degree of the arcsine at its end; 1 for none.
///     iterations: passes in all. Each pass after the first bootstraps the scaled-up error of the one before, and adds
///         it. It takes as long, but consumes no levels.
///     log_precision: least bits after the point of the bound on the error of one pass; the next pass corrects it by
///         this many bits. Required for 2 iterations or more, and only then.
///     output_level: level of results, the highest by default. A lower one is cheaper.
///     input_log_n: log2 of the degree of the inputs' ring: a subring of the parameters, in which `slots_to_coeffs`
///         runs with smaller keys. `slots` is then at most half of that degree. Results are always in the parameters'
///         own ring.
///
/// Raises:
///     LevelError: the parameters have too few levels, or the output level is below the input level.
///     SecurityError: a key would exceed the bound for its secret.
///     ParameterError: a number is illegal, such as an alpha above the number of special primes; no approximation has
///         these degrees, or as many bits as `log_precision`; the key budget is below its `minimum`, the fewest
///         possible bytes.
///     ScaleError: the coefficients' scale is below 1.
///
/// Errors of a stage have its name as `stage` and the level of its input as `stage_level`.
#[pyclass(name = "BootstrapperPlan", module = "keywright", frozen)]
pub(crate) struct PyBootstrapperPlan {
    pub(crate) parameters: PyParameters,
    pub(crate) plan: Arc<BootstrapperPlan>,
    log_slots: u32,
    values: Values,
}

/// The ring of inputs.
fn input_ring(parameters: &CkksParameters, log_n: Option<u32>) -> Result<&CkksParameters, Failure> {
    Ok(log_n.map_or(Ok(parameters), |log_n| parameters.ring_of_degree(log_n))?)
}

/// `log2` of the number of slots of inputs.
fn input_slots(
    parameters: &CkksParameters,
    slots: Option<usize>,
    log_n: Option<u32>,
) -> Result<u32, Failure> {
    log_slots(input_ring(parameters, log_n)?, slots)
}

impl PyBootstrapperPlan {
    fn make(parameters: PyParameters, literal: &BootstrapperLiteral) -> Result<Self, Failure> {
        let plan = Arc::new(BootstrapperPlan::new(&parameters.0, literal)?);
        Ok(Self { parameters, plan, log_slots: literal.log_slots, values: literal.values })
    }

    fn key(&self, spec: KeySpec) -> PyKeySpec {
        let parameters = KeyParameters::Ckks(self.parameters.clone());
        let ring = parameters.ring_named(spec.subring).unwrap_or_else(|_| parameters.clone());
        PyKeySpec { parameters: ring, spec }
    }
}

not_pickled!(PyBootstrapperPlan);

#[integers]
#[pymethods]
impl PyBootstrapperPlan {
    #[new]
    #[pyo3(signature = (
        parameters, *, slots_to_coeffs, coeffs_to_slots, log_ratio, cosine_degree, double_angles, arcsine_degree, slots=None,
        values="complex", order="slots_to_coeffs_first", key_budget=CountOrName::Name("fastest".into()), stages_apart=false,
        alpha=None, key_levels="needed", ephemeral_weight=32, log2_failure=-40.0, iterations=1, log_precision=None, output_level=None,
        input_log_n=None
    ))]
    fn new(
        py: Python<'_>,
        parameters: &PyParameters,
        slots_to_coeffs: usize,
        coeffs_to_slots: usize,
        log_ratio: f64,
        cosine_degree: usize,
        double_angles: u32,
        arcsine_degree: usize,
        slots: Option<usize>,
        values: &str,
        order: &str,
        key_budget: CountOrName,
        stages_apart: bool,
        alpha: Option<CountOrName>,
        key_levels: &str,
        ephemeral_weight: Option<usize>,
        log2_failure: f64,
        iterations: usize,
        log_precision: Option<u32>,
        output_level: Option<usize>,
        input_log_n: Option<u32>,
    ) -> Result<Self, Failure> {
        let literal = BootstrapperLiteral {
            log_slots: input_slots(&parameters.0, slots, input_log_n)?,
            values: parse_values(values)?,
            order: Refusal::choice("order", order, &ORDERS, None)?,
            slots_to_coeffs,
            coeffs_to_slots,
            budget: parse_budget(key_budget)?,
            stages_apart,
            keys: parse_design(alpha, key_levels, parameters.0.rlwe())?,
            ephemeral_weight,
            log2_failure,
            log_ratio,
            cosine_degree,
            double_angles,
            arcsine_degree,
            iterations: parse_iterations(iterations, log_precision)?,
            output_level,
            input_log_n,
        };
        compute(py, || Self::make(parameters.clone(), &literal))
    }

    /// Names of the shipped bootstrappings, each with matching parameters.
    #[staticmethod]
    fn presets() -> Vec<&'static str> {
        BOOTSTRAP_PRESETS.iter().map(|preset| preset.name).collect()
    }

    /// A shipped bootstrapping, with its own `parameters`.
    ///
    /// Args:
    ///     name: one of `presets()`.
    ///     key_budget: another budget than the preset's.
    ///     slots: another number of slots: fewer slots need smaller transforms.
    ///     subrings: of the parameters, as in `Parameters.with_subrings`.
    ///     input_log_n: log2 of the degree of the inputs' ring, one of these; that of the preset by default.
    ///     output_level: level of the result; the highest by default. The modulus is raised as far as this requires.
    ///     values: those of the preset by default.
    ///
    /// Raises:
    ///     ParameterError: there is no such preset; the budget is below its `minimum`; slots is not a power of two up
    ///         to half the degree of the inputs' ring; the values are unknown, or cannot be "pair" with these slots.
    ///     SecurityError, LevelError: as for the constructor and `Parameters.with_subrings`.
    #[staticmethod]
    #[pyo3(signature = (name, key_budget=None, *, slots=None, subrings=Vec::new(), input_log_n=None, output_level=None, values=None))]
    fn preset(
        py: Python<'_>,
        name: &str,
        key_budget: Option<CountOrName>,
        slots: Option<usize>,
        subrings: Vec<(u32, usize, Option<Vec<usize>>)>,
        input_log_n: Option<u32>,
        output_level: Option<usize>,
        values: Option<&str>,
    ) -> Result<Self, Failure> {
        let budget = key_budget.map(parse_budget).transpose()?;
        let values = values.map(parse_values).transpose()?;
        compute(py, || -> Result<_, Failure> {
            let mut preset = bootstrap_preset(name)?;
            let CkksLiteral { rlwe, log_scale } = preset.literal()?;
            let literal = CkksLiteral { rlwe: rlwe.with_subrings(&subrings), log_scale };
            let parameters = PyParameters(CkksParameters::new(literal)?);
            preset.bootstrapper.budget = budget.unwrap_or(preset.bootstrapper.budget);
            preset.bootstrapper.values = values.unwrap_or(preset.bootstrapper.values);
            preset.bootstrapper.input_log_n = input_log_n;
            preset.bootstrapper.output_level = output_level.or(preset.bootstrapper.output_level);
            if slots.is_some() || input_log_n.is_some() {
                let own = 1usize << preset.bootstrapper.log_slots;
                let largest = 1usize << input_ring(&parameters.0, input_log_n)?.max_log_slots();
                let slots = slots.unwrap_or(own.min(largest));
                preset.bootstrapper.log_slots = input_slots(&parameters.0, Some(slots), input_log_n)?;
            }
            Self::make(parameters, &preset.bootstrapper)
        })
    }

    /// "complex", "real" or "pair".
    #[getter]
    fn values(&self) -> &'static str {
        match self.values {
            Values::Complex => "complex",
            Values::Real => "real",
            Values::Pair => "pair",
        }
    }

    /// The plan of the bootstraps of one ciphertext by a plan for pairs, whose keys are among those of the pair; of
    /// other plans, the plan itself.
    #[getter]
    fn alone(&self) -> Self {
        let values = if self.values == Values::Pair { Values::Real } else { self.values };
        Self { plan: Arc::new(self.plan.alone()), parameters: self.parameters.clone(), values, ..*self }
    }

    /// "slots_to_coeffs_first" or "mod_raise_first".
    #[getter]
    fn order(&self) -> &'static str {
        match self.plan.order {
            Order::SlotsToCoeffsFirst => "slots_to_coeffs_first",
            Order::ModRaiseFirst => "mod_raise_first",
        }
    }

    /// For each stage, in their order, the levels of its input and of its output.
    #[getter]
    fn levels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (stage, from, to) in self.plan.stage_levels() {
            out.set_item(stage.name(), (from, to))?;
        }
        Ok(out)
    }

    /// For each stage, in order, its keys. A key may serve several stages.
    #[getter]
    fn stage_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for stage in self.plan.stage_keys().chunk_by(|(a, _), (b, _)| a == b) {
            let specs: Vec<_> = stage.iter().map(|(_, spec)| self.key(spec.clone())).collect();
            out.set_item(stage[0].0.name(), specs)?;
        }
        Ok(out)
    }

    /// For each factor of `slots_to_coeffs` and `coeffs_to_slots`, in the order of application, the ways to evaluate
    /// it: pairs of the bytes of its keys, ascending, and its predicted work, in multiplications per coefficient of a
    /// polynomial modulo one prime. A key budget chooses from these.
    #[getter]
    fn factor_options<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let out = PyDict::new(py);
        let options = self.plan.factor_options(&self.parameters.0)?;
        for factors in options.chunk_by(|(a, _), (b, _)| a == b) {
            let ways =
                |ways: &[FactorPlan]| ways.iter().map(|way| (way.key_bytes, way.work)).collect::<Vec<_>>();
            let stage: Vec<_> = factors.iter().map(|(_, factor)| ways(factor)).collect();
            out.set_item(factors[0].0.name(), stage)?;
        }
        Ok(out)
    }

    /// For each of these factors its stage, its level, and the ways to evaluate it from which a key planner chooses.
    /// Each way has the number of baby steps, the key switches of one evaluation as in `key_groups` (form, Galois
    /// elements, how often), and the other operations as in `operations` (number of special primes of its own keys or
    /// None, counts).
    #[getter]
    fn factor_ways<'py>(&self, py: Python<'py>) -> Result<Vec<PyFactor<'py>>, Failure> {
        let log_n = self.parameters.0.rlwe().log_n();
        let factors = compute(py, || self.plan.factor_ways(&self.parameters.0))?;
        let mut out = Vec::with_capacity(factors.len());
        for (stage, factor) in factors {
            let level = factor.first().map_or(0, |way| way.level);
            let mut ways = Vec::with_capacity(factor.len());
            for way in factor {
                let groups =
                    way.key_groups(log_n).into_iter().map(|(form, elements, n)| (form.name(), elements, n));
                let (special, counts) = way.operation();
                ways.push((way.baby_steps(), groups.collect(), (special, named(py, &counts)?)));
            }
            out.push((stage.name(), level, ways));
        }
        Ok(out)
    }

    /// The same plan with its factors evaluated as a key planner chose.
    ///
    /// Args:
    ///     factors: layers and baby steps of each, as in `factors`. The layers of each stage must sum to the same
    ///         number.
    ///
    /// Raises:
    ///     ParameterError: another number of factors, a wrong sum of layers, or a number of baby steps that
    ///         `factor_ways` lacks.
    fn with_factors(&self, py: Python<'_>, factors: Vec<(u32, usize)>) -> Result<Self, Failure> {
        let steps: Vec<_> =
            factors.into_iter().map(|(layers, baby_steps)| FactorSteps { layers, baby_steps }).collect();
        let plan = compute(py, || self.plan.with_factors(&self.parameters.0, &steps))?;
        Ok(Self { plan: Arc::new(plan), parameters: self.parameters.clone(), ..*self })
    }

    /// The same plan with the best factors for another key budget.
    ///
    /// Raises:
    ///     ParameterError: the budget is below its `minimum`.
    fn with_key_budget(&self, py: Python<'_>, key_budget: CountOrName) -> Result<Self, Failure> {
        let budget = parse_budget(key_budget)?;
        let plan = compute(py, || self.plan.with_key_budget(&self.parameters.0, budget))?;
        Ok(Self { plan: Arc::new(plan), parameters: self.parameters.clone(), ..*self })
    }

    /// Bytes of the keys of each stage, in their order; a key of several stages counts for the first.
    #[getter]
    fn key_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let out = PyDict::new(py);
        let mut seen = HashSet::new();
        for stage in self.plan.stage_keys().chunk_by(|(a, _), (b, _)| a == b) {
            let mut bytes = 0;
            for (_, spec) in stage {
                if seen.insert(spec.clone()) {
                    bytes += spec.bytes(self.parameters.0.rlwe())?;
                }
            }
            out.set_item(stage[0].0.name(), bytes)?;
        }
        Ok(out)
    }

    /// Bytes of the matrices that a `Bootstrapper` with this storage keeps: "encoded", "coefficients" or "streamed".
    ///
    /// Raises:
    ///     ParameterError: the storage is unknown.
    #[pyo3(signature = (storage="encoded"))]
    fn diagonal_bytes(&self, storage: &str) -> Result<usize, Failure> {
        Ok(self.plan.diagonal_bytes(parse_kept(storage)?))
    }

    /// The parameters for thin clients of `Bootstrapper.bootstrap_coefficients`: numbers of at most 1, at the scale and
    /// in the places of its input coefficients.
    ///
    /// Args:
    ///     fraction_bits: bits of a number after the point.
    ///
    /// Raises:
    ///     ParameterError: more fraction bits than the scale has.
    fn client_parameters(&self, fraction_bits: u32) -> Result<PyClientParameters, Failure> {
        Ok(PyClientParameters(server::client_parameters(&self.parameters.0, &self.plan, fraction_bits)?))
    }

    /// The key switches of one bootstrapping, of both ciphertexts if the plan is for pairs, that have more than one
    /// implementation, in the order of the stages: stage,
    /// form ("whole", "baby" or "giant", as in `keywright.plan.make_group`), level of the ciphertext, its required
    /// Galois elements (none for a relinearization), and how often.
    #[getter]
    fn key_groups(&self) -> Vec<(&'static str, &'static str, usize, Vec<u64>, usize)> {
        let groups = self.plan.key_groups(self.parameters.0.rlwe().log_n()).into_iter();
        let fields = |g: KeyGroup| (g.stage.name(), g.form.name(), g.level, g.elements, g.count);
        groups.map(fields).collect()
    }

    /// The operations of one bootstrapping other than these key switches, in the order of the stages: stage, level,
    /// number of special primes of keys with a single use or None, counts as in `keywright.plan.Operation`, and how
    /// often.
    #[getter]
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Vec<PyOperation<'py>>> {
        let operations = self.plan.operations().into_iter();
        let fields =
            operations.map(|o| Ok((o.stage.name(), o.level, o.special, named(py, &o.arithmetic)?, o.count)));
        fields.collect()
    }

    /// The same plan with the diagonals at each of these levels encoded for those special primes, for keys that follow
    /// a plan. This is what `PlanExecution.bootstrapper_plans` does.
    ///
    /// Args:
    ///     special: by level, indices of primes among q_0 .. q_L, p_0, ...; a `Bootstrapper` checks them.
    fn with_special_primes(&self, special: BTreeMap<usize, Vec<usize>>) -> Self {
        let plan = Arc::new((*self.plan).clone().with_special_primes(&special));
        Self { plan, parameters: self.parameters.clone(), ..*self }
    }

    /// The expected precision of the error that bootstrapping adds to the input's values, for parts uniform in [-1, 1];
    /// `docs/explanation/bootstrapping.md` derives it.
    ///
    /// Args:
    ///     vectors: number of vectors under one secret over which the worst part is taken.
    ///
    /// Returns:
    ///     tuple[float, float] | None: -log2 of the mean error of a part, and of the largest one; None if
    ///         slots_to_coeffs comes last.
    #[pyo3(signature = (vectors=1))]
    fn predicted_bits(&self, py: Python<'_>, vectors: usize) -> Result<Option<(f64, f64)>, Failure> {
        compute(py, || {
            let prediction = self.plan.prediction(&self.parameters.0)?;
            let bits = prediction.map(|prediction| (prediction.mean_bits(), prediction.worst_bits(vectors)));
            Ok::<_, CircuitError>(bits)
        })
    }

    /// The errors that a bootstrap adds to parts of known values, in units of the message; None for the order
    /// "mod_raise_first". Raising the modulus adds an unknown integer to each part. A part with integer i and message m
    /// has an error of mean `bias[i][m]` and variance `rest + (steps[i][m] + other) / 2 * rounding`, where `rest` and
    /// `rounding` are pairs as in `ErrorModel`, of a slot.
    ///
    /// Args:
    ///     messages: parts of values, in [-1, 1].
    ///
    /// Returns: a dictionary of `probabilities` of the integers, `steps`, `other`, `bias`, `rest` and `rounding`.
    fn errors_of<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'_, PyAny>,
    ) -> Result<Option<Bound<'py, PyDict>>, Failure> {
        let messages = Numbers::real_vector(messages)?;
        let Some(prediction) = compute(py, || self.plan.errors_of(&self.parameters.0, &messages))? else {
            return Ok(None);
        };
        let out = PyDict::new(py);
        out.set_item("probabilities", prediction.probabilities)?;
        out.set_item("steps", prediction.steps)?;
        out.set_item("other", prediction.other)?;
        out.set_item("bias", prediction.bias)?;
        out.set_item("rest", (prediction.rest.plain, prediction.rest.secret))?;
        out.set_item("rounding", (prediction.rounding.plain, prediction.rounding.secret))?;
        Ok(Some(out))
    }

    fn __repr__(&self) -> String {
        format!(
            "BootstrapperPlan({} {} slots, level {} -> {}, {})",
            self.slots(),
            self.values(),
            self.input_level(),
            self.output_level(),
            crate::classes::counted(self.plan.required_keys().len(), "key")
        )
    }
}

getters! { PyBootstrapperPlan, self;
    /// log2 of the degree of the inputs' ring, which is also that of `slots_to_coeffs` and its keys.
    input_log_n: u32 = self.plan.input_log_n.unwrap_or(self.parameters.0.rlwe().log_n());
    /// Parameters of the ciphertexts.
    parameters: PyParameters = self.parameters.clone();
    /// Number of slots.
    slots: usize = 1 << self.log_slots;
    /// Passes in all.
    iterations: usize = self.plan.iterations.map_or(1, |iterations| iterations.count);
    /// Level at which ciphertexts are bootstrapped; higher ones are lowered to it.
    input_level: usize = self.plan.input_level();
    /// Level of results.
    output_level: usize = self.plan.output_level();
    /// Levels for computation between two bootstraps.
    levels_left: usize = self.plan.levels_left();
    /// Scale of the coefficients that `mod_raise` takes.
    coefficients_scale: f64 = self.plan.coefficients_scale;
    /// How each factor of `slots_to_coeffs` and `coeffs_to_slots` is evaluated, in the order of application: the layers
    /// of the Fourier transform that it merges, and its number of baby steps, including 0.
    factors: Vec<(u32, usize)> = self.plan.factor_steps().into_iter().map(|step| (step.layers, step.baby_steps)).collect();
    /// Every key that bootstrapping uses, each once, at the level where it is used: the `specs` of
    /// `KeyGenerator.evaluation_keys`, or of `save_evaluation_keys` if they must not be in memory all at once.
    required_keys: Vec<PyKeySpec> = self.plan.required_keys().into_iter().map(|spec| self.key(spec)).collect();
    /// The keys to and from an ephemeral secret, which have a single use.
    fixed_keys: Vec<PyKeySpec> = self.plan.fixed_keys().into_iter().map(|spec| self.key(spec)).collect();
}
