"""`approximate`: turns an ONNX model into linear maps, products and polynomials, for any kind of
ciphertext."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Stated
from keywright.compiler.activations.answers import labels_behind
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.activations.fit import OPERATORS, Fit, for_trees
from keywright.compiler.activations.image import output_image
from keywright.compiler.activations.polynomial_choice import choose, outputs_of
from keywright.compiler.activations.ranges import ExactRun, run_exact
from keywright.compiler.front_ends.feature_names import names_in
from keywright.compiler.front_ends.model_file import gives_values, load_model, uncompared
from keywright.compiler.front_ends.onnx_importer import ImportedModel, import_model
from keywright.compiler.front_ends.operators.attention.masks import require_hidden
from keywright.compiler.front_ends.operators.attention.softmax import halvings_of
from keywright.compiler.front_ends.operators.gating.gates import HIDDEN
from keywright.compiler.front_ends.parts.batch_axis import require_independent
from keywright.compiler.front_ends.parts.client_end import split_last_steps
from keywright.compiler.front_ends.parts.client_start import SplitModel, split_first_steps
from keywright.compiler.front_ends.parts.whole_scores import with_whole_scores
from keywright.compiler.front_ends.rewriting.classical import in_standard_operators
from keywright.compiler.front_ends.rewriting.decomposed_operators import with_softmax
from keywright.compiler.front_ends.rewriting.quantised import with_real_numbers
from keywright.compiler.front_ends.trees import onnx_ml
from keywright.compiler.graph.commuting import Form, forms
from keywright.compiler.graph.graph import Activation, Graph, Input, Linear
from keywright.compiler.graph.simplify import simplify
from keywright.compiler.layout.layer_work import LayerWork
from keywright.compiler.placement.bounding import largest_and_outputs, largest_values
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.trees.ensemble import EncodedEnsemble, Ensemble
from keywright.compiler.trees.quantising import LEAST_LOG_SCALE, QuantisedEnsemble, quantise
from keywright.errors.choices import require_integer
from keywright.errors.engine import EncodeError
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.operators import mask_of_clients
from keywright.errors.refusals.precision import calibration_missing, no_labels, unknown_activation
from keywright.errors.refusals.sizes import too_wide
from keywright.plan.ring.preset_plans import shipped_plan
from keywright.program.arrays import Shape, Vector, as_numbers, require_samples
from keywright.program.client.first_steps import FirstSteps
from keywright.program.client.joint_range import JointRange
from keywright.program.client.last_steps import ClientPart
from keywright.program.client.samples import in_order
from keywright.program.fit_report import ExportDifferences, FittedActivation
from keywright.program.interface import ClientSteps, OutputCodec
from keywright.program.operands.bootstraps import DEFAULT_BOOTSTRAP_PRESET, Bootstrap

from .limits import MAX_PLAINTEXT_BYTES

NO_NUMBER = -1e30
"""Values below this, down to minus infinity, are masks and no features."""

ModelFile = onnx.ModelProto | str | Path | bytes
Source = ModelFile | Ensemble | EncodedEnsemble
"""A model, its bytes, or its path; or an ensemble of trees."""


@dataclass(frozen=True, eq=False)
class ApproximatedModel(Stated):
    """A model with polynomials for activations; `keywright.compiler.compile_program` takes it for any target.

    Attributes:
        graph: simplified.
        fitted: the approximation of each activation.
        run: the model's run on calibration data.
        fit: the requested fit.
        output_shape: of a sample's result.
        output: what clients do with the result: the image, to which they clip, and their part of the model.
        trees: the ensemble that the graph computes, if it is one; the run then is on its bits.
        steps: what the client computes or checks before; the model and the run are about the results, the
            features.
    """

    graph: Graph
    fitted: tuple[FittedActivation, ...]
    run: ExactRun
    fit: Fit
    output_shape: Shape
    output: OutputCodec = field(default_factory=OutputCodec)
    trees: QuantisedEnsemble | None = None
    steps: ClientSteps = field(default_factory=ClientSteps)

    @cached_property
    def forms(self) -> tuple["ApproximatedModel", ...]:
        """The model and the same with other orders of products and sums, of which the compiler takes the
        fastest; see `keywright.compiler.graph.commuting`. One of these has no other forms."""
        return (self,) if self.trees is not None else tuple(map(self._form, forms(self.graph)))

    def _form(self, form: Form) -> "ApproximatedModel":
        """Return the model with one order alone. What is known of its values is not measured again."""
        graph, known = form.graph, {number: self.largest[old] for number, old in form.origin.items()}
        if others := graph.nodes.keys() - known.keys():
            seen = largest_values(graph.leading_to(others), self.run.samples)
            known |= {number: seen[number] for number in others}
        result = replace(self, graph=graph)
        vars(result).update(forms=(result,), _measured=(known, self.approximate_outputs))
        return result

    def on_same_data(self, **changes: Any) -> "ApproximatedModel":
        """Return the model with other fields that change no value. What was measured is kept."""
        result = replace(self, **changes)
        vars(result).update((name, value) for name, value in vars(self).items() if name == "_measured")
        return result

    @cached_property
    def scaled(self) -> dict[bool, Any]:
        """The model between inputs and outputs as clients scale them who are thin, or not."""
        return {}

    @property
    def depth(self) -> int:
        """Levels that the shallowest form consumes."""
        return min(form.graph.depth() for form in self.forms)

    @property
    def least_log_scale(self) -> int:
        """Bits of the scale with which results are precise enough, among shipped parameters."""
        return 0 if self.trees is None else LEAST_LOG_SCALE

    @property
    def samples(self) -> Vector:
        """The calibration data behind the first steps, flattened: (count, features)."""
        return self.run.samples if self.trees is None else self.trees.samples

    @cached_property
    def largest(self) -> Mapping[int, float]:
        """The largest absolute value of every node on the calibration data. It is the same for every target,
        and all data run through the graph for it."""
        if self.trees is not None and not len(self.run.samples):
            return self.trees.largest
        return self._measured[0]

    @cached_property
    def outputs(self) -> Vector:
        """The model's outputs on the calibration data, (count, outputs)."""
        return self.run.outputs if self.fitted else self.approximate_outputs

    @property
    def approximate_outputs(self) -> Vector:
        """The graph's outputs, by polynomials, on the calibration data, (count, outputs)."""
        return self._measured[1]

    @cached_property
    def _measured(self) -> tuple[Mapping[int, float], Vector]:
        return largest_and_outputs(self.graph, self.graph.runs(self.run.samples))


@dataclass(frozen=True, eq=False)
class ReadModel(ImportedModel):
    """A parsed model, and the part that the client computes."""

    client_part: ClientPart | None


Refusals = Callable[[Graph], Sequence[RefusalError]]
"""Reasons against a graph without polynomials."""


def approximate(
    model: Source,
    fit: Fit | None = None,
    max_plaintext_bytes: int = MAX_PLAINTEXT_BYTES,
    refusals: Refusals | None = None,
) -> ApproximatedModel:
    """Replace a model's activations by polynomials, as the fit requires.

    Args:
        model: the model, its bytes, or its path.
        fit: calibration data, methods, or how closely to follow the model; `Fit()` by default.
        max_plaintext_bytes: bound on the memory of the diagonals. A model whose matrices alone exceed it is
            refused before it is run on calibration data.
        refusals: further reasons against a graph, counted before it is run on calibration data.

    Raises:
        ModelRefusedError: with all reasons; see `keywright.compiler.compile_program`.
        EncodeError: calibration data of the wrong shape or not finite.
        ParameterError: the bound is not an integer; bins of trees, and the model has none.
    """
    require_integer("max_plaintext_bytes", max_plaintext_bytes)
    prepared = prepare(model, Fit() if fit is None else fit)
    if isinstance(prepared.model, Ensemble):
        return prepared.approximated(_approximated_ensemble(prepared.model, prepared.fit))
    read = read_model(prepared.model, prepared.fit, max_plaintext_bytes)
    reasons = list(read.reasons)
    if refusals is not None and read.graph.output >= 0:
        reasons += refusals(read.graph)
    if reasons:
        raise ModelRefusedError(reasons)
    return prepared.approximated(put_polynomials(read, prepared.fit, values=prepared.values))


@dataclass(frozen=True, eq=False)
class PreparedModel:
    """A model behind the client's first steps.

    Attributes:
        model: in standard operators, or an ensemble of trees.
        fit: with the features of the calibration data.
        first_steps: if there are any.
        columns: names of the columns of a sample, if it has names that the first steps do not know.
        values: whether the model's outputs are known to be values, like those of a regression.
        export: how the real numbers of a quantised model differ from its integers, and which outputs of a
            module's export were not compared.
    """

    model: onnx.ModelProto | Ensemble
    fit: Fit
    first_steps: FirstSteps | None
    columns: tuple[str, ...] = ()
    values: bool = False
    export: ExportDifferences = field(default_factory=ExportDifferences)

    def approximated(self, model: ApproximatedModel) -> ApproximatedModel:
        """Return a model with the first steps."""
        steps = replace(model.steps, first=self.first_steps, columns=self.columns)
        return model.on_same_data(steps=steps, run=replace(model.run, export=self.export))


def _without_first_steps(model: onnx.ModelProto, samples: Any) -> SplitModel:
    """Return a model behind its first steps. Where the client's steps end in truth values, as of a mask, the
    program computes them itself, if it can."""
    try:
        return split_first_steps(model, samples)
    except RefusalError:
        if not _reads_bits(model, samples):
            raise
        return SplitModel(model, None)


def _reads_bits(model: onnx.ModelProto, samples: Any) -> bool:
    """Whether the program can compute a model by itself, with elements of the input that are 0 or 1."""
    bits = None if samples is None else _bits(samples)
    return bits is not None and bool(bits.any()) and not import_model(model, bits=bits).reasons


def prepare(model: Source, fit: Fit) -> PreparedModel:
    """Split off the first steps of a model, and compute them for the calibration data.

    Raises:
        ModelRefusedError: the model, or what surrounds an ensemble of trees, is not supported.
        EncodeError: the first steps do not take the calibration data.
        ParameterError: bins or thresholds of trees, and the model has none.
    """
    if isinstance(model, Ensemble):
        return PreparedModel(model, _in_order(fit, model.names), None, model.names)
    if isinstance(model, EncodedEnsemble):
        if fit.calibration is not None:
            fit = replace(fit, calibration=model.steps.features(fit.calibration)[0])
        return PreparedModel(model.trees, fit, model.steps)
    try:
        loaded = load_model(model)
        columns = names_in(loaded)
        fit = _in_order(fit, columns)
        values = gives_values(loaded)
        apart = uncompared(loaded)
        loaded, rounding = with_real_numbers(loaded, fit.calibration)
        whole = in_standard_operators(loaded)
        require_independent(whole)
        started = _without_first_steps(whole, fit.calibration)
        features = fit.calibration
        if started.steps is not None and features is not None:
            features, _ = started.steps.features(features)
            least = float(features.min(initial=0.0))
            alone = [each.kind for each in started.steps.inputs] == ["numbers"]
            if (alone and least < NO_NUMBER) or (least <= HIDDEN and _reads_bits(whole, fit.calibration)):
                # A mask, which the program computes itself of the bits behind it, or refuses.
                started, features = SplitModel(whole, None), fit.calibration
            elif least < NO_NUMBER:
                raise mask_of_clients(least)
        rest = started.model
        ensemble = onnx_ml.ensemble_of(rest) if onnx_ml.has_trees(rest) else None
        for name, given in (("bins", fit.bins is not None), ("thresholds", fit.thresholds != "private")):
            if ensemble is None and given:
                raise for_trees(name)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    fit = replace(fit, calibration=features)
    return PreparedModel(
        rest if ensemble is None else ensemble,
        fit,
        started.steps,
        columns,
        values,
        ExportDifferences(rounding, uncompared=apart),
    )


def _in_order(fit: Fit, columns: Sequence[str]) -> Fit:
    """Return a fit whose calibration data have the columns of a model in its order."""
    return replace(fit, calibration=in_order(fit.calibration, columns))


def _approximated_ensemble(ensemble: Ensemble, fit: Fit) -> ApproximatedModel:
    trees = quantise(ensemble, fit)
    run = ExactRun(trees.bits, trees.held_out, np.zeros((len(trees.bits), 0)))
    # What follows is about bits; accuracy and error were required of the ensemble.
    inner = replace(
        fit,
        calibration=trees.bits,
        accuracy=None,
        error=None,
        ranges=replace(fit.ranges, input_range=(0.0, 1.0)),
    )
    output = OutputCodec(client_part=trees.client_part)
    return ApproximatedModel(trees.graph, (), run, inner, (ensemble.outputs,), output, trees)


def read_model(model: onnx.ModelProto, fit: Fit, max_plaintext_bytes: int) -> ReadModel:
    """Return the simplified graph of a model in standard operators, with the minimum levels of its
    activations, and every reason why it cannot be compiled for any target."""
    try:
        server, client = split_last_steps(with_softmax(model))
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    read = _imported(server, fit, frozenset() if client is None else client.shapes)
    graph, reasons = read.graph, read.reasons
    if graph.output >= 0:
        graph = simplify(graph)
        active = {n: node for n, node in graph.nodes.items() if isinstance(node, Activation)}
        if active and fit.calibration is None:
            reasons.append(calibration_missing([node.label for node in active.values()]))
        for number, node in active.items():
            method = fit.method(node.operator, node.name)
            if method is not None:
                graph.nodes[number] = replace(node, levels=method.levels)
        known = sorted({node.operator.lower() for node in active.values()})
        known += [node.name for node in active.values()]
        joined = {node.op_type.lower() for node in model.graph.node}.intersection(OPERATORS)
        if unknown := [name for name in fit.methods if name not in known and name not in joined]:
            reasons.append(unknown_activation(unknown, known))
        if (size := least_bytes(graph)) > max_plaintext_bytes:
            reasons.append(too_wide(size, max_plaintext_bytes))
    part = None
    if client is not None and not reasons:
        part = client.part(read.scores, read.known)
    return ReadModel(graph, read.scores, reasons, read.claims, read.known, part)


def _imported(model: onnx.ModelProto, fit: Fit, requested: frozenset[str]) -> ImportedModel:
    """Return a model's graph, with as many halvings of each softmax as calibration data need."""
    bits = None if fit.calibration is None else _bits(fit.calibration)
    read = import_model(model, requested=requested, bits=bits)
    if fit.calibration is None or read.reasons:
        return read
    try:
        samples = _samples(read.graph, fit.calibration)
        if halvings := halvings_of(read.graph, samples):
            read = import_model(model, halvings, requested, bits)
        if not read.reasons:
            require_hidden(read.claims.masks, read.graph, samples)
    except RefusalError as reason:
        read.reasons.append(reason)
    return read


def _bits(calibration: ArrayLike) -> NDArray[np.bool_] | None:
    """Return which elements of the input are 0 or 1 in all calibration data."""
    try:
        samples = as_numbers(calibration)
    except EncodeError:
        return None
    return None if samples.ndim == 0 else np.asarray(((samples == 0) | (samples == 1)).all(axis=0))


def put_polynomials(read: ReadModel, fit: Fit, *, values: bool = False) -> ApproximatedModel:
    """Return the model with polynomials for activations.

    Args:
        values: whether several outputs are values, not scores of labels.

    Raises:
        ModelRefusedError: the required accuracy, or the default one, cannot be reached.
        EncodeError: calibration data of the wrong shape or not finite.
    """
    graph = read.graph
    signed = read.client_part is not None and read.client_part.takes_signs
    run = run_exact(graph, _samples(graph, fit.calibration))
    several = values or len(read.scores) > 1
    scores = signed or (read.client_part is not None and not several and run.outputs.shape[1] > 1)
    run = replace(run, signed=signed, several=several, scores=scores)
    labelled = read.client_part is not None and read.client_part.gives_labels and not values
    if (scores or labelled) and run.outputs.shape[1] > 1:
        run = replace(run, labels=labels_behind(read.client_part, run.outputs, several=several))
    if fit.accuracy is not None and not labelled and (several or (run.outputs.shape[1] == 1 and not signed)):
        raise ModelRefusedError([no_labels()])
    try:
        chosen = choose(graph, run, fit, price, read.client_part)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    joint = None
    if chosen.fitted and fit.ranges.input_range is None:
        one_scale = np.ndim(fit.calibration) > 2
        joint = JointRange.of(run.samples, one_scale=one_scale)
    steps = ClientSteps(bits=tuple(read.claims.required.tolist()), joint=joint)
    part = read.client_part
    if part is not None and not chosen.fitted and len(run.samples):
        part = with_whole_scores(part, outputs_of(chosen.graph, run.samples))
    result = ApproximatedModel(
        chosen.graph,
        chosen.fitted,
        run,
        fit,
        read.output_shape,
        OutputCodec(image=output_image(graph, run, fit.ranges.margin), client_part=part),
        steps=steps,
    )
    if chosen.measured is not None:
        vars(result).update(_measured=chosen.measured)
    return result


def price(method: Method) -> float:
    """Return the price of a method in a bootstrapped network, in products of ciphertexts."""
    return method.products + _level_price() * method.levels


def least_bytes(graph: Graph) -> int:
    """Return a lower bound on the bytes of the diagonals in any layout: every matrix entry has its own place
    on one."""
    linears = [node for node in graph.nodes.values() if isinstance(node, Linear)]
    return 8 * sum(matrix.entries for node in linears for matrix in node.matrices)


@cache
def _level_price() -> float:
    """Return the time of a bootstrap per level that it gives, in products of ciphertexts at the middle
    level."""
    plan, costs = shipped_plan(DEFAULT_BOOTSTRAP_PRESET), CostTable.default()
    product = costs.seconds(LayerWork(multiplications=(1,)), plan.output_level - plan.levels_left // 2)
    return costs.bootstrap_seconds(Bootstrap.of(plan)) / plan.levels_left / product


def _samples(graph: Graph, calibration: ArrayLike | None) -> Vector:
    shape = next((node.shape for node in graph.nodes.values() if isinstance(node, Input)), None)
    if shape is None:
        raise ModelRefusedError([RefusalError("the model's output does not depend on an input")])
    size = int(np.prod(shape, dtype=np.int64))
    if calibration is None:
        return np.zeros((0, size))
    samples = as_numbers(calibration, "calibration data")
    require_samples(samples, shape, "calibration data")
    if not np.isfinite(samples).all():
        raise EncodeError(
            f"calibration data hold {int((~np.isfinite(samples)).sum())} values that are not finite; "
            "remove them",
            code="samples",
        )
    return samples.reshape(len(samples), size)
