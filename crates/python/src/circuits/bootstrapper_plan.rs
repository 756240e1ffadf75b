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

use crate::array::{Numbers, log_slots};
use crate::circuits::arithmetic::named;
use crate::circuits::plan_arguments::{
    Alpha, PyKeyBudget, parse_budget, parse_design, parse_iterations, parse_kept, parse_order, parse_values,
};
use crate::errors::Failure;
use crate::keys::spec::PyKeySpec;
use crate::parameters::ckks::PyParameters;
use crate::parameters::keys::KeyParameters;
use crate::stored::not_pickled;
use crate::thin_client::parameters::PyClientParameters;
use crate::threads::compute;

/// What a bootstrapping computes beside key switches: stage, level, number of special primes, counts, and how often.
type PyOperation<'py> = (&'static str, usize, Option<usize>, Bound<'py, PyDict>, usize);

/// A way to evaluate a factor: baby steps, key switches (form, Galois elements, how often), number of special primes and counts of the rest.
type PyWay<'py> = (usize, Vec<(&'static str, Vec<u64>, usize)>, (Option<usize>, Bound<'py, PyDict>));
/// A factor: its stage, its level and its ways.
type PyFactor<'py> = (&'static str, usize, Vec<PyWay<'py>>);

/// What a bootstrapping does, stage by stage: levels, scales and keys, before any key is made.
///
/// Levels, from the top, of the order "slots_to_coeffs_first": `mod_raise` lifts level 0 to the highest level used, `coeffs_to_slots` takes one for each of its factors,
/// `eval_mod` 7 to 12, complex values of fewer than N/2 slots one more. What is left is the output level, at which the result
/// comes; `slots_to_coeffs` goes from the input level to 0. In the order "mod_raise_first" the input level is 0 and `slots_to_coeffs` ends at
/// the output level.
///
/// Args:
///     parameters: of the ciphertexts. Results have their scale, and so have inputs.
///     slots: a power of two up to N/2, the default.
///     values: "complex" or "real": what the slots hold, each part of absolute value at most 1. The imaginary parts of
///         "real" values are lost.
///     order: "slots_to_coeffs_first", or "mod_raise_first" for the order of most other libraries, in which errors of coefficients meet in slots.
///     slots_to_coeffs: levels of that stage, the matrices into which the Fourier transform is factored.
///     coeffs_to_slots: levels of that stage.
///     key_budget: how many bytes the keys may have in memory: a number, "fastest" for any, "fewest" for as few as can be. Fewer take
///         longer; within the budget the fastest way to evaluate every factor is chosen.
///     stages_apart: whether each stage is to be usable alone. By default `mod_raise` and the first factor of `coeffs_to_slots` are one
///         where they can be (N/2 slots, an ephemeral secret): less time, fewer bytes.
///     alpha: the digits of keys, with the stages apart; None, the default, for what makes the least work within the budget. A number is the
///         same in all of them: digits of at most so many primes over as many special primes of the parameters; "maximum" is the number of
///         their special primes. "dynamic" chooses for each key what makes the fewest transforms at its level from the special primes of the
///         parameters, "dynamic_dropped" also from primes that ciphertexts at its level no longer have.
///     key_levels: of keys with such an alpha: "needed" for the level where they are used, "top" for as high as their special primes
///         and the security bound allow.
///     ephemeral_weight: Hamming weight of the ephemeral secret under which the modulus is raised; None for the main
///         secret, of which the range of `eval_mod` then depends.
///     log2_failure: log2 of the probability that a bootstrap fails, -40 by default.
///     log_ratio: log2 of q_0 over the scale of the coefficients. One more is a bit of precision less and an easier arcsine.
///     cosine_degree: even degree of the cosine that `eval_mod` evaluates.
///     double_angles: double angles after it, a level each.
///     arcsine_degree: odd degree of the arcsine at its end; 1 for none.
///     iterations: passes in all. Each after the first bootstraps what the one before left, scaled up, and adds it: it takes as long, and no levels.
///     log_precision: bits after the point that the bound on the error of one pass has at least, by which the next one corrects it. Needed for
///         2 iterations or more, and for these alone.
///     output_level: level of results, the highest by default. A lower one is cheaper.
///     input_log_n: log2 of the degree of the ring that inputs are of: a subring of the parameters, in which `slots_to_coeffs` is done with
///         smaller keys. Then `slots` is up to half of that degree. Results are always of the parameters' own ring.
///
/// Raises:
///     LevelError: the parameters have too few levels, or the output level is below the input level.
///     SecurityError: a key would be above the bound for its secret.
///     ParameterError: a number is not legal, as an alpha above the number of special primes; no approximation has these degrees, or so many
///         bits as `log_precision`; the key budget is below its `minimum`, the fewest bytes that there can be.
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

/// Names of the shipped bootstrappings, with parameters that fit them.
#[pyfunction]
pub(crate) fn bootstrap_presets() -> Vec<&'static str> {
    BOOTSTRAP_PRESETS.iter().map(|preset| preset.name).collect()
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

#[pymethods]
impl PyBootstrapperPlan {
    #[new]
    #[pyo3(signature = (
        parameters, *, slots_to_coeffs, coeffs_to_slots, log_ratio, cosine_degree, double_angles, arcsine_degree, slots=None,
        values="complex", order="slots_to_coeffs_first", key_budget=PyKeyBudget::Name("fastest".into()), stages_apart=false,
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
        key_budget: PyKeyBudget,
        stages_apart: bool,
        alpha: Option<Alpha>,
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
            order: parse_order(order)?,
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

    /// A shipped bootstrapping; its `parameters` are made with it.
    ///
    /// Args:
    ///     name: one of `keywright.bootstrap_presets()`.
    ///     key_budget: another one than the preset's.
    ///     slots: another number of slots: fewer of them take smaller transforms.
    ///     subrings: those that the parameters are to have, as of `Parameters.with_subrings`.
    ///     input_log_n: log2 of the degree of the ring that inputs are of, one of these; that of the preset by default.
    ///     output_level: level of the result; the highest by default. The modulus is raised as far as that takes.
    ///
    /// Raises:
    ///     ParameterError: there is no such preset; the budget is below its `minimum`; slots is not a power of two up to half the degree of
    ///         the ring of inputs.
    ///     SecurityError, LevelError: as of the constructor and of `Parameters.with_subrings`.
    #[staticmethod]
    #[pyo3(signature = (name, key_budget=None, *, slots=None, subrings=Vec::new(), input_log_n=None, output_level=None))]
    fn preset(
        py: Python<'_>,
        name: &str,
        key_budget: Option<PyKeyBudget>,
        slots: Option<usize>,
        subrings: Vec<(u32, usize, Option<Vec<usize>>)>,
        input_log_n: Option<u32>,
        output_level: Option<usize>,
    ) -> Result<Self, Failure> {
        let budget = key_budget.map(parse_budget).transpose()?;
        compute(py, || -> Result<_, Failure> {
            let mut preset = bootstrap_preset(name)?;
            let CkksLiteral { rlwe, log_scale } = preset.literal()?;
            let literal = CkksLiteral { rlwe: rlwe.with_subrings(&subrings), log_scale };
            let parameters = PyParameters(CkksParameters::new(literal)?);
            preset.bootstrapper.budget = budget.unwrap_or(preset.bootstrapper.budget);
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

    /// log2 of the degree of the ring that inputs are of; that of `slots_to_coeffs` and its keys.
    #[getter]
    fn input_log_n(&self) -> u32 {
        self.plan.input_log_n.unwrap_or(self.parameters.0.rlwe().log_n())
    }

    /// Parameters of the ciphertexts.
    #[getter]
    fn parameters(&self) -> PyParameters {
        self.parameters.clone()
    }

    /// Number of slots.
    #[getter]
    fn slots(&self) -> usize {
        1 << self.log_slots
    }

    /// "complex" or "real".
    #[getter]
    fn values(&self) -> &'static str {
        match self.values {
            Values::Complex => "complex",
            Values::Real => "real",
        }
    }

    /// "slots_to_coeffs_first" or "mod_raise_first".
    #[getter]
    fn order(&self) -> &'static str {
        match self.plan.order {
            Order::SlotsToCoeffsFirst => "slots_to_coeffs_first",
            Order::ModRaiseFirst => "mod_raise_first",
        }
    }

    /// Passes in all.
    #[getter]
    fn iterations(&self) -> usize {
        self.plan.iterations.map_or(1, |iterations| iterations.count)
    }

    /// Level at which ciphertexts are bootstrapped; those above are taken at it.
    #[getter]
    fn input_level(&self) -> usize {
        self.plan.input_level()
    }

    /// Level of results.
    #[getter]
    fn output_level(&self) -> usize {
        self.plan.output_level()
    }

    /// Levels to compute on between two bootstraps.
    #[getter]
    fn levels_left(&self) -> usize {
        self.plan.levels_left()
    }

    /// Scale of the coefficients that `mod_raise` takes.
    #[getter]
    fn coefficients_scale(&self) -> f64 {
        self.plan.coefficients_scale
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

    /// For each stage, in their order, the keys it uses. A key may serve several stages.
    #[getter]
    fn stage_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for stage in self.plan.stage_keys().chunk_by(|(a, _), (b, _)| a == b) {
            let specs: Vec<_> = stage.iter().map(|(_, spec)| self.key(spec.clone())).collect();
            out.set_item(stage[0].0.name(), specs)?;
        }
        Ok(out)
    }

    /// For each factor of `slots_to_coeffs` and `coeffs_to_slots`, in the order in which they are applied, the ways to evaluate it: pairs of
    /// the bytes of its keys, ascending, and its predicted work, in multiplications for each coefficient of a polynomial modulo one
    /// prime. What a key budget chooses from.
    #[getter]
    fn factor_options<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let out = PyDict::new(py);
        let options = self.plan.factor_options(&self.parameters.0)?;
        for factors in options.chunk_by(|(a, _), (b, _)| a == b) {
            let ways =
                |ways: &[FactorPlan]| ways.iter().map(|way| (way.key_bytes, way.work)).collect::<Vec<_>>();
            let stage: Vec<_> = factors.iter().map(|(_, found)| ways(found)).collect();
            out.set_item(factors[0].0.name(), stage)?;
        }
        Ok(out)
    }

    /// How each factor of `slots_to_coeffs` and `coeffs_to_slots` is evaluated, in the order in which they are applied: the layers of the Fourier
    /// transform that it merges, and its number of baby steps, 0 among them.
    #[getter]
    fn factors(&self) -> Vec<(u32, usize)> {
        self.plan.factor_steps().into_iter().map(|step| (step.layers, step.baby_steps)).collect()
    }

    /// For each of these factors its stage, its level, and the ways to evaluate it that a key planner chooses from: the number of baby steps,
    /// the key switches of one evaluation as of `key_groups` (form, Galois elements, how often), and what it computes beside, as of
    /// `operations` (number of special primes of its own keys or None, counts).
    #[getter]
    fn factor_ways<'py>(&self, py: Python<'py>) -> Result<Vec<PyFactor<'py>>, Failure> {
        let log_n = self.parameters.0.rlwe().log_n();
        let factors = compute(py, || self.plan.factor_ways(&self.parameters.0))?;
        let mut out = Vec::with_capacity(factors.len());
        for (stage, found) in factors {
            let level = found.first().map_or(0, |way| way.level);
            let mut ways = Vec::with_capacity(found.len());
            for way in found {
                let groups =
                    way.key_groups(log_n).into_iter().map(|(form, elements, n)| (form.name(), elements, n));
                let (special, counts) = way.operation();
                ways.push((way.baby_steps(), groups.collect(), (special, named(py, &counts)?)));
            }
            out.push((stage.name(), level, ways));
        }
        Ok(out)
    }

    /// The same plan with its factors evaluated so: what a key planner chose.
    ///
    /// Args:
    ///     factors: layers and baby steps of each, as of `factors`. Layers are as many in each stage as there are.
    ///
    /// Raises:
    ///     ParameterError: another number of factors, layers that are not all, a number of baby steps that `factor_ways` does not have.
    fn with_factors(&self, py: Python<'_>, factors: Vec<(u32, usize)>) -> Result<Self, Failure> {
        let steps: Vec<_> =
            factors.into_iter().map(|(layers, baby_steps)| FactorSteps { layers, baby_steps }).collect();
        let plan = compute(py, || self.plan.with_factors(&self.parameters.0, &steps))?;
        Ok(Self { plan: Arc::new(plan), parameters: self.parameters.clone(), ..*self })
    }

    /// The same plan with the factors that another key budget makes the best ones.
    ///
    /// Raises:
    ///     ParameterError: the budget is below its `minimum`.
    fn with_key_budget(&self, py: Python<'_>, key_budget: PyKeyBudget) -> Result<Self, Failure> {
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
    ///     ParameterError: the storage is not known.
    #[pyo3(signature = (storage="encoded"))]
    fn diagonal_bytes(&self, storage: &str) -> Result<usize, Failure> {
        Ok(self.plan.diagonal_bytes(parse_kept(storage)?))
    }

    /// Every key that bootstrapping uses, each once, at the level at which it is used: the `specs` of
    /// `KeyGenerator.evaluation_keys` or, if they are not to be in memory all at once, `save_evaluation_keys`.
    #[getter]
    fn required_keys(&self) -> Vec<PyKeySpec> {
        self.plan.required_keys().into_iter().map(|spec| self.key(spec)).collect()
    }

    /// What thin clients of `Bootstrapper.bootstrap_coefficients` have to know: numbers of at most 1, at the scale and in the places from which it takes
    /// coefficients.
    ///
    /// Args:
    ///     fraction_bits: bits of a number after the point.
    ///
    /// Raises:
    ///     ParameterError: more fraction bits than the scale has.
    fn client_parameters(&self, fraction_bits: u32) -> Result<PyClientParameters, Failure> {
        Ok(PyClientParameters(server::client_parameters(&self.parameters.0, &self.plan, fraction_bits)?))
    }

    /// The key switches of one bootstrapping that can be made in more than one way, in the order of the stages: stage, form ("whole", "baby"
    /// or "giant", as of `keywright.plan.Group`), level of the ciphertext, the Galois elements that are needed of it, none for a
    /// relinearization, and how often.
    #[getter]
    fn key_groups(&self) -> Vec<(&'static str, &'static str, usize, Vec<u64>, usize)> {
        let groups = self.plan.key_groups(self.parameters.0.rlwe().log_n()).into_iter();
        let fields = |g: KeyGroup| (g.stage.name(), g.form.name(), g.level, g.elements, g.count);
        groups.map(fields).collect()
    }

    /// What one bootstrapping computes beside these key switches, in the order of the stages: stage, level, number of special primes of keys
    /// that have one way to be used or None, counts as of `keywright.plan.Operation`, and how often.
    #[getter]
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Vec<PyOperation<'py>>> {
        let operations = self.plan.operations().into_iter();
        let fields =
            operations.map(|o| Ok((o.stage.name(), o.level, o.special, named(py, &o.arithmetic)?, o.count)));
        fields.collect()
    }

    /// The same plan with the diagonals at each of these levels encoded for those special primes, for keys that follow a plan: what
    /// `PlanExecution.bootstrapper_plans` does.
    ///
    /// Args:
    ///     special: by level, indices of primes, counted through q_0 .. q_L, p_0, ...; a `Bootstrapper` checks them.
    fn with_special_primes(&self, special: BTreeMap<usize, Vec<usize>>) -> Self {
        let plan = Arc::new((*self.plan).clone().with_special_primes(&special));
        Self { plan, parameters: self.parameters.clone(), ..*self }
    }

    /// The keys to and from an ephemeral secret, which have one way to be used.
    #[getter]
    fn fixed_keys(&self) -> Vec<PyKeySpec> {
        self.plan.fixed_keys().into_iter().map(|spec| self.key(spec)).collect()
    }

    /// The precision to expect of what bootstrapping adds to the input's values, of parts uniform in [-1, 1]: `docs/explanation/bootstrapping.md` derives it.
    ///
    /// Args:
    ///     vectors: how many vectors under one secret the worst part is looked for in.
    ///
    /// Returns:
    ///     tuple[float, float] | None: -log2 of the mean error of a part, and of the largest one; None if slots_to_coeffs comes last.
    #[pyo3(signature = (vectors=1))]
    fn predicted_bits(&self, py: Python<'_>, vectors: usize) -> Result<Option<(f64, f64)>, Failure> {
        compute(py, || {
            let prediction = self.plan.prediction(&self.parameters.0)?;
            let bits = prediction.map(|found| (found.mean_bits(), found.worst_bits(vectors)));
            Ok::<_, CircuitError>(bits)
        })
    }

    /// The errors that a bootstrap adds to parts of values that are known, in units of the message; None for the order "mod_raise_first". Raising the
    /// modulus adds an integer to each of them, which is not known: a part with integer i and message m has an error of mean `bias[i][m]` and variance
    /// `rest + (steps[i][m] + other) / 2 * rounding`, where `rest` and `rounding` are pairs as of `ErrorModel`, of a slot.
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
        let Some(found) = compute(py, || self.plan.errors_of(&self.parameters.0, &messages))? else {
            return Ok(None);
        };
        let out = PyDict::new(py);
        out.set_item("probabilities", found.probabilities)?;
        out.set_item("steps", found.steps)?;
        out.set_item("other", found.other)?;
        out.set_item("bias", found.bias)?;
        out.set_item("rest", (found.rest.plain, found.rest.secret))?;
        out.set_item("rounding", (found.rounding.plain, found.rounding.secret))?;
        Ok(Some(out))
    }

    fn __repr__(&self) -> String {
        format!(
            "BootstrapperPlan({} {} slots, level {} -> {}, {} keys)",
            self.slots(),
            self.values(),
            self.input_level(),
            self.output_level(),
            self.plan.required_keys().len()
        )
    }
}
