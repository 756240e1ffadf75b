"""`approximate`: turns an ONNX model into linear maps, products and polynomials, for any kind of
ciphertext."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray

from keywright._core import BootstrapperPlan
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.activations.choosing import choose, outputs_of
from keywright.compiler.activations.fit import OPERATORS, Fit
from keywright.compiler.activations.ranges import ExactRun, run_exact
from keywright.compiler.front_ends.client_end import load_parts
from keywright.compiler.front_ends.model_file import load_model
from keywright.compiler.front_ends.onnx_importer import ImportedModel, import_model
from keywright.compiler.front_ends.operators.attention.masks import require_hidden
from keywright.compiler.front_ends.operators.attention.softmax import more_halvings
from keywright.compiler.front_ends.trees import onnx_ml
from keywright.compiler.graph.graph import Activation, Graph, Input
from keywright.compiler.graph.simplify import simplify
from keywright.compiler.layout.layer_work import LayerWork
from keywright.compiler.placement.bounding import largest_values
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.trees.ensemble import Ensemble
from keywright.compiler.trees.quantising import LEAST_LOG_SCALE, QuantisedEnsemble, quantise
from keywright.errors.network import (
    InvalidSamplesError,
    ModelRefusedError,
    RefusalError,
    calibration_missing,
    no_labels,
    unknown_activation,
)
from keywright.program.arrays import Shape, Vector
from keywright.program.client_part import ClientPart
from keywright.program.fit_report import FittedActivation
from keywright.program.operands.bootstraps import DEFAULT_BOOTSTRAP_PRESET

ModelFile = onnx.ModelProto | str | Path | bytes
Source = ModelFile | Ensemble
"""A model, its bytes, or its path; or an ensemble of trees."""


@dataclass(frozen=True, eq=False)
class ApproximatedModel:
    """A model with polynomials for activations; `keywright.compiler.compile` accepts it for any target.

    Attributes:
        graph: simplified.
        fitted: the approximation of each activation.
        run: the model's run on calibration data.
        fit: the requested fit.
        output_shape: of a sample's result.
        client_part: the part of the model that the client computes, if any.
        trees: the ensemble that the graph computes, if it is one; the run then is on its bits.
    """

    graph: Graph
    fitted: tuple[FittedActivation, ...]
    run: ExactRun
    fit: Fit
    output_shape: Shape
    client_part: ClientPart | None
    trees: QuantisedEnsemble | None = None

    @property
    def least_log_scale(self) -> int:
        """Bits of the scale with which results are precise enough, among shipped parameters."""
        return 0 if self.trees is None else LEAST_LOG_SCALE

    @property
    def samples(self) -> Vector:
        """The calibration data as the client has them, flattened: (count, features)."""
        return self.run.samples if self.trees is None else self.trees.samples

    @cached_property
    def largest(self) -> Mapping[int, float]:
        """The largest absolute value of every node on the calibration data. It is the same for every target,
        and all data run through the graph for it."""
        if self.trees is not None and not len(self.run.samples):
            return self.trees.largest
        return largest_values(self.graph, self.run.samples)

    @cached_property
    def outputs(self) -> Vector:
        """The model's outputs on the calibration data, (count, outputs)."""
        return self.run.outputs if self.fitted else outputs_of(self.graph, self.run.samples)


@dataclass(frozen=True, eq=False)
class ReadModel(ImportedModel):
    """A parsed model, and the part that the client computes."""

    client_part: ClientPart | None


def approximate(model: Source, fit: Fit | None = None) -> ApproximatedModel:
    """Replace a model's activations by polynomials, as the fit requires.

    Args:
        model: the model, its bytes, or its path.
        fit: calibration data, methods, or how closely to follow the model; `Fit()` by default.

    Raises:
        ModelRefusedError: with all reasons; see `keywright.compiler.compile`.
        InvalidSamplesError: calibration data of the wrong shape or not finite.
    """
    fit = Fit() if fit is None else fit
    if (ensemble := ensemble_in(model)) is not None:
        return _approximated_ensemble(ensemble, fit)
    read = read_model(model, fit)
    if read.reasons:
        raise ModelRefusedError(read.reasons)
    return put_polynomials(read, fit)


def ensemble_in(model: Source) -> Ensemble | None:
    """Return the ensemble that a model is; None for another model.

    Raises:
        ModelRefusedError: a part of the ensemble, or what surrounds it, is not supported.
    """
    if isinstance(model, Ensemble):
        return model
    try:
        loaded = load_model(model)
        return onnx_ml.ensemble_of(loaded) if onnx_ml.has_trees(loaded) else None
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason


def _approximated_ensemble(ensemble: Ensemble, fit: Fit) -> ApproximatedModel:
    trees = quantise(ensemble, fit)
    run = ExactRun(trees.bits, trees.held_out, np.zeros((len(trees.bits), 0)), {}, {}, {})
    # What follows is about bits; accuracy and error were required of the ensemble.
    inner = replace(fit, calibration=trees.bits, accuracy=None, error=None, input_range=(0.0, 1.0))
    return ApproximatedModel(trees.graph, (), run, inner, (ensemble.outputs,), trees.client_part, trees)


def read_model(model: Source, fit: Fit) -> ReadModel:
    """Return the model's simplified graph, with the minimum levels of its activations, and every reason why
    it cannot be compiled for any target."""
    assert not isinstance(model, Ensemble)
    try:
        server, client = load_parts(model)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    read = _imported(server, fit)
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
        nodes = [node.name for node in active.values()]
        unknown = [name for name in fit.methods if name not in OPERATORS and name not in nodes]
        if unknown:
            reasons.append(unknown_activation(unknown, [*sorted(OPERATORS), *nodes]))
    if client is not None:
        client = replace(client, shape=read.result_shape)
    return ReadModel(graph, read.result_shape, reasons, read.masks, client)


def _imported(model: onnx.ModelProto, fit: Fit) -> ImportedModel:
    """Return a model's graph, with as many halvings of each softmax as calibration data need."""
    bits = None if fit.calibration is None else _bits(fit.calibration)
    read, halvings = import_model(model, bits=bits), dict[str, int]()
    while fit.calibration is not None and not read.reasons:
        nodes = read.graph.nodes
        if not any(isinstance(node, Activation) and node.operator == "Softmax" for node in nodes.values()):
            break
        run = run_exact(read.graph, _samples(read.graph, fit.calibration))
        found = [
            (node, float(run.lows[number].min()), float(run.highs[number].max()))
            for number, node in nodes.items()
            if isinstance(node, Activation)
        ]
        more = more_halvings(halvings, found)
        if more is None:
            break
        halvings = more
        read = import_model(model, halvings, bits)
    if read.masks and not read.reasons and fit.calibration is not None:
        try:
            require_hidden(read.masks, read.graph, _samples(read.graph, fit.calibration))
        except RefusalError as reason:
            read.reasons.append(reason)
    return read


def _bits(calibration: ArrayLike) -> NDArray[np.bool_] | None:
    """Return which elements of the input are 0 or 1 in all calibration data."""
    try:
        samples = np.asarray(calibration, np.float64)
    except (TypeError, ValueError):
        return None
    return None if samples.ndim == 0 else np.asarray(((samples == 0) | (samples == 1)).all(axis=0))


def put_polynomials(read: ReadModel, fit: Fit) -> ApproximatedModel:
    """Return the model with polynomials for activations.

    Raises:
        ModelRefusedError: the required accuracy, or the default one, cannot be reached.
        InvalidSamplesError: calibration data of the wrong shape or not finite.
    """
    graph = read.graph
    signed = read.client_part is not None and read.client_part.takes_signs
    run = replace(run_exact(graph, _samples(graph, fit.calibration)), signed=signed)
    if fit.accuracy is not None and run.outputs.shape[1] == 1 and not signed:
        raise ModelRefusedError([no_labels()])
    try:
        chosen = choose(graph, run, fit, price)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    return ApproximatedModel(chosen.graph, chosen.fitted, run, fit, read.output_shape, read.client_part)


def price(method: Method) -> float:
    """Return the price of a method in a bootstrapped network, in products of ciphertexts."""
    return method.products + _level_price() * method.levels


@cache
def _level_price() -> float:
    """Return the time of a bootstrap per level that it gives, in products of ciphertexts at the middle
    level."""
    plan, costs = BootstrapperPlan.preset(DEFAULT_BOOTSTRAP_PRESET), CostTable.default()
    product = costs.seconds(LayerWork(multiplications=(1,)), plan.output_level - plan.levels_left // 2)
    return costs.bootstrap_seconds(plan.output_level) / plan.levels_left / product


def _samples(graph: Graph, calibration: ArrayLike | None) -> Vector:
    shape = next(node.shape for node in graph.nodes.values() if isinstance(node, Input))
    size = int(np.prod(shape, dtype=np.int64))
    if calibration is None:
        return np.zeros((0, size))
    samples = np.asarray(calibration, np.float64)
    if samples.ndim == 0 or samples.shape[1:] != shape or len(samples) == 0:
        raise InvalidSamplesError(f"calibration data have shape (count, {shape}), got {samples.shape}")
    if not np.isfinite(samples).all():
        raise InvalidSamplesError(
            f"calibration data hold {int((~np.isfinite(samples)).sum())} values that are not finite; "
            "remove them"
        )
    return samples.reshape(len(samples), size)
