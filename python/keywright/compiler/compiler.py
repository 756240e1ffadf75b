"""`compile_program`: compiles an ONNX model into a program, or refuses it with every reason."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from keywright.compiler.activations.fit import LARGEST_INPUT, Fit
from keywright.compiler.activations.image import computes_nothing
from keywright.compiler.activations.polynomial_choice import report
from keywright.compiler.activations.ranges import MARGIN, require_moderate
from keywright.compiler.graph.commuting import forms
from keywright.compiler.graph.graph import Activation, Graph, Linear, Multiply, Polynomial, Shift
from keywright.compiler.graph.simplify import absorbs_shifts, scale_value, shift_input, shift_output
from keywright.compiler.placement.bounding import largest_values
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.target import Target
from keywright.errors.engine import EncodeError
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.sizes import ranges_missing, too_deep, too_wide
from keywright.program.arrays import Shape, Vector
from keywright.program.fit_report import FitReport
from keywright.program.interface import ProgramInput
from keywright.program.operands.normalisation import (
    HEADROOM,
    LARGE,
    WIDE,
    WIDE_RESULT,
    WIDE_TENSOR,
    WIDE_THIN,
    Normalisation,
)
from keywright.program.program import Program

from .approximating import ApproximatedModel, Source, approximate, least_bytes
from .arrangement import Arrangement, arrange
from .assembly import Assembly
from .joining import join_halves
from .limits import MAX_PLAINTEXT_BYTES

LARGEST_CONSTANT = 64.0
"""Largest coefficient of a polynomial, or constant of a layer, that computes a result: the lowest level has
8 bits above the scale, one of them for the sign. They are large where a range reaches far beyond samples."""

NOTHING = (
    "the server computes nothing: all of the model is in the client's first and last steps, so that the "
    "client gets it whole; run it on the client alone, or write what looks numbers up as a product of "
    "one-hot vectors, the client's first step, with weights, which stay on the server"
)


_ArrangedForm = tuple[Arrangement, float]
"""The arrangement of a form, and the scale of the output."""


def compile_program(
    model: Source | ApproximatedModel,
    target: Target,
    fit: Fit | None = None,
    *,
    costs: CostTable | None = None,
    max_plaintext_bytes: int = MAX_PLAINTEXT_BYTES,
    largest_output: float = 1.0,
) -> Program:
    """Compile an ONNX model into a program on ciphertexts.

    Consecutive linear layers are merged. Products and sums of a softmax stand in the fastest order; see
    `keywright.compiler.graph.commuting`. Batch normalization and the mapping of activation ranges are
    absorbed by the layers around them. Activations of degree 2 become one product. Every value is at the
    lowest possible level. If levels do not suffice, values are bootstrapped: see
    `keywright.compiler.placement.placement`.

    Args:
        model: the model, its bytes, or its path; or the result of `approximate`, without a fit.
        target: slots, levels and bootstraps of the ciphertexts to compute on.
        fit: calibration data, and methods of activations or the required closeness to the model; `Fit()` by
            default.
        costs: costs of operations; by default the costs of the target's first ring, or the shipped table.
        max_plaintext_bytes: bound on the memory of the diagonals, in double precision.
        largest_output: outputs are divided by a power of two that brings results on calibration data to at
            most this, so that those of larger inputs fit the ciphertexts.

    Raises:
        ModelRefusedError: with all reasons, each a `RefusalError`.
        EncodeError: calibration data of the wrong shape or not finite.
    """
    approximated = _approximated(model, target, fit, max_plaintext_bytes)
    return next(
        compile_forms(
            approximated,
            target,
            costs=costs,
            max_plaintext_bytes=max_plaintext_bytes,
            largest_output=largest_output,
        )
    )


def compile_forms(
    model: ApproximatedModel,
    target: Target,
    *,
    slower: float = 1.0,
    costs: CostTable | None = None,
    max_plaintext_bytes: int = MAX_PLAINTEXT_BYTES,
    largest_output: float = 1.0,
) -> Iterator[Program]:
    """Yield programs of a model's forms, see `keywright.compiler.graph.commuting`, the fastest first.

    Args:
        slower: maximum predicted time, relative to the fastest; other forms are not assembled.
        model, target, costs, max_plaintext_bytes, largest_output: as for `compile_program`.

    Raises:
        ModelRefusedError: all forms are refused; for too few levels, if one is for nothing else.
        EncodeError: as for `compile_program`.
    """
    if costs is None:
        costs = target.rings[0].costs if target.rings else CostTable.default()
    scaling = _Scaling.of(model, target)
    arranged: list[_ArrangedForm] = []
    refusals: list[ModelRefusedError] = []
    for form in model.forms:
        try:
            chosen, output_scale = _arranged(
                form, scaling, target, costs, max_plaintext_bytes, largest_output
            )
        except ModelRefusedError as refusal:
            refusals.append(refusal)
        else:
            kept = chosen if len(model.forms) == 1 else chosen.without_diagonals()
            arranged.append((kept, output_scale))
            del chosen  # diagonals of several forms together would be large
    arranged.sort(key=lambda each: each[0].seconds(target.samples))
    fastest = math.inf
    for near in arranged:
        seconds = near[0].seconds(target.samples)
        if seconds > slower * fastest:
            break
        try:
            program = _assembled(near, model, scaling, target, costs, max_plaintext_bytes)
        except ModelRefusedError as refusal:
            refusals.append(refusal)
        else:
            fastest = min(fastest, seconds)
            yield program
            del program  # before the next one is assembled
    if fastest == math.inf:
        raise _most_useful(refusals)


def _most_useful(refusals: Sequence[ModelRefusedError]) -> ModelRefusedError:
    """Return a refusal for nothing but levels, the one that needs the fewest, or but bootstraps: callers then
    try other parameters. Otherwise, return the last one."""
    deep = [refusal for refusal in refusals if refusal.codes == {"depth"}]
    unplaced = [refusal for refusal in refusals if refusal.codes == {"placement"}]
    if deep:
        return min(deep, key=lambda refusal: max(reason.needed for reason in refusal.reasons))
    return (unplaced or refusals)[-1]


def _assembled(
    form: _ArrangedForm,
    approximated: ApproximatedModel,
    scaling: "_Scaling",
    target: Target,
    costs: CostTable,
    max_plaintext_bytes: int,
) -> Program:
    """Return the program of a form that is arranged."""
    chosen, output_scale = form
    level, inner = chosen.entry_level, 0 if target.thin and target.rings else None
    whole = chosen.with_diagonals(target, costs).interleaved()
    program = Assembly(whole, costs, level, target.rings, inner).program()
    if chosen.parts > 1:
        program = join_halves(program)
    _require_memory(sum(transform.bytes for transform in program.operands.transforms), max_plaintext_bytes)
    output = replace(
        program.output,
        shape=approximated.output_shape,
        scale=output_scale,
        normalisation=scaling.leaving,
        image=approximated.output.image,
        client_part=approximated.output.client_part,
    )
    return replace(
        program,
        input=_input_of(program, approximated, scaling),
        output=output,
        fit_report=_report(approximated),
        created=_now(),
    )


def _arranged(
    form: ApproximatedModel,
    scaling: "_Scaling",
    target: Target,
    costs: CostTable,
    max_plaintext_bytes: int,
    largest_output: float,
) -> _ArrangedForm:
    """Return the fastest arrangement of one form of a model.

    Raises:
        ModelRefusedError: too few levels, or too large; with every reason.
        EncodeError: results on calibration data are not finite.
    """
    scaled = scaling.between(form)
    graph = Graph(dict(scaled.graph.nodes), scaled.graph.output)
    samples, ranges = form.run.samples, form.fit.ranges
    _refuse(_too_deep(graph, target, measured=len(samples) > 0, approximated=bool(form.fitted)))
    _require_memory(least_bytes(graph), max_plaintext_bytes)
    seen = dict(scaled.largest)
    if form.trees is not None and not len(samples):
        seen[graph.output] = 1.0
    _bound_hidden(graph, seen)
    margin = MARGIN if ranges.margin is None else ranges.margin
    output_scale = _bound_output(graph, seen, margin, largest_output)
    try:
        chosen = arrange(graph, seen, target, ranges.headroom, costs, max_plaintext_bytes)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    return chosen, output_scale


def _now() -> int:
    """Return the time in milliseconds since 1970; that of the environment's variable for reproducible builds,
    if it is set."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    return 1000 * int(stated) if stated.isdecimal() else time.time_ns() // 1_000_000


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A form of a model between scaled inputs and outputs.

    Attributes:
        graph: of the form with these inputs.
        largest: the largest absolute value of every node on the calibration data.
    """

    graph: Graph
    largest: Mapping[int, float]


@dataclass(frozen=True, eq=False)
class _Scaling:
    """What clients do to the numbers of inputs and outputs. Clients of one kind do the same with any target.

    Attributes:
        thin: whether clients are thin.
        range: of the inputs; None if it is unknown.
        scale: inputs are divided by it.
        normalisation: of inputs, before the division; None if they stay as they are.
        leaving: normalisation of outputs; None if they stay as they are.
    """

    thin: bool
    range: tuple[float, float] | None
    scale: float
    normalisation: Normalisation | None
    leaving: Normalisation | None

    @property
    def entering(self) -> Normalisation | None:
        """Normalisation and division of inputs together; None if they stay as they are."""
        normal = self.normalisation
        if self.scale == 1:
            return normal
        offset, scale = (0.0, 1.0) if normal is None else (normal.offset, normal.scale)
        return Normalisation(np.atleast_1d(offset), np.atleast_1d(scale * self.scale))

    @staticmethod
    def of(model: ApproximatedModel, target: Target) -> "_Scaling":
        """Return the scaling of a model's program for a target."""
        run, graph, ends = model.run, model.graph, _input_range(model, target)
        normal, scale = _entering(run.samples, _source_shape(graph), target, ends)
        leaving = None if model.trees is None else model.trees.normalisation
        if leaving is None and not target.thin and len(run.samples):
            free = isinstance(graph.nodes[graph.output], Linear)
            factor = _factor(model.output_shape) if free else WIDE_RESULT
            leaving = Normalisation.of(model.outputs, factor=factor, small_only=True)
        return _Scaling(target.thin, ends, scale, normal, leaving)

    def between(self, form: ApproximatedModel) -> _Scaled:
        """Return a form between both, which is made once."""
        if self.thin not in form.scaled:
            form.scaled[self.thin] = self._between(form)
        scaled: _Scaled = form.scaled[self.thin]
        return scaled

    def _between(self, model: ApproximatedModel) -> _Scaled:
        graph, samples = model.graph, model.run.samples
        for normal, shift, shape in (
            (self.entering, shift_input, _source_shape(graph)),
            (self.leaving, shift_output, model.output_shape),
        ):
            if normal is not None:
                size = math.prod(shape)
                graph = shift(
                    graph, np.broadcast_to(normal.offset, size), np.broadcast_to(normal.scale, size)
                )
        if graph is model.graph or not len(samples):
            return _Scaled(graph, model.largest)
        ends = {graph.source: samples if self.entering is None else self.entering.apply(samples)}
        if not absorbs_shifts(model.graph):
            return _Scaled(graph, largest_values(graph, ends[graph.source]))
        outputs = model.approximate_outputs
        ends[graph.output] = outputs if self.leaving is None else self.leaving.apply(outputs)
        changed = {number: float(np.abs(values).max()) for number, values in ends.items()}
        return _Scaled(graph, {**model.largest, **changed})


def _input_of(program: Program, model: ApproximatedModel, scaling: _Scaling) -> ProgramInput:
    """Return the input of a program with its scaling and the client's steps."""
    binning = None if model.trees is None else model.trees.binning
    return replace(
        program.input,
        shape=program.input.shape if binning is None else (binning.features,),
        range=scaling.range,
        scale=scaling.scale,
        normalisation=scaling.normalisation,
        steps=replace(model.steps, binning=binning),
    )


def _approximated(
    model: Source | ApproximatedModel, target: Target, fit: Fit | None, max_plaintext_bytes: int
) -> ApproximatedModel:
    """Return the model with polynomials; refuse it before if the target has too few levels for any."""
    if isinstance(model, ApproximatedModel):
        if fit is not None:
            raise TypeError("an approximated model already has its fit; leave fit out")
        return model
    measured = fit is not None and fit.calibration is not None
    return approximate(
        model,
        fit,
        max_plaintext_bytes,
        lambda graph: _too_deep([*forms(graph)][-1].graph, target, measured=measured),
    )


def _report(model: ApproximatedModel) -> FitReport | None:
    """Return how programs differ from the model; None without calibration data."""
    if model.trees is not None:
        trees = model.trees.report
        return trees and replace(trees, export=model.run.export)
    if not len(model.run.samples):
        return None
    outputs = model.output.leaving(model.approximate_outputs)
    result = report(outputs, model.run, model.fitted, model.fit, model.output.client_part)
    return replace(result, remarks=(NOTHING,)) if computes_nothing(model.graph) else result


def _refuse(reasons: Sequence[RefusalError]) -> None:
    if reasons:
        raise ModelRefusedError(reasons)


def _too_deep(
    graph: Graph, target: Target, *, measured: bool, approximated: bool = False
) -> list[RefusalError]:
    """Return why the levels do not suffice, if they do not: bootstraps need measured ranges."""
    depth, available = graph.depth(), target.depth
    if depth <= available or (target.bootstraps and measured):
        return []
    if target.bootstraps:
        return [ranges_missing(depth, available)]
    labels = [
        node.label for node in graph.nodes.values() if isinstance(node, Activation | Polynomial | Multiply)
    ]
    maxima = [label for label in dict.fromkeys(labels) if label.startswith("MaxPool at ")]
    return [too_deep(depth, available, maxima, approximated=approximated)]


def _require_memory(size: int, most: int) -> None:
    """Refuse diagonals of more bytes than are allowed."""
    _refuse([too_wide(size, most)] if size > most else [])


def _input_range(model: ApproximatedModel, target: Target) -> tuple[float, float] | None:
    """Return the range of the program's inputs: the declared one; the measured one where a polynomial depends
    on it, or `HEADROOM` times the largest measured input; None if nothing was declared or
    measured."""
    fit, run = model.fit, model.run
    if fit.ranges.input_range is not None:
        low, high = fit.ranges.input_range
        if len(run.samples) and not low <= run.samples.min() <= run.samples.max() <= high:
            raise EncodeError(
                f"calibration data go from {run.samples.min():.6g} to {run.samples.max():.6g}, outside "
                f"the given input range {low:.6g} to {high:.6g}; give one that holds them",
                code="samples",
            )
        return low, high
    if len(run.samples) and (target.thin or model.fitted):
        low, high = run.input_range(fit.ranges.margin)
        if not -LARGEST_INPUT <= low < high <= LARGEST_INPUT:
            raise EncodeError(
                f"calibration data reach from {low:.6g} to {high:.6g}; scale them to at most "
                f"{LARGEST_INPUT:.6g}",
                code="samples",
            )
        return low, high
    if target.thin:
        return -1.0, 1.0
    if not len(run.samples):
        return None
    # No polynomial limits the inputs, but their ciphertexts declare a magnitude.
    largest = HEADROOM * float(np.abs(run.samples).max()) or 1.0
    return -largest, largest


def _entering(
    samples: Vector, source: Shape, target: Target, ends: tuple[float, float] | None
) -> tuple[Normalisation | None, float]:
    """Return how a client normalises samples, and the number by which it then divides them. Thin clients only
    divide, unless the ranges of elements differ so much that small ones would lose their bits."""
    if not target.thin:
        return Normalisation.of(samples, factor=_factor(source)), 1.0
    normal = Normalisation.of(samples, factor=max(WIDE_THIN, _factor(source)), far=math.inf)
    if normal is not None and normal.scale.size > 1:
        return normal, HEADROOM
    return None, 1.0 if ends is None else _input_scale(ends)


def _input_scale(ends: tuple[float, float]) -> float:
    """Return the least power of two that brings a range to at most 1 when it is divided by it."""
    mantissa, exponent = math.frexp(max(map(abs, ends)))
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


def _factor(shape: Shape) -> float:
    """Return by how much the elements of an input or output with a common scale may differ."""
    return WIDE if len(shape) <= 1 else WIDE_TENSOR


def _source_shape(graph: Graph) -> Shape:
    return graph.nodes[graph.source].shape


def _bound_hidden(graph: Graph, largest: dict[int, float]) -> None:
    """Bring hidden values that are far from 1 on samples to about 1 where that takes no level. ``largest``
    holds the largest absolute values of all values and is updated."""
    for number, node in list(graph.nodes.items()):
        peak = largest[number]
        far = 0 < peak < 1 / LARGE or LARGE < peak < math.inf
        if far and number != graph.output and isinstance(node, Linear | Multiply | Polynomial):
            factor = 2.0 ** -math.ceil(math.log2(peak))
            for changed, by in scale_value(graph, number, factor, reader=None).items():
                largest[changed] *= by


def _bound_output(graph: Graph, largest: dict[int, float], margin: float, most: float) -> float:
    """Divide the output by a power of two so that samples give at most ``most``, and constants at its level
    at most `LARGEST_CONSTANT`, and return that power. ``largest`` holds the largest absolute values of all
    values and is updated."""
    peak, node = largest[graph.output], graph.nodes[graph.output]
    require_moderate(np.asarray([peak]), "the model's output")
    peak /= most
    if isinstance(node, Linear | Polynomial | Shift):
        constants = {Linear: "bias", Polynomial: "coefficients", Shift: "vector"}[type(node)]
        peak = max(peak, float(np.abs(getattr(node, constants)).max(initial=0.0)) / LARGEST_CONSTANT)
    scale = 2.0 ** max(math.ceil(math.log2(peak * (1 + margin))), 0) if peak > 0 else 1.0
    factors = scale_value(graph, graph.output, 1 / scale, reader=None) if scale > 1 else {}
    for number, factor in factors.items():
        largest[number] *= factor
    return scale if factors else 1.0
